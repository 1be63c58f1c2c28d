"""Finds the processes that train, and prepares what their records hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from whyidle.analysis import step_phases
from whyidle.analysis.intervals import gaps, union
from whyidle.analysis.lines import Lines
from whyidle.analysis.stacks import Sample, Sources, classifier, samples_of
from whyidle.analysis.step_phases import PhaseSplit
from whyidle.analysis.steps import Steps, find_steps
from whyidle.analysis.timeline import Span, partition, thread_spans
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord


@dataclass
class Trainer:
    """One training process, prepared."""

    process: ProcessRecord
    spans: list[Span]
    steps: Steps
    samples: list[Sample]
    other_samples: list[Sample] = field(default_factory=list)
    names: Mapping[int, str] = field(default_factory=dict)


def trainer_of(process: ProcessRecord) -> Trainer | None:
    if process.header.get("role") == "worker":
        return None
    optimizer_threads = Counter(
        row[1] for row in process.rows(schema.SPAN) if row[0] == schema.KIND["optimizer"]
    )
    if not optimizer_threads:
        return None
    thread = optimizer_threads.most_common(1)[0][0]
    spans = thread_spans(process, thread)
    ended = frozenset(row[1] for row in process.rows(schema.NEXT) if row[7])
    steps = find_steps(spans, ended)
    if steps is None:
        return None
    samples = samples_of(process)
    return Trainer(
        process,
        spans,
        steps,
        sorted((s for s in samples if s.thread == thread), key=lambda s: s.t_ns),
        [s for s in samples if s.thread != thread],
        {note["id"]: note["text"] for note in process.notes_of("name")},
    )


def rank_of(process: ProcessRecord) -> int:
    return process.header.get("rank") or 0


def kept(process: ProcessRecord, window: tuple[int, int]) -> list[tuple[int, int]]:
    """The parts of the window that were recorded in full."""
    thinned = union((row[0], row[1]) for row in process.rows(schema.THINNED))
    return gaps(thinned, window)


def observed_ns(process: ProcessRecord, window: tuple[int, int]) -> int:
    return sum(end - start for start, end in kept(process, window))


def split_phases(trainer: Trainer, sources: Sources, window: tuple[int, int]) -> PhaseSplit:
    segments = [
        segment for part in kept(trainer.process, window) for segment in partition(trainer.spans, part)
    ]

    def user_phase(name: int) -> str:
        text = trainer.names.get(name, "other")
        return text if text else "other"

    return step_phases.split(
        segments,
        trainer.steps.validation,
        trainer.samples,
        classifier(sources),
        Lines(sources).loop_of,
        user_phase,
    )


def device_kind(trainer: Trainer) -> str:
    """Where the parameters live that the first optimizer steps on."""
    notes = trainer.process.notes_of("optimizer")
    return str(notes[0].get("device") or "cpu") if notes else "cpu"
