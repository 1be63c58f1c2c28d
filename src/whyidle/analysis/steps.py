"""Where training steps begin and end, which loaders feed them, and which stretches are validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from whyidle.analysis.intervals import Interval, union
from whyidle.analysis.timeline import Span
from whyidle.record import schema

COMPUTE_KINDS = ("forward", "loss", "backward", "optimizer", "zero_grad")
REPLAY_LEAST_BATCHES = 20  # fewer drawn without a step are a peek, a prefetch or a sanity check
# More often than that it is no validation but part of the step: acting, a teacher, a target network.
MOST_VALIDATIONS_PER_STEP = 0.5
WARM_UP_FACTOR = 3.0
WARM_UP_MOST_STEPS = 10


@dataclass(frozen=True)
class Steps:
    """The shape of a training run on one thread; all times in nanoseconds of the record's clock."""

    ends_ns: tuple[int, ...]
    first_request_ns: int
    warm_up_end_ns: int | None
    last_activity_ns: int
    training_iterators: frozenset[int]
    validation: tuple[Interval, ...]
    validation_iterators: frozenset[int]
    replay: tuple[Interval, ...] = ()
    replayed_batches: int = 0
    micro_steps: int = 0

    @property
    def window(self) -> Interval:
        """The steady window: first batch request, or the end of warm-up, to the last activity."""
        start_ns = self.warm_up_end_ns or self.first_request_ns
        return (start_ns, max(start_ns, self.last_activity_ns))

    @property
    def count(self) -> int:
        low, high = self.window
        return sum(1 for end_ns in self.ends_ns if low < end_ns <= high)


@dataclass
class _Stretch:
    """What happened from one batch request or optimizer step to the next."""

    start_ns: int
    iterator: int | None
    end_ns: int = 0
    forwards: list[Span] = field(default_factory=list)
    backwards: int = 0
    steps: int = 0
    has_ended: bool = False
    is_making: bool = False  # the iterator is made here, its first batch not yet asked for


def find_steps(spans: list[Span], ended_nexts: frozenset[int] = frozenset()) -> Steps | None:
    """Read the shape of the run out of one thread's spans; None where nothing was trained.

    Args:
        spans: as `timeline.thread_spans` gives them.
        ended_nexts: start times of those `next` calls that ended an iteration.
    """
    primary = _primary_optimizers(spans)
    if not primary:
        return None
    ends_ns = tuple(span.t1_ns for span in spans if span.kind == "optimizer" and span.a in primary)
    stretches = _stretches(spans, ended_nexts)
    training = frozenset(
        stretch.iterator for stretch in stretches if stretch.iterator is not None and stretch.backwards
    )
    model = _model_classes(stretches)
    validation, validation_iterators = _validation(stretches, model, training)
    replay, replayed = _replay(stretches, training)
    first_request_ns = _first_request(spans, training)
    return Steps(
        ends_ns=ends_ns,
        first_request_ns=first_request_ns,
        warm_up_end_ns=None if replay else _warm_up_end(spans, ends_ns, first_request_ns),
        last_activity_ns=max([ends_ns[-1], *(end for _, end in validation), *_last_saves(spans)]),
        training_iterators=training,
        validation=tuple(validation),
        validation_iterators=validation_iterators,
        replay=tuple(replay),
        replayed_batches=replayed,
        micro_steps=sum(1 for span in spans if span.kind == "backward"),
    )


def _primary_optimizers(spans: list[Span]) -> frozenset[int]:
    """The optimizers whose step ends a training step: the one that steps most, on a tie the last to begin,
    and those that take turns with it in time, as in one fold after another."""
    times: dict[int, list[int]] = {}
    for span in spans:
        if span.kind == "optimizer":
            times.setdefault(span.a, []).append(span.t0_ns)
    chosen: list[int] = []
    for number in sorted(times, key=lambda number: (-len(times[number]), -times[number][0])):
        first, last = times[number][0], times[number][-1]
        if all(last < times[other][0] or first > times[other][-1] for other in chosen):
            chosen.append(number)
    return frozenset(chosen)


def _stretches(spans: list[Span], ended_nexts: frozenset[int]) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    current: _Stretch | None = None
    for span in _tokens(spans):
        if span.kind == "next":
            current = _Stretch(span.t0_ns, span.a, has_ended=span.t0_ns in ended_nexts)
            stretches.append(current)
        elif span.kind == "iter":
            current = _Stretch(span.t0_ns, span.b, is_making=True)
            stretches.append(current)
        elif current is None:
            current = _Stretch(span.t0_ns, None)
            stretches.append(current)
        current.end_ns = span.t1_ns
        if span.kind == "forward":
            current.forwards.append(span)
        elif span.kind == "backward":
            current.backwards += 1
        elif span.kind == "optimizer":
            current.steps += 1
            current = _Stretch(span.t1_ns, None, end_ns=span.t1_ns)
            stretches.append(current)
    for before, after in pairwise(stretches):
        before.end_ns = after.start_ns
    return stretches


def _tokens(spans: list[Span]) -> list[Span]:
    """The calls that shape a run, by end: what a closure does comes before the step that calls it.

    A dataset may call a model of its own; what happens inside `next` is no step.
    """
    tokens = []
    inside_until_ns = 0
    for span in spans:
        if span.t0_ns < inside_until_ns:
            continue
        if span.kind == "next":
            inside_until_ns = span.t1_ns
        if span.kind in ("iter", "next", "forward", "backward", "optimizer"):
            tokens.append(span)
    return sorted(tokens, key=lambda span: span.t1_ns)


def _model_classes(stretches: list[_Stretch]) -> frozenset[int]:
    """Names of the modules called in stretches that train."""
    return frozenset(span.a for stretch in stretches if stretch.backwards for span in stretch.forwards)


def _is_evaluation(span: Span) -> bool:
    return not span.b & schema.FORWARD_GRAD or not span.b & schema.FORWARD_TRAINING


def _validation(
    stretches: list[_Stretch], model: frozenset[int], training: frozenset[int]
) -> tuple[list[Interval], frozenset[int]]:
    """Stretches that call the model and train nothing, and runs of evaluating calls within others."""
    found: list[Interval] = []
    inside_training: list[Interval] = []
    iterators: set[int] = set()
    for stretch in stretches:
        evaluating = [span for span in stretch.forwards if _is_evaluation(span)]
        if not evaluating:
            continue
        if not stretch.backwards and not stretch.steps and len(evaluating) == len(stretch.forwards):
            if stretch.iterator is not None and stretch.iterator not in training:
                iterators.add(stretch.iterator)
                found.append((stretch.start_ns, stretch.end_ns))
            elif stretch.iterator is None or stretch.has_ended:
                found.append((evaluating[0].t0_ns, evaluating[-1].t1_ns))
        else:
            run = [
                span
                for span in evaluating
                if span.a in model and not span.b & (schema.FORWARD_GRAD | schema.FORWARD_TRAINING)
            ]
            if len(run) > 1:
                inside_training.append((run[0].t0_ns, run[-1].t1_ns))
    # Making a validation iterator, a batch fetched ahead and the call that ends it belong to it.
    found += [
        (stretch.start_ns, stretch.end_ns)
        for stretch in stretches
        if stretch.iterator in iterators and not (stretch.forwards or stretch.backwards or stretch.steps)
    ]
    steps = sum(stretch.steps for stretch in stretches)
    if len(inside_training) <= MOST_VALIDATIONS_PER_STEP * max(steps, 2):
        found += inside_training
    regions = union(found)
    if len(regions) > MOST_VALIDATIONS_PER_STEP * max(steps, 2):
        return [], frozenset(iterators)
    return regions, frozenset(iterators)


def _replay(stretches: list[_Stretch], training: frozenset[int]) -> tuple[list[Interval], int]:
    """Runs of batches drawn from a training iterator and never used."""
    found: list[Interval] = []
    drawn = 0
    run: list[_Stretch] = []

    def close() -> None:
        nonlocal drawn
        if len(run) >= REPLAY_LEAST_BATCHES:
            found.append((run[0].start_ns, run[-1].end_ns))
            drawn += len(run)
        run.clear()

    for stretch in stretches:
        if stretch.is_making:
            continue
        is_unused = not (stretch.forwards or stretch.backwards or stretch.steps or stretch.has_ended)
        if is_unused and stretch.iterator in training:
            run.append(stretch)
        else:
            close()
    close()
    return found, drawn


def _first_request(spans: list[Span], training: frozenset[int]) -> int:
    for span in spans:
        if (span.kind == "next" and span.a in training) or (span.kind == "iter" and span.b in training):
            return span.t0_ns
    return next(span.t0_ns for span in spans if span.kind in ("forward", "backward", "optimizer"))


def _last_saves(spans: list[Span]) -> list[int]:
    return [span.t1_ns for span in spans if span.kind == "checkpoint"]


def _warm_up_end(spans: list[Span], ends_ns: tuple[int, ...], first_request_ns: int) -> int | None:
    """The end of leading steps that compute far longer than the rest: compilation, autotuning, caches."""
    if len(ends_ns) < 2 * WARM_UP_MOST_STEPS:
        return None
    compute_ns = [0] * len(ends_ns)
    step = 0
    covered_until_ns = 0
    for span in spans:
        if span.kind not in COMPUTE_KINDS or span.t0_ns < max(covered_until_ns, first_request_ns):
            continue
        if span.kind == "forward" and not span.b & schema.FORWARD_GRAD:
            continue
        covered_until_ns = span.t1_ns
        while step < len(ends_ns) - 1 and span.t1_ns > ends_ns[step]:
            step += 1
        compute_ns[step] += span.duration_ns
    usual_ns = median(compute_ns)
    warm = 0
    while warm < WARM_UP_MOST_STEPS and compute_ns[warm] > WARM_UP_FACTOR * usual_ns:
        warm += 1
    # What lies before them and is no compute (a replayed loader, workers that start) is the run's own.
    if not warm or sum(compute_ns[:warm]) < 0.5 * (ends_ns[warm - 1] - first_request_ns):
        return None
    return ends_ns[warm - 1]
