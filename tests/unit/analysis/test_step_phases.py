"""The split of the window into phases: nothing is lost, and each stretch gets the name it should."""

from __future__ import annotations

from collections.abc import Callable

from factory import MS, Tape, sample_at
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.stacks import Sample
from whyidle.analysis.step_phases import PHASE_OF_KIND, PHASES, PhaseSplit, split
from whyidle.analysis.timeline import Segment, Span, partition
from whyidle.record import schema


def no_opinion(sample: Sample, follows_forward: bool) -> str | None:
    return None


def no_loop(sample: Sample) -> str | None:
    return None


def by_function(sample: Sample, follows_forward: bool) -> str | None:
    name = sample.stack.frames[0].function if sample.stack.frames else ""
    return name if name in PHASES else None


def split_tape(
    tape: Tape,
    samples: list[Sample] | None = None,
    validation: tuple[tuple[int, int], ...] = (),
    classify: Callable[[Sample, bool], str | None] = by_function,
    loop_of: Callable[[Sample], str | None] = no_loop,
) -> PhaseSplit:
    segments = partition(tape.spans(), (tape.start_ns, tape.now))
    return split(segments, validation, samples or [], classify, loop_of, lambda number: "metrics")


SPANS = st.builds(
    lambda kind, t0, length: Span(kind, t0, t0 + length),
    st.sampled_from(sorted(PHASE_OF_KIND)),
    st.integers(0, 60),
    st.integers(0, 25),
)
SAMPLES = st.builds(
    lambda t_ns, name: sample_at(t_ns, name, "<module>"),
    st.integers(-5, 70),
    st.sampled_from((*PHASES, "anything")),
)


@given(st.lists(SPANS, max_size=15), st.lists(SAMPLES, max_size=20), st.tuples(*[st.integers(0, 60)] * 2))
def test_phases_add_up_to_the_window_whatever_happened(
    spans: list[Span], samples: list[Sample], validation: tuple[int, int]
) -> None:
    segments = partition(sorted(spans, key=lambda span: (span.t0_ns, -span.t1_ns)), (0, 60))
    samples.sort(key=lambda sample: sample.t_ns)
    result = split(segments, [validation], samples, by_function, no_loop, lambda number: "other")
    assert sum(result.phase_ns.values()) == 60
    assert all(duration_ns >= 0 for duration_ns in result.phase_ns.values())
    assert set(result.phase_ns) <= set(PHASES)
    assert sum(result.kind_ns.values()) <= 60
    named = sum(map(len, result.samples.values()))
    assert named <= sum(1 for sample in samples if 0 <= sample.t_ns < 60)


def test_each_kind_of_call_has_a_phase() -> None:
    assert {*schema.SPAN_KINDS, "next", "fetch"} == set(PHASE_OF_KIND)
    assert set(PHASE_OF_KIND.values()) <= set(PHASES)


def test_time_between_forward_and_backward_is_the_loss() -> None:
    tape = Tape()
    tape.train()
    tape.forward(10 * MS)
    tape.wait(7 * MS)
    tape.call("backward", 20 * MS)
    result = split_tape(tape)
    assert result.phase_ns["loss"] == 7 * MS


def test_zeroing_gradients_before_backward_does_not_hide_the_loss() -> None:
    tape = Tape()
    tape.forward(10 * MS)
    tape.wait(7 * MS)
    tape.call("zero_grad", 1 * MS)
    tape.call("backward", 20 * MS)
    assert split_tape(tape).phase_ns["loss"] == 7 * MS


def test_a_loss_module_belongs_to_the_loss_with_the_time_around_it() -> None:
    tape = Tape()
    tape.forward(10 * MS)
    tape.wait(1 * MS)
    tape.call("loss", 3 * MS)
    tape.wait(1 * MS)
    tape.call("backward", 20 * MS)
    assert split_tape(tape).phase_ns["loss"] == 5 * MS


def test_unnamed_time_goes_to_phases_in_the_proportion_of_its_samples() -> None:
    tape = Tape()
    tape.train()
    start = tape.now
    tape.wait(100 * MS)
    tape.forward()
    names = ["metrics"] * 6 + ["logging"] * 3 + ["anything"]
    samples = [sample_at(start + at * MS, name, "<module>") for at, name in enumerate(names, 1)]
    result = split_tape(tape, samples)
    assert result.phase_ns["metrics"] == 60 * MS
    assert result.phase_ns["logging"] == 30 * MS
    assert result.phase_ns["other"] == 10 * MS
    assert result.kind_ns["unnamed_logging"] == 30 * MS
    assert len(result.samples["metrics"]) == 6


def test_a_handful_of_samples_says_nothing() -> None:
    tape = Tape()
    tape.train()
    tape.wait(100 * MS)
    samples = [sample_at(tape.now - at * MS, "metrics", "<module>") for at in (4, 3, 2, 1)]
    assert split_tape(tape, samples).phase_ns["other"] == 100 * MS


def test_what_the_loader_does_inside_is_data_but_a_collection_there_is_not() -> None:
    spans = [Span("next", 0, 100), Span("log", 10, 20), Span("forward", 30, 50), Span("gc", 60, 75)]
    result = split(partition(spans, (0, 100)), [], [], no_opinion, no_loop, lambda number: "other")
    assert result.phase_ns["data"] == 85
    assert result.phase_ns["gc"] == 15


def test_validation_takes_what_happens_in_it_but_not_checkpoints() -> None:
    tape = Tape()
    tape.train()
    start = tape.now
    tape.evaluate(10 * MS)
    tape.call("print", 1 * MS)
    tape.call("checkpoint", 5 * MS)
    result = split_tape(tape, validation=((start, tape.now),))
    assert result.phase_ns["validation"] == 11 * MS
    assert result.phase_ns["checkpoint"] == 5 * MS
    assert "print" not in result.kind_ns


def test_a_loop_that_prints_is_there_for_printing() -> None:
    tape = Tape()
    tape.train()
    samples = []
    for _ in range(10):
        tape.call("print", 1 * MS)
        samples.append(sample_at(tape.now - 1, "report", "<module>"))
        tape.wait(9 * MS)
        samples.append(sample_at(tape.now - 1, "report", "<module>"))
    tape.forward()
    result = split_tape(tape, samples, loop_of=lambda sample: "train.py:10")
    assert result.phase_ns["logging"] == 100 * MS


def test_a_phase_the_user_names_is_taken_at_their_word() -> None:
    tape = Tape()
    tape.call("phase", 5 * MS)
    assert split_tape(tape).phase_ns["metrics"] == 5 * MS


def test_samples_before_the_forward_pass_do_not_follow_it() -> None:
    """Between data and forward there is no result yet that a metric could be made of."""
    asked: list[bool] = []

    def ask(sample: Sample, follows_forward: bool) -> str | None:
        asked.append(follows_forward)
        return None

    segments = [
        Segment(0, 10, Span("next", 0, 10)),
        Segment(10, 20, None),
        Segment(20, 30, Span("forward", 20, 30)),
        Segment(30, 40, Span("backward", 30, 40)),
        Segment(40, 50, None),
    ]
    split(segments, [], [sample_at(15, "f", "<module>")], ask, no_loop, lambda number: "other")
    assert set(asked) == {False}
    asked.clear()
    split(segments, [], [sample_at(45, "f", "<module>")], ask, no_loop, lambda number: "other")
    assert set(asked) == {True}
