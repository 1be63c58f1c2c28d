"""Counts the calls that the loop makes between a forward pass and its backward pass, on a few steps.

A loss of a few large operators makes tens of calls, a Python loop thousands; the stack samples cannot
tell them apart. The counter is a profile function: it is set only when nobody else has set one, and
takes itself off after `CALLS_LIMIT` events or `TIME_LIMIT_NS`, whichever comes first.
"""

from __future__ import annotations

import sys
from time import perf_counter_ns
from types import FrameType

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

CALLS_LIMIT = 3000
TIME_LIMIT_NS = 50_000_000


class CallCounter:
    def __init__(self) -> None:
        self.calls = 0
        self.is_counting = False
        self._until_ns = 0

    def start(self) -> None:
        """Begin to count on the calling thread; does nothing where another profiler is at work."""
        if sys.getprofile() is None:
            self.calls = 0
            self.is_counting = True
            self._until_ns = perf_counter_ns() + TIME_LIMIT_NS
            sys.setprofile(self._on_event)

    def stop(self) -> int | None:
        """The calls since `start`; None where none were counted."""
        if not self.is_counting:
            return None
        self._let_go()
        return self.calls

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls >= CALLS_LIMIT or perf_counter_ns() > self._until_ns:
                sys.setprofile(None)

    def _let_go(self) -> None:
        self.is_counting = False
        if sys.getprofile() == self._on_event:
            sys.setprofile(None)
