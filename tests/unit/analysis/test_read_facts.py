"""From whole records to facts: nothing a record may hold makes it fail, and what it says adds up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from factory import MS, S, Tape, run_of
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.facts import Facts
from whyidle.analysis.read_facts import run_facts
from whyidle.analysis.stacks import Frame
from whyidle.causes.diagnose import Diagnosis, diagnose
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord, RunRecord
from whyidle.reports.model import build

SCRIPT = Frame("/home/me/train.py", 5, "<module>")


def measured(*processes: ProcessRecord, **run: Any) -> Facts:
    found = run_facts(run_of(*processes, **run)).facts
    assert found is not None
    return found


def training(steps: int = 100, **step: int) -> Tape:
    tape = Tape()
    tape.note("loader", id=0, settings={"num_workers": 0, "batch_size": 8})
    tape.note("optimizer", id=0, device="cpu")
    tape.epoch(steps, **step)
    return tape


def phases_ns(facts: Facts) -> int:
    return sum(phase.host_ns for phase in facts.phases.values())


# -- the whole ------------------------------------------------------------------------------------


def test_a_plain_run() -> None:
    tape = training(100, data=8 * MS)
    tape.wait(3 * S)
    facts = measured(tape.record(), start_ns=tape.start_ns - 2 * S, end_ns=tape.now)
    assert facts.steps_count == 100
    assert facts.step_median_ns == 40 * MS
    assert facts.window_ns == 100 * 40 * MS + 100_000
    assert facts.start is not None
    assert facts.end is not None
    assert facts.start.time_ns == 2 * S
    assert facts.start.time_ns + facts.window_ns + facts.end.time_ns == facts.wall_ns
    assert phases_ns(facts) == facts.window_ns
    assert facts.phases["data"].host_ns == 100 * 8 * MS + 100_000
    assert facts.phases["data"].bubble_ns == facts.phases["data"].host_ns
    assert facts.phases["backward"].bubble_ns == 0


def test_calls_are_counted_with_their_own_time() -> None:
    tape = Tape()
    for step in range(60):
        tape.train()
        with tape.inside("log"):
            tape.wait(2 * MS)
            tape.call("print", 1 * MS)
        if step % 20 == 19:
            tape.call("checkpoint", 50 * MS, 1000, tape.name("save"))
    facts = measured(tape.record())
    assert facts.calls["log"].self_ns == pytest.approx(59 * 2 * MS, rel=0.02)
    assert facts.calls["log"].total_ns == pytest.approx(59 * 3 * MS, rel=0.02)
    assert facts.calls["checkpoint"].count == 3
    assert facts.calls["checkpoint"].bytes == 3000
    assert facts.calls["checkpoint"].names == {"save": 150 * MS}
    assert facts.calls["checkpoint"].steps_with_calls == 3


def test_debug_switches_count_by_backward_pass() -> None:
    tape = Tape()
    for step in range(40):
        tape.forward()
        tape.call("backward", 20 * MS, 0, schema.FLAG_ANOMALY if step % 2 else 0)
        tape.call("optimizer", 2 * MS)
    assert measured(tape.record()).flags == {"anomaly_mode": 0.5}


def test_validation_is_measured_against_training() -> None:
    tape = Tape()
    tape.note("loader", id=0, settings={"num_workers": 0, "batch_size": 8})
    tape.note("loader", id=1, settings={"num_workers": 0, "batch_size": 1})
    for _ in range(3):
        tape.epoch(20)
        tape.validate(30)
    facts = measured(tape.record())
    assert facts.validation is not None
    assert facts.validation.batches_count == 90
    assert facts.validation.batch_size == 1
    assert facts.validation.time_ns == facts.phases["validation"].host_ns
    assert facts.validation.samples_per_s == pytest.approx(90, rel=0.1)
    assert facts.loader is not None
    assert facts.loader.batches_count == 60


def test_replay_has_its_time_and_line() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for _ in range(100):
        tape.next(iterator, 5 * MS)
        tape.sample(Frame("/home/me/train.py", 9, "resume"), SCRIPT, t_ns=tape.now - 1)
    for _ in range(100):
        tape.next(iterator, 5 * MS)
        tape.train()
    facts = measured(tape.record())
    assert facts.replayed_batches == 100
    assert facts.replay_ns == 500 * MS
    assert facts.replay_line is not None
    assert facts.replay_line.place == "train.py:9"


def test_other_threads_are_seen_at_work() -> None:
    tape = training(100)
    for at in range(50):
        tape.tables[schema.STACK].append((tape.start_ns + at * 60 * MS, 99, at % 2, 0))
    frames = [["/home/me/decode.py", 18, "decode"], ["/home/me/decode.py", 3, "run"]]
    tape.note("stack", id=0, frames=frames, libraries=[], leaf="")
    tape.note("stack", id=1, frames=frames, libraries=["queue", "threading"], leaf="wait")
    facts = measured(tape.record())
    assert facts.threads is not None
    assert facts.threads.busy_ratio == pytest.approx(0.5, abs=0.05)
    assert facts.threads.count == 1
    assert facts.threads.line is not None
    assert facts.threads.line.place == "decode.py:18"


def test_rates_come_from_the_usage_rows_within_the_window() -> None:
    tape = Tape()
    iterator = tape.iterate()
    for step in range(100):
        tape.next(iterator, 8 * MS)
        tape.train()
        if step % 10 == 0:
            tape.usage(
                cpu_ns=step * 50 * MS, main_cpu_ns=step * 30 * MS, rss_bytes=1000, probe_ns=step * 1000
            )
    whole = run_facts(run_of(tape.record()))
    assert whole.facts is not None
    assert whole.facts.main_cpu_ns == pytest.approx(100 * 50 * MS, rel=0.03)
    assert whole.facts.main_thread_cpu_ns == pytest.approx(100 * 30 * MS, rel=0.03)
    assert whole.overhead_ratio == pytest.approx(1000 / (40 * MS), rel=0.03)


def test_without_usage_rows_rates_are_unknown() -> None:
    whole = run_facts(run_of(training().record()))
    assert whole.overhead_ratio is None
    assert whole.facts is not None
    assert whole.facts.main_cpu_ns is None
    assert whole.facts.involuntary_switches_per_s is None


@pytest.mark.parametrize(("growth_ms", "grows"), [(0, False), (1, True)])
def test_the_trend_of_the_step_time(growth_ms: int, grows: bool) -> None:
    tape = Tape()
    for step in range(200):
        tape.train(backward=(20 + growth_ms * step // 4) * MS)
    trend = measured(tape.record()).trend
    assert trend is not None
    assert (trend.last_ns > 1.3 * trend.first_ns) is grows
    assert (trend.monotony_ratio > 0.7) is grows
    if grows:
        assert trend.growing_phase == "backward"


def test_pauses_of_validation_are_no_growth() -> None:
    tape = Tape()
    for _ in range(10):
        tape.epoch(20)
        tape.validate(20)
    trend = measured(tape.record()).trend
    assert trend is not None
    assert trend.mean_ns == pytest.approx(33 * MS, rel=0.05)


# -- ranks and other processes --------------------------------------------------------------------


def test_the_lowest_rank_speaks_for_the_run() -> None:
    records = [training(60 + rank).record(rank=rank, pid=100 + rank) for rank in (1, 0)]
    whole = run_facts(run_of(*records))
    assert [(rank.rank, rank.pid, rank.steps_count) for rank in whole.ranks] == [(0, 100, 60), (1, 101, 61)]
    assert whole.facts is not None
    assert whole.facts.steps_count == 60


def test_a_second_job_without_a_rank_is_no_rank() -> None:
    whole = run_facts(run_of(training(60).record(), training(10).record()))
    assert len(whole.ranks) == 1


# -- what is missing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "processes", "problem"),
    [
        ({"entered": False}, [], "not_entered"),
        ({}, [Tape().record(torch=None)], "no_torch"),
        ({}, [Tape().record()], "no_steps"),
    ],
)
def test_why_there_are_no_steps(run: dict[str, Any], processes: list[ProcessRecord], problem: str) -> None:
    whole = run_facts(run_of(*processes, **run))
    assert whole.facts is None
    assert [each["id"] for each in whole.problems] == [problem]


@pytest.mark.parametrize(("steps", "problem"), [(1, "one_step"), (5, "too_short"), (20, None)])
def test_short_runs_are_called_short(steps: int, problem: str | None) -> None:
    problems = run_facts(run_of(training(steps).record())).problems
    assert [each["id"] for each in problems] == ([problem] if problem else [])


def test_two_steps_have_a_median() -> None:
    assert measured(training(2).record()).step_median_ns == 33 * MS


# -- thinned records ------------------------------------------------------------------------------


def thinned(kept_every: int) -> tuple[Tape, int]:
    """Ten minutes of training of which one stretch of two seconds in `kept_every` was kept."""
    tape = Tape(start_ns=0)
    tape.note("loader", id=0, settings={"num_workers": 0, "batch_size": 8})
    iterator = tape.iterate()
    steps = 0
    for stretch in range(60):
        is_kept = stretch % kept_every == 0
        dropped = {table: list(rows) for table, rows in tape.tables.items()}
        t0_ns = tape.now
        for _ in range(40):
            tape.next(iterator, 18 * MS, fetch={})
            tape.train()
            steps += 1
        if not is_kept:
            tape.tables = dropped
            tape.tables[schema.THINNED].append((t0_ns, tape.now, 40, 400))
    return tape, steps


def test_a_thinned_record_counts_all_steps_and_keeps_its_shares() -> None:
    full, steps = thinned(1)
    part, _ = thinned(4)
    whole, some = measured(full.record()), measured(part.record())
    assert some.steps_count == pytest.approx(steps, abs=130)
    assert some.step_median_ns == whole.step_median_ns
    assert phases_ns(some) == pytest.approx(some.window_ns, rel=0.001)
    assert some.share(some.phases["data"].host_ns) == pytest.approx(
        whole.share(whole.phases["data"].host_ns), rel=0.05
    )


def test_in_a_thinned_record_the_loader_waits_as_much_as_its_phase() -> None:
    part, _ = thinned(4)
    facts = measured(part.record())
    assert facts.loader is not None
    assert facts.loader.wait_ns == pytest.approx(facts.phases["data"].host_ns, rel=0.1)


def test_a_thinned_record_has_the_same_throughput() -> None:
    full, part = (run_facts(run_of(thinned(every)[0].record())) for every in (1, 4))
    assert part.samples_per_s == pytest.approx(full.samples_per_s, rel=0.1)


# -- anything at all ------------------------------------------------------------------------------

TIMES = st.integers(0, 400)
SMALL = st.integers(-1, 5)


def spans() -> st.SearchStrategy[tuple[int, ...]]:
    kinds = st.integers(-1, len(schema.SPAN_KINDS))
    return st.tuples(kinds, st.sampled_from((7, 8)), TIMES, TIMES, SMALL, SMALL)


def rows(table: int, start: tuple[int, ...] = ()) -> st.SearchStrategy[tuple[int, ...]]:
    """Rows of a table with times in its first columns named so, and small numbers else."""
    columns = []
    for name in schema.TABLES[table]:
        is_time = name in ("t_ns", "t0_ns", "t1_ns")
        columns.append(st.sampled_from((7, 8)) if name == "thread" else TIMES if is_time else SMALL)
    return st.tuples(*columns)


@st.composite
def records(draw: st.DrawFn) -> RunRecord:
    tape = Tape(start_ns=0)
    tape.tables[schema.SPAN] = draw(st.lists(spans(), max_size=25))
    optimizer = schema.KIND["optimizer"]
    tape.tables[schema.SPAN] += [
        (optimizer, 7, end - 1, end, 0, 0) for end in draw(st.lists(st.integers(1, 400), max_size=45))
    ]
    for table in (schema.NEXT, schema.FETCH, schema.STACK, schema.USAGE, schema.THINNED):
        tape.tables[table] = draw(st.lists(rows(table), max_size=10))
    for number in range(3):
        tape.note("iterator", id=number, loader=0, seed=1, t_ns=0)
    tape.note("loader", id=0, settings=draw(st.sampled_from(({}, {"num_workers": 0}, {"num_workers": 2}))))
    tape.sample(Frame("/home/me/train.py", 9, "load"), SCRIPT, t_ns=5)
    worker = Tape(start_ns=0)
    worker.note("worker", seed=1, worker=0, num_workers=2)
    worker.tables[schema.FETCH] = draw(st.lists(rows(schema.FETCH), max_size=10))
    return run_of(tape.record(), worker.record("worker"))


@given(records())
def test_whatever_a_record_holds_it_can_be_read(run: RunRecord) -> None:
    whole = run_facts(run)
    diagnosis = diagnose(whole.facts) if whole.facts is not None else Diagnosis()
    json.dumps(build(run, whole, diagnosis), allow_nan=False)
