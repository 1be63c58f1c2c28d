"""Facts about the loader, from records with and without workers."""

from __future__ import annotations

from typing import Any

import pytest
from factory import MS, S, Tape
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.facts import Loader
from whyidle.analysis.loader_facts import loader_facts, percentile
from whyidle.record.reader import ProcessRecord

SEED = 4711
SETTINGS = {"num_workers": 0, "batch_size": 10, "in_order": True, "dataset": "Photos"}


def measured(tape: Tape, *workers: ProcessRecord, cores: float = 8.0, main_cpu_ns: int = 0) -> Loader:
    loader = loader_facts(
        tape.record(), workers, tape.steps(), cores=cores, main_cpu_ns=main_cpu_ns, line=None
    )
    assert loader is not None
    return loader


def tape_with(**settings: Any) -> Tape:
    tape = Tape()
    tape.note("loader", id=0, settings={**SETTINGS, **settings})
    return tape


def in_the_loop(steps: int = 50, data: int = 30 * MS, **fetch: int) -> Tape:
    tape = tape_with()
    iterator = tape.iterate()
    for _ in range(steps):
        tape.next(iterator, data, fetch=fetch)
        tape.train()
    tape.next(iterator, 10_000, has_ended=True)
    return tape


def with_workers(
    steps: int = 60,
    workers: int = 2,
    wait: int = 20 * MS,
    service: int = 100 * MS,
    slow: frozenset[int] = frozenset(),
    **fetch: int,
) -> tuple[Tape, list[ProcessRecord]]:
    """Each worker makes its batches back to back; those in `slow` take ten times as long."""
    tape = tape_with(num_workers=workers, prefetch_factor=2, persistent_workers=False, start_method="fork")
    tape.note("optimizer", id=0, device="cpu")
    iterator = tape.iterate(duration_ns=5 * MS, seed=SEED)
    start = tape.now
    for step in range(steps):
        tape.next(iterator, 300 * MS if step == 0 else wait, ready=0, behind=0)
        tape.train()
    tape.next(iterator, 40 * MS, has_ended=True)
    return tape, [worker(number, workers, start, steps, service, slow, fetch) for number in range(workers)]


def worker(
    number: int,
    workers: int,
    start: int,
    steps: int,
    service: int,
    slow: frozenset[int],
    fetch: dict[str, int],
    seed: int = SEED,
) -> ProcessRecord:
    tape = Tape(start, thread=100 + number)
    tape.note("worker", seed=seed, worker=number, num_workers=workers)
    tape.note("worker_threads", count=1)
    for batch in range(number, steps, workers):
        duration = 10 * service if batch in slow else service
        tape.fetch(tape.now, tape.now + duration, **fetch)
        tape.now += duration
    return tape.record("worker")


# -- in the loop itself ---------------------------------------------------------------------------


def test_the_waits_of_a_loop_that_loads_itself() -> None:
    loader = measured(in_the_loop(50, 30 * MS))
    assert loader.num_workers == 0
    assert loader.batches_count == 50
    assert loader.steady_wait_ns == 49 * 30 * MS
    assert loader.wait_ns == 50 * 30 * MS + 100_000  # the making of the iterator too
    assert loader.epoch_starts_ns == (30 * MS + 100_000,)
    assert loader.epoch_ends_ns == 0  # after the last step, outside the window
    assert loader.wait_p50_ns == 30 * MS


def test_the_batches_made_in_the_loop_are_timed_there() -> None:
    loader = measured(in_the_loop(50, 30 * MS, cpu_ns=15 * MS, collate_ns=3 * MS, opens=20, read_bytes=4000))
    assert loader.service_ns == pytest.approx(30 * MS, rel=0.01)
    assert loader.on_cpu_ratio == pytest.approx(0.5, rel=0.01)
    assert loader.collate_ratio == pytest.approx(0.1, rel=0.01)
    assert loader.samples_per_batch == 10
    assert loader.opens_per_sample == 2
    assert loader.bytes_per_sample == 400
    assert loader.worker_busy_ratio is None
    assert loader.late_share_ratio is None


def test_without_workers_the_model_says_what_was_measured() -> None:
    loader = measured(in_the_loop(50, 30 * MS))
    step_ns = 30 * MS + 32 * MS
    assert loader.predictions["as_is"] == pytest.approx(step_ns, rel=0.02)
    assert loader.predictions["free_data"] == pytest.approx(32 * MS, rel=0.02)
    assert loader.predictions["more_workers"] < 0.6 * step_ns
    assert loader.suggested_num_workers is not None
    assert loader.suggested_prefetch_factor is None


def test_batches_of_other_loaders_do_not_count() -> None:
    tape = tape_with()
    tape.note("loader", id=1, settings={**SETTINGS, "batch_size": 99})
    for _ in range(2):
        tape.epoch(20, data=5 * MS)
        tape.validate(30, data=50 * MS)
    loader = measured(tape)
    assert loader.batches_count == 40
    assert loader.batch_size == 10
    assert loader.wait_p50_ns == 5 * MS
    assert len(loader.epoch_starts_ns) == 2


def test_what_the_kernel_did_not_count_stays_unknown() -> None:
    loader = measured(in_the_loop(50, run_delay_ns=-1, read_bytes=-1, max_sample_ns=-1))
    assert loader.run_delay_ratio is None
    assert loader.bytes_per_sample is None
    assert loader.sample_max_ns is None


def test_without_timed_batches_only_the_waits_are_known() -> None:
    tape = tape_with()
    tape.epoch(30)
    loader = measured(tape)
    assert loader.service_ns is None
    assert loader.predictions == {}
    assert loader.suggested_num_workers is None


def test_a_run_without_a_loader_has_none() -> None:
    tape = Tape()
    for _ in range(20):
        tape.train()
    found = loader_facts(tape.record(), [], tape.steps(), cores=None, main_cpu_ns=None, line=None)
    assert found is None


def test_a_loader_whose_settings_were_not_noted_is_still_measured() -> None:
    tape = Tape()
    tape.epoch(30, data=5 * MS)
    loader = measured(tape)
    assert loader.batches_count == 30
    assert loader.batch_size is None


def test_reading_the_same_file_again_is_counted_per_sample() -> None:
    tape = in_the_loop(50, opens=20)
    tape.note("reopened", paths=[["/data/boxes.json", 500], ["/data/a.jpg", 3]], distinct=2, fetches=50)
    loader = measured(tape)
    assert loader.reopened_path == "/data/boxes.json"
    assert loader.reopened_per_sample == 1.0


# -- with workers ---------------------------------------------------------------------------------


def test_workers_that_are_always_busy() -> None:
    tape, workers = with_workers()
    loader = measured(tape, *workers)
    assert loader.num_workers == 2
    assert loader.worker_busy_ratio == pytest.approx(1.0, abs=0.15)
    assert loader.service_ns == 100 * MS
    assert loader.first_start_ns == 300 * MS + 5 * MS
    assert loader.steady_wait_ns == 59 * 20 * MS
    assert loader.worker_threads == 1
    assert loader.ready_p50 == 0
    assert loader.start_method == "fork"


def test_workers_of_another_loader_are_told_apart_by_their_seed() -> None:
    tape, workers = with_workers()
    stranger = worker(0, 2, tape.start_ns, 60, 900 * MS, frozenset(), {}, seed=1)
    assert measured(tape, *workers, stranger).service_ns == 100 * MS


def test_busy_workers_are_asked_for_more() -> None:
    tape, workers = with_workers()
    loader = measured(tape, *workers)
    assert loader.predictions["more_workers"] < loader.predictions["as_is"]
    assert loader.suggested_num_workers is not None
    assert loader.suggested_num_workers > 2


def test_no_more_workers_than_the_cores_can_feed() -> None:
    tape, workers = with_workers()
    loader = measured(tape, *workers, cores=2.0, main_cpu_ns=60 * 32 * MS)
    bound_ns = (100 * MS + 32 * MS) / 2
    assert loader.predictions["more_workers"] >= 0.99 * bound_ns


def test_time_in_line_for_a_core_is_not_the_batch_s_own() -> None:
    tape, workers = with_workers(run_delay_ns=50 * MS)
    loader = measured(tape, *workers)
    assert loader.run_delay_ratio == 0.5
    assert loader.predictions["more_workers"] < 40 * MS


def test_late_batches_get_the_blame_for_the_wait_they_cause() -> None:
    tape, workers = with_workers(steps=60, slow=frozenset((20, 40)))
    loader = measured(tape, *workers)
    assert loader.late_share_ratio is not None
    assert loader.late_share_ratio > 0.3


def test_one_wait_is_blamed_once_however_many_batches_are_late() -> None:
    """Two workers sit on slow batches at the same time; most of the waiting has nothing to do with them."""
    tape = tape_with(num_workers=2)
    iterator = tape.iterate(seed=SEED)
    tape.next(iterator, 1 * MS, ready=0)
    tape.train()
    waits = []
    for _ in range(40):
        waits.append(tape.now)
        tape.next(iterator, 50 * MS, ready=0)
        tape.train()
    workers = []
    for number in range(2):
        own = Tape(thread=100 + number)
        own.note("worker", seed=SEED, worker=number, num_workers=2)
        for at, wait in enumerate(waits):
            is_slow = at % 4 == 0  # a quarter of the waits
            own.fetch(wait, wait + (50 * MS if is_slow else 5 * MS))
        workers.append(own.record("worker"))
    loader = measured(tape, *workers)
    assert loader.late_share_ratio == pytest.approx(0.25, abs=0.02)


def test_an_epoch_start_is_the_making_of_the_iterator_and_its_first_batch() -> None:
    tape = tape_with(num_workers=2)
    for _ in range(3):
        iterator = tape.iterate(duration_ns=100 * MS, seed=SEED)
        tape.next(iterator, 200 * MS)
        tape.train()
        for _ in range(20):
            tape.next(iterator, 1 * MS)
            tape.train()
        tape.next(iterator, 30 * MS, has_ended=True)
    loader = measured(tape)
    assert loader.epoch_starts_ns == (300 * MS,) * 3
    assert loader.epoch_ends_ns == 60 * MS  # the last one lies after the last step
    assert loader.steady_wait_ns == 60 * MS
    assert loader.wait_ns == 1020 * MS


def test_after_a_warm_up_the_second_batch_is_not_taken_for_the_first() -> None:
    """Nearly every first step on a GPU is a warm-up step."""
    tape = tape_with(num_workers=2)
    iterator = tape.iterate(duration_ns=4 * S, seed=SEED)
    for step in range(60):
        tape.next(iterator, 6 * S if step == 0 else 1 * MS)
        tape.train(forward=20 * S if step == 0 else 10 * MS)
    steps = tape.steps()
    loader = measured(tape)
    assert loader.wait_ns <= steps.window[1] - steps.window[0]
    assert loader.first_start_ns in (0, 10 * S)


def test_batches_that_came_before_their_turn_mark_a_late_one() -> None:
    tape = tape_with(num_workers=2)
    iterator = tape.iterate()
    for step in range(40):
        tape.next(iterator, 10 * MS, ready=1, behind=1 if step % 4 == 0 else 0)
        tape.train()
    loader = measured(tape)
    assert loader.head_of_line_ratio == pytest.approx(0.25, abs=0.03)


# -- percentiles ----------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values(values: list[float], ratio: float) -> None:
    found = percentile(values, ratio)
    assert found in values
    assert sum(value <= found for value in values) >= ratio * len(values)


def test_the_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 0.5) == 0.0
