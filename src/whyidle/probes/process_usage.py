"""What the process as a whole has used so far, read from the kernel about once a second."""

from __future__ import annotations

import os
import sys
import time
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _standard_module(name: str) -> Any:
    """A module of the standard library that torch does not import, without making it known.

    A program may have a file of its own that is called the same, and must find that one first.
    """
    if name in sys.modules:
        return sys.modules[name]
    library = os.path.dirname(os.__file__)
    spec = PathFinder.find_spec(name, [path for path in sys.path if path.startswith(library)])
    if name in sys.builtin_module_names or spec is None or spec.loader is None:
        module = __import__(name)
    else:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules.pop(name, None)
    return module


resource = _standard_module("resource")


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
