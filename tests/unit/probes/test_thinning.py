"""A record stays under its bound however long the job runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from whyidle.probes.thinning import LAST_LEVEL, MIB, WINDOW_NS, Thinning
from whyidle.record import schema

FLUSH_NS = 500_000_000
DAY_S = 86_400
HEAD_BYTES = 12
OPTIMIZER = schema.KIND["optimizer"]


class Simulation:
    """A job of so many steps a second and rows a step; rows are counted, not made."""

    def __init__(self, *, steps_per_s: int, is_worker: bool = False) -> None:
        self.thinning = Thinning(is_worker=is_worker)
        self.written_bytes = 200
        self.steps = 0
        self.now_ns = 0
        self._per_flush = max(1, steps_per_s // 2)

    def run(self, seconds: int) -> None:
        end_ns = self.now_ns + seconds * 1_000_000_000
        rows = [(OPTIMIZER, 1, 2**62, 2**62, 0, 0)] * self._per_flush
        while self.now_ns < end_ns:
            self.now_ns += FLUSH_NS
            self.steps += self._per_flush
            self._flush(rows, is_last=self.now_ns >= end_ns)

    def _flush(self, rows: list[tuple[int, ...]], *, is_last: bool) -> None:
        usage = [(self.now_ns,) * len(schema.TABLES[schema.USAGE])]
        tables = {schema.SPAN: rows, schema.NEXT: [], schema.FETCH: [], schema.STACK: [], schema.USAGE: usage}
        for table, kept in self.thinning.apply(
            self.now_ns, self.written_bytes, tables, is_last=is_last
        ).items():
            if kept:
                self.written_bytes += HEAD_BYTES + 8 * len(schema.TABLES[table]) * len(kept)


@pytest.mark.parametrize(
    ("is_worker", "days", "bound_bytes"), [(False, 7, 144 * MIB), (True, 2, 24 * MIB)], ids=["main", "worker"]
)
def test_a_week_stays_under_the_bound(is_worker: bool, days: int, bound_bytes: int) -> None:
    simulation = Simulation(steps_per_s=20, is_worker=is_worker)
    simulation.run(days * DAY_S)
    assert simulation.written_bytes < bound_bytes


def test_a_flood_stays_under_the_bound() -> None:
    """20 000 rows a second for half an hour: 2 GB if all were kept."""
    simulation = Simulation(steps_per_s=20_000)
    simulation.run(1800)
    assert simulation.written_bytes < 144 * MIB
    assert simulation.thinning.level(simulation.written_bytes) < LAST_LEVEL


def apply(thinning: Thinning, now_s: float, written_bytes: int, steps: int, *, is_last: bool = False):
    rows = [(OPTIMIZER, 1, int(now_s * 1e9), int(now_s * 1e9), 0, 0)] * steps
    tables = {schema.SPAN: rows, schema.NEXT: [], schema.FETCH: [], schema.STACK: []}
    return thinning.apply(int(now_s * 1e9), written_bytes, tables, is_last=is_last)


def test_every_step_is_either_kept_or_counted() -> None:
    thinning = Thinning(is_worker=False)
    kept = steps = 0
    thinned: list[tuple[int, ...]] = []
    for flush in range(1, 2001):
        steps += 7
        tables = apply(thinning, flush / 2, 40 * MIB, 7, is_last=flush == 2000)
        kept += len(tables[schema.SPAN])
        thinned += tables.get(schema.THINNED, [])
    counted = sum(row[2] for row in thinned)
    assert kept + counted == steps
    assert 0.08 < kept / steps < 0.2  # one stretch in eight
    assert all(first[1] <= second[0] for first, second in pairwise(thinned))
    assert sum(row[1] - row[0] for row in thinned) == pytest.approx(1000e9 * counted / steps, rel=0.01)


def test_kept_stretches_are_whole_windows() -> None:
    thinning = Thinning(is_worker=False)
    kept_at = [
        flush
        for flush in range(1, 400)
        if schema.THINNED not in (tables := apply(thinning, flush / 2, 25 * MIB, 1)) and tables[schema.SPAN]
    ]
    lengths = [1]
    for before, after in pairwise(kept_at):
        lengths = [*lengths[:-1], lengths[-1] + 1] if after == before + 1 else [*lengths, 1]
    assert set(lengths[1:-1]) == {WINDOW_NS // FLUSH_NS}


def test_nothing_is_dropped_from_a_small_file() -> None:
    thinning = Thinning(is_worker=False)
    for flush in range(1, 100):
        assert len(apply(thinning, flush / 2, 23 * MIB, 5)[schema.SPAN]) == 5
