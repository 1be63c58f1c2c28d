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
        run_delay_ns(f"/proc/self/task/{os.getpid()}/schedstat"),
        usage.ru_majflt,
        probe_ns,
    )


def run_delay_ns(path: str = "/proc/thread-self/schedstat") -> int:
    """Nanoseconds a thread was ready to run and had no core; -1 where the kernel does not say."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 64).split()[1])
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return -1


def _resident_bytes() -> int:
    try:
        fd = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 128).split()[1]) * PAGE_BYTES
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return -1
