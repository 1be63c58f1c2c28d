"""Interval arithmetic against sets of points."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.intervals import Interval, Lookup, clip, gaps, intersection, total, union

POINTS = st.integers(-3, 25)
INTERVALS = st.lists(st.tuples(POINTS, POINTS), max_size=12)
WINDOWS = st.tuples(POINTS, POINTS)


def points(intervals: list[Interval]) -> set[int]:
    return {point for start, end in intervals for point in range(start, end)}


def are_apart(intervals: list[Interval]) -> bool:
    edges = [edge for interval in intervals for edge in interval]
    return all(before < after for before, after in pairwise(edges))


@given(INTERVALS)
def test_a_union_holds_the_same_points_in_disjoint_intervals(intervals: list[Interval]) -> None:
    merged = union(intervals)
    assert points(merged) == points(intervals)
    assert are_apart(merged)
    assert total(merged) == len(points(intervals))


@given(INTERVALS, WINDOWS)
def test_clipping_keeps_the_points_inside(intervals: list[Interval], window: Interval) -> None:
    clipped = clip(intervals, window)
    assert points(clipped) == points(intervals) & points([window])
    assert all(end > start for start, end in clipped)


@given(INTERVALS, WINDOWS)
def test_gaps_are_the_rest_of_the_window(intervals: list[Interval], window: Interval) -> None:
    left = gaps(union(intervals), window)
    assert points(left) == points([window]) - points(intervals)
    assert are_apart(left)


@given(INTERVALS, INTERVALS)
def test_an_intersection_holds_the_common_points(first: list[Interval], second: list[Interval]) -> None:
    common = intersection(union(first), union(second))
    assert points(common) == points(first) & points(second)
    assert are_apart(common)


@given(INTERVALS, POINTS)
def test_a_lookup_finds_the_interval_of_a_point(intervals: list[Interval], point: int) -> None:
    disjoint = union(intervals)
    index = Lookup(disjoint).index(point)
    assert (point in Lookup(disjoint)) == (point in points(intervals))
    assert index is None or disjoint[index][0] <= point < disjoint[index][1]


@pytest.mark.parametrize(
    ("intervals", "merged"),
    [
        ([], []),
        ([(3, 3), (5, 2)], []),  # empty ones vanish
        ([(0, 2), (2, 4)], [(0, 4)]),  # touching ones join
        ([(0, 9), (1, 2), (3, 4)], [(0, 9)]),
    ],
)
def test_corners_of_the_union(intervals: list[Interval], merged: list[Interval]) -> None:
    assert union(intervals) == merged
