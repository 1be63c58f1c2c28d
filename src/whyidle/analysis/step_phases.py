"""The steady window split into phases without remainder, and the user's lines inside each phase.

Spans decide first; a stretch that no probe covers is named by its neighbours (between forward and
backward: the loss); what is still unnamed is shared out by the stack samples that fell into it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from whyidle.analysis.intervals import Interval, Lookup
from whyidle.analysis.stacks import Sample
from whyidle.analysis.timeline import Segment, Span

PHASES = (
    "data",
    "copy",
    "forward",
    "loss",
    "backward",
    "optimizer",
    "sync",
    "communication",
    "checkpoint",
    "metrics",
    "logging",
    "progress",
    "validation",
    "gc",
    "other",
)
COMPUTE_PHASES = frozenset(("forward", "loss", "backward", "optimizer"))
PHASE_OF_KIND: Mapping[str, str] = {
    "next": "data",
    "iter": "data",
    "fetch": "data",
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "optimizer": "optimizer",
    "zero_grad": "optimizer",
    "copy": "copy",
    "sync": "sync",
    "checkpoint": "checkpoint",
    "fsync": "checkpoint",
    "log": "logging",
    "print": "logging",
    "tracker": "logging",
    "progress": "progress",
    "gc": "gc",
    "gc_collect": "gc",
    "empty_cache": "gc",
    "communication": "communication",
    "metrics": "metrics",
    "phase": "other",
}
PURPOSES = frozenset(("logging", "progress", "checkpoint", "metrics"))
OWN_NAME_IN_VALIDATION = frozenset(("checkpoint", "gc", "communication"))
SHARED_BY_SAMPLES_LEAST = 5  # fewer samples in all unnamed time say nothing about its parts


@dataclass
class Piece:
    """A stretch with its phase. `kind` is the innermost span's, "" where none was."""

    t0_ns: int
    t1_ns: int
    phase: str
    kind: str
    span: Span | None


@dataclass
class PhaseSplit:
    """Nanoseconds by phase, by kind of call within it, and by (phase, sampled stack)."""

    phase_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    kind_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    kind_samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    pieces: list[Piece] = field(default_factory=list)


def split(
    segments: list[Segment],
    validation: Iterable[Interval],
    samples: list[Sample],
    classify: Callable[[Sample, bool], str | None],
    loop_of: Callable[[Sample], str | None],
    user_phase: Callable[[int], str],
) -> PhaseSplit:
    """Share out the window.

    Args:
        segments: `timeline.partition` of the window.
        validation: disjoint stretches of validation.
        samples: stack samples of the same thread, by time.
        classify: the phase a sample's stack speaks for, given whether a forward pass came before it
            in the step; None for no opinion.
        loop_of: the inner Python loop a sample stands in, if any.
        user_phase: the phase a `whyidle.phase` name stands for.
    """
    pieces = _pieces(segments, Lookup(list(validation)), user_phase)
    has_loader = any(piece.kind == "next" for piece in pieces)
    result = PhaseSplit(pieces=pieces)
    by_piece = _samples_by_piece(pieces, samples)
    classify = _with_loops(classify, loop_of, pieces, by_piece)
    unnamed: Counter[str] = Counter()
    for index, piece in enumerate(pieces):
        here = by_piece.get(index, [])
        if piece.phase != "":
            _add(result, piece.phase, piece.kind, piece.t1_ns - piece.t0_ns, here)
            continue
        for sample in here:
            unnamed[classify(sample, has_loader and _follows_forward(pieces, index)) or "other"] += 1
    _share_unnamed(result, pieces, by_piece, unnamed, classify, has_loader)
    return result


def _with_loops(
    classify: Callable[[Sample, bool], str | None],
    loop_of: Callable[[Sample], str | None],
    pieces: list[Piece],
    by_piece: Mapping[int, list[Sample]],
) -> Callable[[Sample, bool], str | None]:
    """A loop that prints, logs or saves is there for that: what else it does belongs to the same phase."""
    purpose: dict[str, str] = {}
    for index, here in by_piece.items():
        if pieces[index].phase in PURPOSES and pieces[index].kind:
            for sample in here:
                loop = loop_of(sample)
                if loop is not None:
                    purpose[loop] = pieces[index].phase

    def with_loops(sample: Sample, follows_forward: bool) -> str | None:
        loop = loop_of(sample)
        return purpose.get(loop or "") or classify(sample, follows_forward)

    return with_loops


def _add(result: PhaseSplit, phase: str, kind: str, duration_ns: int, samples: list[Sample]) -> None:
    result.phase_ns[phase] += duration_ns
    result.samples[phase] += samples
    if kind and phase != "validation":
        result.kind_ns[kind] += duration_ns
        result.kind_samples[kind] += samples


def _share_unnamed(
    result: PhaseSplit,
    pieces: list[Piece],
    by_piece: Mapping[int, list[Sample]],
    votes: Counter[str],
    classify: Callable[[Sample, bool], str | None],
    has_loader: bool,
) -> None:
    """Time that no probe named goes to phases in the proportion of the samples that fell into it."""
    unnamed_ns = sum(piece.t1_ns - piece.t0_ns for piece in pieces if piece.phase == "")
    count = sum(votes.values())
    if count < SHARED_BY_SAMPLES_LEAST:
        result.phase_ns["other"] += unnamed_ns
        return
    shared_ns = 0
    for phase, number in votes.items():
        if phase != "other":
            share_ns = unnamed_ns * number // count
            result.phase_ns[phase] += share_ns
            result.kind_ns[f"unnamed_{phase}"] += share_ns
            shared_ns += share_ns
    result.phase_ns["other"] += unnamed_ns - shared_ns
    for index, samples in by_piece.items():
        if pieces[index].phase == "":
            for sample in samples:
                phase = classify(sample, has_loader and _follows_forward(pieces, index)) or "other"
                result.samples[phase].append(sample)
                if phase != "other":
                    result.kind_samples[f"unnamed_{phase}"].append(sample)


def _samples_by_piece(pieces: list[Piece], samples: list[Sample]) -> dict[int, list[Sample]]:
    lookup = Lookup([(piece.t0_ns, piece.t1_ns) for piece in pieces])
    by_piece: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        index = lookup.index(sample.t_ns)
        if index is not None:
            by_piece[index].append(sample)
    return by_piece


def _pieces(segments: list[Segment], validation: Lookup, user_phase: Callable[[int], str]) -> list[Piece]:
    pieces = [_piece(segment, user_phase) for segment in segments]
    for index, piece in enumerate(pieces):
        # A segment never straddles a validation stretch by much: both begin and end at calls.
        if (piece.t0_ns + piece.t1_ns) // 2 in validation and piece.phase not in OWN_NAME_IN_VALIDATION:
            piece.phase = "validation"
        elif piece.phase == "":
            piece.phase = _named_by_neighbours(pieces, index)
    return pieces


def _piece(segment: Segment, user_phase: Callable[[int], str]) -> Piece:
    span = segment.span
    if span is None:
        return Piece(segment.t0_ns, segment.t1_ns, "", "", None)
    phase = PHASE_OF_KIND[span.kind]
    if span.kind == "phase":
        phase = user_phase(span.a)
    elif segment.is_in_data and phase != "gc":
        phase = "data"
    return Piece(segment.t0_ns, segment.t1_ns, phase, span.kind, span)


def _named_by_neighbours(pieces: list[Piece], index: int) -> str:
    """Between forward and backward lies the loss; the rest stays unnamed."""
    before = pieces[index - 1].kind if index else ""
    after = [piece.kind for piece in pieces[index + 1 : index + 4]]
    if before not in ("forward", "loss") or not after:
        return ""
    if after[0] in ("loss", "backward") or (after[0] == "zero_grad" and "backward" in after):
        return "loss"
    return ""


def _follows_forward(pieces: list[Piece], index: int) -> bool:
    """Whether the step has computed before this stretch: then there is a result to look at.

    Means something only where a DataLoader tells the end of one step from the start of the next.
    """
    for piece in reversed(pieces[max(0, index - 12) : index]):
        if piece.phase in COMPUTE_PHASES:
            return True
        if piece.phase == "data":
            return False
    return False
