"""Facts about kinds of call, debug switches and the graph behind the loss."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from whyidle.analysis.facts import Calls
from whyidle.analysis.intervals import Lookup, union
from whyidle.analysis.lines import Lines
from whyidle.analysis.step_phases import PhaseSplit
from whyidle.analysis.steps import Steps
from whyidle.analysis.timeline import Span, is_blocking
from whyidle.analysis.trainer import Trainer
from whyidle.record import schema

FLAG_NAMES = {
    schema.FLAG_ANOMALY: "anomaly_mode",
    schema.FLAG_DETERMINISTIC: "deterministic_mode",
    schema.FLAG_TRACER: "tracer",
    schema.FLAG_BLOCKING_LAUNCHES: "blocking_launches",
}


def calls_by_kind(trainer: Trainer, result: PhaseSplit, lines: Lines, scale: float) -> dict[str, Calls]:
    low, high = trainer.steps.window
    spans_by_kind: dict[str, list[Span]] = defaultdict(list)
    for span in trainer.spans:
        if low <= span.t0_ns < high:
            spans_by_kind[span.kind].append(span)
    calls = {}
    for kind in {*result.kind_ns, *spans_by_kind}:
        spans = spans_by_kind.get(kind, [])
        names: Counter[str] = Counter()
        for span in spans:
            names[_called(trainer, span)] += span.duration_ns
        calls[kind] = Calls(
            count=round(len(spans) * scale),
            self_ns=round(result.kind_ns.get(kind, 0) * scale),
            total_ns=round(sum(span.duration_ns for span in spans) * scale),
            max_ns=max((span.duration_ns for span in spans), default=0),
            bytes=round(sum(span.a for span in spans) * scale) if kind in ("checkpoint", "copy") else 0,
            steps_with_calls=round(_steps_with(trainer.steps, spans) * scale),
            names={name: round(time * scale) for name, time in names.items()},
            line=lines.of(result.kind_samples.get(kind, [])),
            **(_copy_facts(spans, spans_by_kind) if kind == "copy" and spans else {}),
        )
    return calls


NAMED_KINDS = frozenset(("sync", "tracker", "progress", "communication", "metrics", "forward", "loss"))


def _called(trainer: Trainer, span: Span) -> str:
    """The name that a span carries in `a` or `b`; "" for kinds that carry none."""
    if span.kind == "checkpoint":
        return trainer.names.get(span.b, "")
    return trainer.names.get(span.a, "") if span.kind in NAMED_KINDS else ""


def _copy_facts(copies: Sequence[Span], spans_by_kind: Mapping[str, Sequence[Span]]) -> dict[str, Any]:
    pageable = [copy for copy in copies if not copy.b & schema.COPY_PINNED]
    blocking = [copy for copy in copies if is_blocking(copy)]
    models = union((s.t0_ns, s.t1_ns) for kind in ("forward", "loss") for s in spans_by_kind.get(kind, ()))
    inside = Lookup(models)
    whole_bytes = sum(copy.a for copy in copies)
    return {
        "pageable_ratio": sum(copy.a for copy in pageable) / whole_bytes if whole_bytes else None,
        "pageable_non_blocking_count": sum(1 for copy in pageable if copy.b & schema.COPY_NON_BLOCKING),
        "blocking_ratio": len(blocking) / len(copies),
        "inside_model_count": sum(1 for copy in copies if copy.t0_ns in inside),
    }


def _steps_with(steps: Steps, spans: Sequence[Span]) -> int:
    return len({bisect_right(steps.ends_ns, span.t0_ns) for span in spans})


def debug_flags(trainer: Trainer) -> dict[str, float]:
    low, high = trainer.steps.window
    marked = [
        span.b
        for span in trainer.spans
        if span.kind in ("backward", "optimizer") and low <= span.t0_ns < high
    ]
    backwards = [s.b for s in trainer.spans if s.kind == "backward" and low <= s.t0_ns < high] or marked
    return {
        name: sum(1 for bits in backwards if bits & flag) / len(backwards)
        for flag, name in FLAG_NAMES.items()
        if backwards and any(bits & flag for bits in backwards)
    }


def graph_count(trainer: Trainer, key: str) -> int | None:
    counts = [note[key] for note in trainer.process.notes_of("graph") if isinstance(note.get(key), int)]
    return round(median(counts)) if counts else None
