"""Idle time of the device, from markers that the training thread left on its queue.

A marker has two times: when the host recorded it and when the device came to it. Between two markers
the device has run what the host launched between them, and idled the rest. A stretch that launches
nothing has therefore idled all of its device time; one that launches has idled what its kernels do not
account for, and what they take shows whenever the device was behind at both of its ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

# The device's clock against the host's is set anew over stretches of this many markers: clocks drift
# by some 10 µs a second, and elapsed times carry half a microsecond of error each.
CLOCK_STRETCH = 512
# A marker on a drained queue completes within a few microseconds of the least latency seen.
DRAINED_NS = 30_000
# Stretches that are taken to launch nothing, or no more than their copies, until they are seen behind.
KNOWN_AT_LEAST = ("gap:", "copy")


class Mark(NamedTuple):
    """A row of the MARK table."""

    host_ns: int
    device_ns: int  # on the device's own clock


@dataclass(frozen=True)
class Stretch:
    """Host time between two markers, with the phases it passed through.

    `key` names stretches that launch the same work step after step; "" for one that launches nothing.
    """

    start: int  # index of its first marker
    key: str
    host_ns: Mapping[str, int]  # by phase
    least_kernel_ns: float = 0.0  # what its copies take at the bus's full rate


@dataclass(frozen=True)
class Idle:
    """Nanoseconds of device idleness by phase; `unknown_ns` is device time of stretches whose kernels
    were never seen back to back, so that their idle part cannot be told."""

    by_phase: Mapping[str, float]
    by_stretch: Mapping[int, float]  # by the index of its first marker
    device_ns: float
    unknown_ns: float

    @property
    def total_ns(self) -> float:
        return sum(self.by_phase.values())


def lags_ns(marks: Sequence[Mark]) -> list[int]:
    """How far the device was behind the host at each marker; 0 when its queue had drained."""
    lags: list[int] = []
    for begin in range(0, len(marks), CLOCK_STRETCH):
        part = marks[begin : begin + CLOCK_STRETCH]
        offset = min(mark.device_ns - mark.host_ns for mark in part)
        lags += [mark.device_ns - mark.host_ns - offset for mark in part]
    return lags


def idle(marks: Sequence[Mark], stretches: Sequence[Stretch]) -> Idle:
    """Share out the device's idle time over the phases in which it arose."""
    lags = lags_ns(marks)
    kernels_ns = _kernel_times(marks, stretches, lags)
    by_phase: dict[str, float] = defaultdict(float)
    by_stretch: dict[int, float] = {}
    device_ns = unknown_ns = 0.0
    for stretch in stretches:
        elapsed = max(0, marks[stretch.start + 1].device_ns - marks[stretch.start].device_ns)
        device_ns += elapsed
        if stretch.key and stretch.key not in kernels_ns and not stretch.key.startswith(KNOWN_AT_LEAST):
            unknown_ns += elapsed
            continue
        kernels = max(kernels_ns.get(stretch.key, 0.0), stretch.least_kernel_ns)
        was_behind = _never_drained(marks, stretch, lags)
        idle_ns = 0.0 if stretch.key and was_behind else max(0.0, elapsed - kernels)
        by_stretch[stretch.start] = idle_ns
        _share(by_phase, stretch.host_ns, idle_ns)
    return Idle(dict(by_phase), by_stretch, device_ns, unknown_ns)


def _kernel_times(
    marks: Sequence[Mark], stretches: Sequence[Stretch], lags: Sequence[int]
) -> dict[str, float]:
    """Device time of each kind of launching stretch, from those that began and ended behind."""
    seen: dict[str, list[int]] = defaultdict(list)
    for stretch in stretches:
        if stretch.key and _never_drained(marks, stretch, lags):
            seen[stretch.key].append(marks[stretch.start + 1].device_ns - marks[stretch.start].device_ns)
    return {key: float(median(times)) for key, times in seen.items()}


def _never_drained(marks: Sequence[Mark], stretch: Stretch, lags: Sequence[int]) -> bool:
    """Whether the device was surely busy throughout: behind by more than the host took, or it could have
    drained in the middle and a last long kernel have put it behind again."""
    took_ns = marks[stretch.start + 1].host_ns - marks[stretch.start].host_ns
    return lags[stretch.start + 1] > DRAINED_NS and lags[stretch.start] >= took_ns


def _share(by_phase: dict[str, float], host_ns: Mapping[str, int], idle_ns: float) -> None:
    whole = sum(host_ns.values())
    for phase, duration in host_ns.items():
        by_phase[phase] += idle_ns * duration / whole if whole else 0.0
