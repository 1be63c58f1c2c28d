"""How the time of a step developed over the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from whyidle.analysis.facts import Trend
from whyidle.analysis.intervals import union
from whyidle.analysis.lines import Lines
from whyidle.analysis.stacks import Sources
from whyidle.analysis.trainer import Trainer, split_phases
from whyidle.analysis.usage import cpu_growth, memory_growth
from whyidle.record import schema

TREND_LEAST_STEPS = 30


def trend(trainer: Trainer, sources: Sources, lines: Lines) -> Trend | None:
    """Step time over the run, validation and checkpoints left out; None for short runs."""
    low, high = trainer.steps.window
    ends = [end for end in trainer.steps.ends_ns if low < end <= high]
    if len(ends) < TREND_LEAST_STEPS:
        return None
    pauses = [*trainer.steps.validation]
    pauses += [
        (span.t0_ns, span.t1_ns) for span in trainer.spans if span.kind in ("checkpoint", "fsync", "iter")
    ]
    pauses += [(row[1], row[2]) for row in trainer.process.rows(schema.NEXT) if row[7]]
    pauses += [(row[0], row[1]) for row in trainer.process.rows(schema.THINNED)]
    durations = _without(ends, pauses)
    tenth = max(1, len(durations) // 10)
    levels = [level(durations[at : at + tenth]) for at in range(0, len(durations) - tenth + 1, tenth)]
    rises = sum(1 for before, after in pairwise(levels) if after > before)
    fifth = max(1, len(ends) // 5)
    first_window, last_window = (ends[0], ends[fifth]), (ends[-fifth - 1], ends[-1])
    first, last = split_phases(trainer, sources, first_window), split_phases(trainer, sources, last_window)
    growth = {
        name: last.phase_ns.get(name, 0) - first.phase_ns.get(name, 0)
        for name in {*first.phase_ns, *last.phase_ns}
    }
    growing = max(growth, key=lambda name: growth[name])
    return Trend(
        first_ns=level(durations[:fifth]),
        last_ns=level(durations[-fifth:]),
        mean_ns=fmean(durations),
        cpu_growth_ratio=cpu_growth(trainer.process, ends),
        monotony_ratio=rises / (len(levels) - 1) if len(levels) > 1 else 0.0,
        memory_growth_bytes=memory_growth(trainer.process, (low, high)),
        growing_phase=growing,
        line=lines.of(last.samples.get(growing, [])),
    )


def level(durations: Sequence[float]) -> float:
    """Mean without the tenth of outliers at each end: a median would jump between the two lengths of
    steps that wait for every other batch."""
    ordered = sorted(durations)
    edge = len(ordered) // 10
    return fmean(ordered[edge : len(ordered) - edge])


def _without(ends: Sequence[int], pauses: Sequence[tuple[int, int]]) -> list[float]:
    """Times from step to step, less the pauses between them."""
    merged = union(pauses)
    durations = []
    at = 0
    for before, after in pairwise(ends):
        while at < len(merged) and merged[at][1] <= before:
            at += 1
        paused, look = 0, at
        while look < len(merged) and merged[look][0] < after:
            paused += max(0, min(after, merged[look][1]) - max(before, merged[look][0]))
            look += 1
        durations.append(float(after - before - paused))
    return durations
