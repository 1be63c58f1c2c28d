"""Interval arithmetic over half-open [start, end) nanoseconds. The only one in the house."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same points as disjoint, sorted intervals; empty and negative ones vanish."""
    merged: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[1] > interval[0]):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def total(intervals: Iterable[Interval]) -> int:
    """Summed length; the intervals are taken to be disjoint."""
    return sum(end - start for start, end in intervals)


def clip(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    """The parts inside the window, in the same order."""
    low, high = window
    clipped = ((max(start, low), min(end, high)) for start, end in intervals)
    return [(start, end) for start, end in clipped if end > start]


def gaps(disjoint: Sequence[Interval], window: Interval) -> list[Interval]:
    """What the sorted, disjoint intervals leave uncovered in the window."""
    left: list[Interval] = []
    at = window[0]
    for start, end in clip(disjoint, window):
        if start > at:
            left.append((at, start))
        at = end
    if window[1] > at:
        left.append((at, window[1]))
    return left


def intersection(first: Sequence[Interval], second: Sequence[Interval]) -> list[Interval]:
    """Points in both; each argument sorted and disjoint."""
    common: list[Interval] = []
    i = j = 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if end > start:
            common.append((start, end))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return common


class Lookup:
    """Which of many sorted, disjoint intervals holds a point."""

    def __init__(self, disjoint: Sequence[Interval]) -> None:
        self._starts = [start for start, _ in disjoint]
        self._ends = [end for _, end in disjoint]

    def index(self, point: int) -> int | None:
        at = bisect_right(self._starts, point) - 1
        return at if at >= 0 and point < self._ends[at] else None

    def __contains__(self, point: int) -> bool:
        return self.index(point) is not None
