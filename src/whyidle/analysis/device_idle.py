"""From markers and phases to the device's idle time in each phase."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from whyidle.analysis.bubbles import DRAINED_NS, Idle, Mark, Stretch, idle, lags_ns
from whyidle.analysis.step_phases import Piece
from whyidle.analysis.timeline import is_blocking
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord

# Calls that put no kernels of the model on the queue, whatever else they do. Reading a value back
# copies a few bytes.
LAUNCH_NOTHING = frozenset(
    (
        "next",
        "iter",
        "fetch",
        "log",
        "print",
        "tracker",
        "progress",
        "gc",
        "gc_collect",
        "checkpoint",
        "fsync",
        "sync",
    )
)
EDGE_NS = 3_000
COPY_BYTES_PER_NS = 12.0  # pinned memory over 16 lanes of PCIe 3; pageable memory reaches about half
COPY_LATENCY_NS = 8_000
LARGE_COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class DeviceIdle:
    """Idle share of the device while the host was in each phase, scaled from the marked steps to all.

    `after_sync_ratio`: of the window, idle time that follows a wait for the device, up to where the host
    is ahead again, but no more than was waited: without the wait the host would have been ahead by that.
    """

    ratio_by_phase: dict[str, float]  # of the phase's host time
    unknown_ratio: float  # of the marked time
    after_sync_ratio: float
    after_copy_ratio: float  # the same for copies that the host waits for
    drained_ratio_by_phase: dict[str, float]  # share of the ends of a phase with an empty queue


def device_idle(
    process: ProcessRecord, pieces: Sequence[Piece], window: tuple[int, int]
) -> DeviceIdle | None:
    """None where no markers were read."""
    rows = [row for row in process.rows(schema.MARK) if window[0] <= row[0] <= window[1]]
    if len(rows) < 10:
        return None
    marks = [Mark(row[0], row[1]) for row in rows]
    firsts = [bool(row[2]) for row in rows]
    stretches, kinds = _stretches(marks, firsts, pieces)
    if not stretches:
        return None
    measured = idle(marks, stretches)
    host: Counter[str] = Counter()
    for stretch in stretches:
        host.update(stretch.host_ns)
    whole_ns = sum(host.values())
    return DeviceIdle(
        ratio_by_phase={
            phase: min(1.0, measured.by_phase.get(phase, 0.0) / ns) for phase, ns in host.items() if ns
        },
        unknown_ratio=measured.unknown_ns / whole_ns if whole_ns else 0.0,
        after_sync_ratio=_after("sync", marks, stretches, kinds, measured) / whole_ns if whole_ns else 0.0,
        after_copy_ratio=_after("copy", marks, stretches, kinds, measured) / whole_ns if whole_ns else 0.0,
        drained_ratio_by_phase=_drained(marks, stretches),
    )


def _stretches(
    marks: Sequence[Mark], firsts: Sequence[bool], pieces: Sequence[Piece]
) -> tuple[list[Stretch], list[tuple[str, ...]]]:
    """The host time between neighbouring markers, and the kinds of call in it."""
    stretches: list[Stretch] = []
    kinds_of: list[tuple[str, ...]] = []
    at = 0
    for index, (before, after) in enumerate(pairwise(marks)):
        while at < len(pieces) and pieces[at].t1_ns <= before.host_ns:
            at += 1
        if firsts[index + 1]:
            continue
        span_ns = after.host_ns - before.host_ns
        host: dict[str, int] = defaultdict(int)
        kinds: list[str] = []
        look = at
        while look < len(pieces) and pieces[look].t0_ns < after.host_ns:
            piece = pieces[look]
            overlap = min(piece.t1_ns, after.host_ns) - max(piece.t0_ns, before.host_ns)
            if overlap > 0:
                host[piece.phase or "other"] += overlap
                # Setting a marker takes some microseconds of unnamed time itself.
                matters = overlap > (EDGE_NS if piece.kind else max(EDGE_NS, span_ns // 10))
                if matters and piece.kind not in kinds:
                    kinds.append(piece.kind)
            look += 1
        if host:
            here = pieces[at:look]
            key = _key(kinds, here, before, after) or (
                _gap_key(pieces, at, look) if "" in kinds and set(kinds) - LAUNCH_NOTHING else ""
            )
            if key and "validation" in host:
                key += ">validation"
            stretches.append(Stretch(index, key, dict(host), _copying_ns(here, before)))
            kinds_of.append(tuple(kinds))
    return stretches, kinds_of


def _key(kinds: Sequence[str], here: Sequence[Piece], before: Mark, after: Mark) -> str:
    """The launching calls of a stretch, and which of their ends lie outside it: a copy or a read in the
    middle of a forward pass parts it into stretches that launch different kernels."""
    names = []
    for kind in kinds:
        if not kind or kind in LAUNCH_NOTHING:
            continue
        spans = [piece.span for piece in here if piece.kind == kind and piece.span is not None]
        starts_before = any(span.t0_ns < before.host_ns - EDGE_NS for span in spans)
        ends_after = any(span.t1_ns > after.host_ns + EDGE_NS for span in spans)
        names.append(kind + "-" * (starts_before + 2 * ends_after))
    return ">".join(names)


def _copying_ns(here: Sequence[Piece], before: Mark) -> float:
    """The least that the copies of a stretch keep the device busy; all of it for large ones, whose host
    does nothing but wait for the transfer."""
    copies = [piece.span for piece in here if piece.kind == "copy" and piece.t0_ns >= before.host_ns]
    spans = [span for span in copies if span is not None]
    if any(is_blocking(span) and span.a >= LARGE_COPY_BYTES for span in spans):
        return float("inf")
    return sum(span.a / COPY_BYTES_PER_NS + COPY_LATENCY_NS for span in spans)


def _gap_key(pieces: Sequence[Piece], first: int, last: int) -> str:
    """Stretches outside every call are alike when they lie between the same calls."""
    before = next((pieces[at].kind for at in range(first, max(-1, first - 3), -1) if pieces[at].kind), "")
    after = next(
        (pieces[at].kind for at in range(last - 1, min(len(pieces), last + 2)) if pieces[at].kind), ""
    )
    return f"gap:{before}>{after}"


def _after(
    kind: str,
    marks: Sequence[Mark],
    stretches: Sequence[Stretch],
    kinds: Sequence[tuple[str, ...]],
    measured: Idle,
) -> float:
    """Idle time that a wait for the device answers for, see `DeviceIdle.after_sync_ratio`."""
    lags = lags_ns(marks)
    owned = 0.0
    left = 0.0  # what the last wait may still answer for
    for stretch, names in zip(stretches, kinds, strict=True):
        if kind in names:
            left += float(
                min(lags[stretch.start], marks[stretch.start + 1].host_ns - marks[stretch.start].host_ns)
            )
            continue
        if left > 0:
            idle_ns = min(left, measured.by_stretch.get(stretch.start, 0.0))
            owned += idle_ns
            left -= idle_ns
        if lags[stretch.start + 1] > DRAINED_NS:
            left = 0.0
    return owned


def _drained(marks: Sequence[Mark], stretches: Sequence[Stretch]) -> dict[str, float]:
    lags = lags_ns(marks)
    ends: Counter[str] = Counter()
    drained: Counter[str] = Counter()
    for stretch in stretches:
        if stretch.key:
            phase = max(stretch.host_ns, key=lambda name: stretch.host_ns[name])
            ends[phase] += 1
            drained[phase] += lags[stretch.start + 1] <= DRAINED_NS
    return {phase: drained[phase] / count for phase, count in ends.items()}
