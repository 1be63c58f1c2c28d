"""Compares what whyidle says about a simulated job with the simulator's own books, phase by phase."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from whyidle.analysis.intervals import Interval, gaps, intersection, total, union
from whyidle.analysis.trainer import trainer_of
from whyidle.record.reader import RunRecord


@dataclass(frozen=True)
class Books:
    """The job's diary: when the device was busy, and which phase the host was in."""

    busy: list[Interval]
    phases: dict[str, list[Interval]]

    def idle_ratios(self, window: Interval) -> dict[str, float]:
        """Share of the window that the device idled in, while the host was in each phase."""
        idle = gaps(self.busy, window)
        length_ns = window[1] - window[0]
        return {name: total(intersection(when, idle)) / length_ns for name, when in self.phases.items()}

    def busy_ratio(self, window: Interval) -> float:
        return total(intersection(self.busy, [window])) / (window[1] - window[0])


def read_books(path: Path) -> Books:
    written = json.loads(path.read_text())
    turns = [(0, "other"), *written["turns"], (2**63, "other")]
    phases: dict[str, list[Interval]] = defaultdict(list)
    for (begin_ns, phase), (end_ns, _) in pairwise(turns):
        phases[phase].append((begin_ns, end_ns))
    busy = union((begin, end) for begin, end in written["busy"])
    return Books(busy, {name: union(when) for name, when in phases.items()})


def window_of(record: RunRecord) -> Interval:
    """The steady window that the report speaks of."""
    (trainer,) = [found for found in map(trainer_of, record.processes) if found is not None]
    return trainer.steps.window
