"""Now and then puts the device behind the host, to see how long a phase's kernels take back to back.

A host that cannot keep up with the device leaves gaps between the kernels, and markers at the ends of a
phase cannot tell gaps from kernels. With an idle kernel queued in front, the phase's own kernels wait
until all are launched and then run without gaps: the markers then show what they take. This delays the
device by about one step each time, at most `BUDGET_RATIO` of the run in all, and only where the device
is not behind anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

BUDGET_RATIO = 0.004
FIRST_NS = 5_000_000  # allowed at once, so that short runs are told too
LONGEST_NS = 50_000_000
LEAST_STEPS = 5
BEHIND_NS = 30_000
PHASES = ("forward", "backward", "forward", "optimizer")


class Backlog:
    def __init__(self, device_type: str, now_ns: int) -> None:
        self._sleep = _sleeper(device_type)
        self._since_ns = now_ns
        self._spent_ns = 0
        self._turn = 0
        self._steps = 0
        self._first_ns = 0  # when the first launching phase of this step began
        self._step_ns = 0
        self._offset_ns: int | None = None
        self._seen = self._behind = 0

    def at(self, phase: str, now_ns: int) -> bool:
        """A phase that launches begins; whether the device was put behind first."""
        if not self._first_ns:
            self._first_ns = now_ns
        wanted_ns = min(LONGEST_NS, self._step_ns + self._step_ns // 2)
        if (
            self._sleep is None
            or self._steps < LEAST_STEPS
            or phase != PHASES[self._turn % len(PHASES)]
            or self._spent_ns + wanted_ns > BUDGET_RATIO * (now_ns - self._since_ns) + FIRST_NS
            or (self._seen > 100 and self._behind > 0.9 * self._seen)
        ):
            return False
        self._turn += 1
        self._spent_ns += wanted_ns
        self._sleep(wanted_ns)
        return True

    def end_step(self) -> None:
        """The last launching phase of the step has ended."""
        from time import perf_counter_ns

        if self._first_ns:
            took_ns = perf_counter_ns() - self._first_ns
            self._step_ns = took_ns if not self._step_ns else (3 * self._step_ns + took_ns) // 4
        self._first_ns = 0
        self._steps += 1

    def saw(self, host_ns: int, device_ns: int) -> None:
        """A marker was passed: was the device behind?"""
        lag_ns = device_ns - host_ns
        if self._offset_ns is None or lag_ns < self._offset_ns:
            self._offset_ns = lag_ns
        self._seen += 1
        self._behind += lag_ns - self._offset_ns > BEHIND_NS


def _sleeper(device_type: str) -> Callable[[int], None] | None:
    """A function that queues an idle kernel of so many nanoseconds; None where the device has none."""
    torch = sys.modules["torch"]
    if device_type == "cuda" and hasattr(torch.cuda, "_sleep"):
        try:
            cycles_per_ns = torch.cuda.get_device_properties(torch.cuda.current_device()).clock_rate / 1e6
        except Exception:
            cycles_per_ns = 1.0  # at least half of any card's clock
        return lambda duration_ns: torch.cuda._sleep(int(duration_ns * cycles_per_ns))
    busy = getattr(sys.modules.get("simgpu"), "busy", None)
    if device_type == "simgpu" and busy is not None:
        return lambda duration_ns: busy(duration_ns / 1e6)
    return None
