"""What the process as a whole has used so far, read from the kernel about once a second."""

from __future__ import annotations

import os
import resource
import time

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def read(probe_ns: int) -> tuple[int, ...]:
    """One row of the USAGE table."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (
        time.perf_counter_ns(),
        round((usage.ru_utime + usage.ru_stime) * 1e9),
        _resident_bytes(),
        usage.ru_nvcsw,
        usage.ru_nivcsw,
        *main_thread_ns(),
        usage.ru_majflt,
        probe_ns,
    )


def main_thread_ns() -> tuple[int, int]:
    """On-CPU time of the main thread, and the time it was ready to run and had no core; -1 unknown."""
    try:
        fd = os.open(f"/proc/self/task/{os.getpid()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            on_cpu, delay = os.read(fd, 64).split()[:2]
            return int(on_cpu), int(delay)
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return -1, -1


def _resident_bytes() -> int:
    try:
        fd = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 128).split()[1]) * PAGE_BYTES
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return -1
