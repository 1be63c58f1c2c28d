"""The one clock of the simulator: the host's monotonic nanoseconds, and an accurate sleep on it."""

from __future__ import annotations

import time

now_ns = time.perf_counter_ns

_SPIN_NS = 120_000  # a sleeping thread wakes up to this late: the last stretch is polled


def sleep_until_ns(deadline_ns: int) -> None:
    while (left_ns := deadline_ns - now_ns()) > _SPIN_NS:
        time.sleep((left_ns - _SPIN_NS) / 1e9)
    spin_until_ns(deadline_ns)


def spin_until_ns(deadline_ns: int) -> None:
    while now_ns() < deadline_ns:
        pass
