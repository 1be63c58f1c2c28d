"""Debug switches that slow every step, read live and cheaply."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from whyidle.record import schema

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any


def reader(torch: Any) -> Callable[[], int]:
    """A function that returns the switches now on, for the calling thread, as FLAG_ bits."""
    is_anomaly = getattr(torch, "is_anomaly_enabled", None)
    is_deterministic = getattr(torch, "are_deterministic_algorithms_enabled", None)
    blocking = schema.FLAG_BLOCKING_LAUNCHES if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" else 0
    gettrace, getprofile = sys.gettrace, sys.getprofile

    def read() -> int:
        flags = blocking
        if is_anomaly is not None and is_anomaly():
            flags |= schema.FLAG_ANOMALY
        if is_deterministic is not None and is_deterministic():
            flags |= schema.FLAG_DETERMINISTIC
        if gettrace() is not None or getprofile() is not None:
            flags |= schema.FLAG_TRACER
        return flags

    return read
