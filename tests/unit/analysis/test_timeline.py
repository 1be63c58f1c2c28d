"""The partition of a thread's time against a clock that asks, tick by tick, which call is innermost."""

from __future__ import annotations

from factory import MS, Tape
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.timeline import DATA_KINDS, Span, partition, thread_spans
from whyidle.record import schema

KINDS = ("next", "fetch", "forward", "log", "gc")


@st.composite
def nested_spans(draw: st.DrawFn) -> list[Span]:
    """Spans as calls make them: children lie within their parents."""
    spans: list[Span] = []

    def add(low: int, high: int, depth: int) -> None:
        at = low
        while at < high and depth < 4 and draw(st.booleans()):
            t0 = draw(st.integers(at, high))
            t1 = draw(st.integers(t0, high))
            spans.append(Span(draw(st.sampled_from(KINDS)), t0, t1))
            add(t0, t1, depth + 1)
            at = t1

    add(0, 40, 0)
    spans.sort(key=lambda span: (span.t0_ns, -span.t1_ns))
    return spans


def innermost_at(spans: list[Span], tick: int) -> list[Span]:
    """The calls open at a tick, outermost first."""
    return [span for span in spans if span.t0_ns <= tick < span.t1_ns]


@given(nested_spans(), st.integers(-5, 45), st.integers(0, 50))
def test_every_tick_belongs_to_the_innermost_call(spans: list[Span], low: int, length: int) -> None:
    segments = partition(spans, (low, low + length))
    ticks = [(tick, segment) for segment in segments for tick in range(segment.t0_ns, segment.t1_ns)]
    assert [tick for tick, _ in ticks] == list(range(low, low + length))
    for tick, segment in ticks:
        open_calls = innermost_at(spans, tick)
        inner = open_calls[-1] if open_calls else None
        assert (segment.span is None) == (inner is None)
        if segment.span is not None and inner is not None:
            assert (segment.span.t0_ns, segment.span.t1_ns) == (inner.t0_ns, inner.t1_ns)
            if len({(span.t0_ns, span.t1_ns) for span in open_calls}) == len(open_calls):
                assert segment.span == inner
                assert segment.is_in_data == any(span.kind in DATA_KINDS for span in open_calls)


SPANS = st.builds(
    lambda kind, t0, length: Span(kind, t0, t0 + length),
    st.sampled_from(KINDS),
    st.integers(0, 40),
    st.integers(0, 20),
)


@given(st.lists(SPANS, max_size=15), st.integers(-5, 45), st.integers(0, 50))
def test_durations_add_up_even_where_calls_cross(spans: list[Span], low: int, length: int) -> None:
    ordered = sorted(spans, key=lambda span: (span.t0_ns, -span.t1_ns))
    segments = partition(ordered, (low, low + length))
    assert sum(segment.duration_ns for segment in segments) == length
    assert all(segment.duration_ns > 0 for segment in segments)


def test_a_call_that_outlasts_its_parent_is_cut_at_the_parents_end() -> None:
    segments = partition([Span("forward", 0, 10), Span("log", 5, 15)], (0, 20))
    assert [(s.span.kind if s.span else "", s.duration_ns) for s in segments] == [
        ("forward", 5),
        ("log", 5),
        ("", 10),
    ]


def test_what_happens_inside_the_loader_is_marked_however_deep() -> None:
    spans = [Span("next", 0, 10), Span("fetch", 1, 9), Span("gc", 2, 3)]
    assert all(segment.is_in_data for segment in partition(spans, (0, 10)))


def test_a_thread_has_its_own_calls_batches_and_fetches_only() -> None:
    tape, other = Tape(), Tape(thread=8)
    iterator = tape.iterate()
    tape.next(iterator, 5 * MS, fetch={})
    tape.train()
    other.call("log", 5 * MS)
    for table, rows in other.tables.items():
        tape.tables[table].extend(rows)
    kinds = [span.kind for span in thread_spans(tape.record(), tape.thread)]
    assert kinds == ["iter", "next", "fetch", "forward", "backward", "optimizer"]


def test_rows_of_unknown_kinds_and_backward_times_are_left_out() -> None:
    tape = Tape()
    tape.call("log", 1)
    tape.tables[schema.SPAN] += [(99, tape.thread, 0, 1, 0, 0), (0, tape.thread, 9, 1, 0, 0)]
    assert [span.kind for span in tape.spans()] == ["log"]
