"""One thread's spans as a partition of time: which call was innermost, when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whyidle.record import schema
from whyidle.record.reader import ProcessRecord


@dataclass(frozen=True, slots=True)
class Span:
    """One call. `a` and `b` as in `record.schema.SPAN_KINDS`; for "next", iterator and batches ready."""

    kind: str
    t0_ns: int
    t1_ns: int
    a: int = 0
    b: int = 0

    @property
    def duration_ns(self) -> int:
        return self.t1_ns - self.t0_ns


def is_blocking(copy: Span) -> bool:
    """Whether the host waits for the copy: pageable memory is staged, and `non_blocking` must be asked."""
    return not (copy.b & schema.COPY_PINNED and copy.b & schema.COPY_NON_BLOCKING)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch whose innermost call is `span`; None where no probe was inside any call."""

    t0_ns: int
    t1_ns: int
    span: Span | None
    is_in_data: bool = False  # inside the DataLoader's iterator, however deep

    @property
    def duration_ns(self) -> int:
        return self.t1_ns - self.t0_ns


DATA_KINDS = ("next", "iter", "fetch")


def thread_spans(process: ProcessRecord, thread: int) -> list[Span]:
    """All spans of a thread, by start, outer before inner."""
    spans = [
        Span(schema.SPAN_KINDS[kind], t0_ns, t1_ns, a, b)
        for kind, row_thread, t0_ns, t1_ns, a, b in process.rows(schema.SPAN)
        if row_thread == thread and 0 <= kind < len(schema.SPAN_KINDS) and t1_ns >= t0_ns
    ]
    spans += [
        Span("next", row[1], row[2], row[3], row[4]) for row in process.rows(schema.NEXT) if row[0] == thread
    ]
    spans += [Span("fetch", row[1], row[2]) for row in process.rows(schema.FETCH) if row[0] == thread]
    spans.sort(key=lambda span: (span.t0_ns, -span.t1_ns))
    return spans


def partition(spans: Iterable[Span], window: tuple[int, int]) -> list[Segment]:
    """The window cut into stretches by innermost span; durations add up to the window exactly.

    Spans come sorted by (start, -end) and nest; one that outlasts its parent is cut at the parent's end.
    """
    low, high = window
    segments: list[Segment] = []
    open_spans: list[tuple[Span, int, bool]] = []  # span, its end within its parent, inside data
    at = low

    def advance(until: int) -> None:
        nonlocal at
        until = min(until, high)
        if until > at:
            span, _, is_in_data = open_spans[-1] if open_spans else (None, 0, False)
            segments.append(Segment(at, until, span, is_in_data))
            at = until

    for span in spans:
        if span.t1_ns <= low:
            continue
        if span.t0_ns >= high:
            break
        while open_spans and open_spans[-1][1] <= span.t0_ns:
            advance(open_spans[-1][1])
            open_spans.pop()
        advance(span.t0_ns)
        end_ns, is_in_data = span.t1_ns, span.kind in DATA_KINDS
        if open_spans:
            end_ns = min(end_ns, open_spans[-1][1])
            is_in_data = is_in_data or open_spans[-1][2]
        open_spans.append((span, end_ns, is_in_data))
    while open_spans:
        advance(open_spans[-1][1])
        open_spans.pop()
    advance(high)
    return segments
