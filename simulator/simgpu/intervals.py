"""Arithmetic on sorted lists of (start_ns, end_ns)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

Interval = tuple[int, int]


def union(groups: Iterable[Iterable[Interval]]) -> list[Interval]:
    """The merged cover of several lists, each sorted by start."""
    merged: list[Interval] = []
    for start_ns, end_ns in heapq.merge(*groups):
        if merged and start_ns <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_ns))
        else:
            merged.append((start_ns, end_ns))
    return merged


def clip(intervals: Iterable[Interval], start_ns: int, end_ns: int) -> list[Interval]:
    cut = ((max(a, start_ns), min(b, end_ns)) for a, b in intervals)
    return [(a, b) for a, b in cut if a < b]


def gaps(intervals: Iterable[Interval], start_ns: int, end_ns: int) -> list[Interval]:
    """The parts of the window that sorted, disjoint intervals leave free."""
    free: list[Interval] = []
    cursor_ns = start_ns
    for a, b in clip(intervals, start_ns, end_ns):
        if a > cursor_ns:
            free.append((cursor_ns, a))
        cursor_ns = b
    if cursor_ns < end_ns:
        free.append((cursor_ns, end_ns))
    return free


def total_ns(intervals: Iterable[Interval]) -> int:
    return sum(b - a for a, b in intervals)
