"""The replayed loader against a simulation that knows nothing of it: processes that pass messages."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice

import pytest
from factory import MS
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.loader_model import (
    HEADROOM,
    Workload,
    fewest_workers,
    shallowest_prefetch,
    step_ns,
)

TIMES = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=12)
WORKERS = st.integers(1, 6)
DEPTHS = st.integers(1, 4)


def work(services: Sequence[float], computes: Sequence[float], **values: float) -> Workload:
    """Without hand-off and with cores for everything, unless said otherwise."""
    usual = {"worker_cpu_ns": 0.0, "main_cpu_ns": 0.0, "cores": 64.0, "handoff_ns": 0.0}
    return Workload(services_ns=services, computes_ns=computes, **{**usual, **values})


def simulate(
    services: Sequence[float], computes: Sequence[float], workers: int, prefetch: int, *, in_order: bool
) -> float:
    """Mean time from batch to batch, from events: a worker finishes, the loop asks again.

    The loop sends the next index as soon as it has got a batch, before it computes on it. In order each
    worker has a queue of its own; out of order they share one.
    """
    count = max(200, len(services))
    service, compute = list(islice(cycle(services), count)), list(islice(cycle(computes), count))
    queues: list[deque[int]] = [deque() for _ in range(workers if in_order else 1)]
    is_idle = [True] * workers
    events: list[tuple[float, int, int, int]] = []  # time, worker or −1 for the loop, batch, serial
    done: deque[int] = deque()
    asks, taken, sent, now = True, 0, 0, 0.0

    def send() -> None:
        nonlocal sent
        if sent < count:
            queues[sent % len(queues)].append(sent)
            sent += 1

    def give_work() -> None:
        for worker in range(workers):
            queue = queues[worker if in_order else 0]
            if is_idle[worker] and queue:
                batch = queue.popleft()
                is_idle[worker] = False
                heapq.heappush(events, (now + service[batch], worker, batch, sent))

    def take() -> bool:
        nonlocal asks, taken
        if not asks or not done or (in_order and taken not in done):
            return False
        done.remove(taken) if in_order else done.popleft()
        heapq.heappush(events, (now + compute[taken], -1, taken, sent))
        taken += 1
        asks = False
        return True

    for _ in range(workers * prefetch):
        send()
    give_work()
    while events:
        now, worker, batch, _ = heapq.heappop(events)
        if worker >= 0:
            is_idle[worker] = True
            done.append(batch)
        else:
            asks = True
        if take():
            send()
        give_work()
    return now / count


@given(TIMES, TIMES, WORKERS, DEPTHS)
def test_in_order_the_replay_agrees_with_the_simulation(
    services: list[float], computes: list[float], workers: int, prefetch: int
) -> None:
    expected = simulate(services, computes, workers, prefetch, in_order=True)
    assert step_ns(work(services, computes), workers, prefetch) == pytest.approx(expected)


@given(TIMES, TIMES, WORKERS, DEPTHS)
def test_out_of_order_the_replay_agrees_with_the_simulation(
    services: list[float], computes: list[float], workers: int, prefetch: int
) -> None:
    expected = simulate(services, computes, workers, prefetch, in_order=False)
    got = step_ns(work(services, computes), workers, prefetch, in_order=False)
    assert got == pytest.approx(expected, rel=0.02)


@given(TIMES, TIMES)
def test_without_workers_making_and_computing_take_turns(
    services: list[float], computes: list[float]
) -> None:
    whole = [*islice(cycle(services), 200)], [*islice(cycle(computes), 200)]
    assert step_ns(work(services, computes), 0) == pytest.approx(sum(map(sum, whole)) / 200)


@given(TIMES, TIMES, WORKERS, DEPTHS)
def test_twice_the_workers_are_never_slower(
    services: list[float], computes: list[float], workers: int, prefetch: int
) -> None:
    """Not so for one more: batch i goes to worker i mod W, and a period in the data can meet W."""
    load = work(services, computes)
    assert step_ns(load, 2 * workers, prefetch) <= step_ns(load, workers, prefetch) + 1e-6


@given(st.integers(1, 50), TIMES, WORKERS, DEPTHS, st.booleans())
def test_one_more_worker_is_never_slower_for_even_batches(
    service: int, computes: list[float], workers: int, prefetch: int, in_order: bool
) -> None:
    load = work([float(service)], computes)
    more = step_ns(load, workers + 1, prefetch, in_order=in_order)
    assert more <= step_ns(load, workers, prefetch, in_order=in_order) + 1e-6


@given(TIMES, TIMES, WORKERS, DEPTHS, st.booleans())
def test_a_deeper_queue_is_never_slower(
    services: list[float], computes: list[float], workers: int, prefetch: int, in_order: bool
) -> None:
    load = work(services, computes)
    deeper = step_ns(load, workers, prefetch + 1, in_order=in_order)
    assert deeper <= step_ns(load, workers, prefetch, in_order=in_order) + 1e-6


@given(TIMES, TIMES, WORKERS, DEPTHS)
def test_no_setting_beats_the_step_or_the_workers(
    services: list[float], computes: list[float], workers: int, prefetch: int
) -> None:
    """A tolerance for the last batches, which the workers make while others are still computed on."""
    load = work(services, computes)
    step = step_ns(load, workers, prefetch)
    usual = [*islice(cycle(computes), 200)]
    made = [*islice(cycle(services), 200)]
    assert step >= sum(usual) / 200 - 1e-6
    assert step >= sum(made) / 200 / workers - 1e-6


def test_the_cores_bound_what_workers_can_give() -> None:
    load = work([100.0], [10.0], worker_cpu_ns=90.0, main_cpu_ns=10.0, cores=2.0)
    assert step_ns(load, 8) == pytest.approx(50.0)
    assert step_ns(replace(load, cores=4.0), 8) == pytest.approx(25.0)


def test_workers_that_sleep_in_reads_may_outnumber_the_cores() -> None:
    load = work([100.0], [10.0], worker_cpu_ns=1.0, main_cpu_ns=1.0, cores=2.0)
    assert step_ns(load, 16) < 12.0


def test_handing_over_costs_the_loop_with_workers_only() -> None:
    load = work([1.0], [10.0], handoff_ns=3.0)
    assert step_ns(load, 4) == pytest.approx(13.0, rel=0.01)
    assert step_ns(load, 0) == pytest.approx(11.0)


@pytest.mark.parametrize(("service_ms", "compute_ms", "expected"), [(40, 20, 3), (40, 50, 1), (100, 20, 6)])
def test_the_fewest_workers_outrun_the_step_with_some_headroom(
    service_ms: int, compute_ms: int, expected: int
) -> None:
    load = work([service_ms * MS], [compute_ms * MS])
    workers, step = fewest_workers(load, 2, 16)
    assert workers == expected >= HEADROOM * service_ms / compute_ms - 1e-9
    assert step == pytest.approx(compute_ms * MS, rel=0.05)


def test_where_the_cores_are_the_limit_no_more_workers_than_reach_it_are_proposed() -> None:
    load = work([100.0 * MS], [10.0 * MS], worker_cpu_ns=100.0 * MS, main_cpu_ns=10.0 * MS, cores=2.0)
    workers, step = fewest_workers(load, 2, 16)
    assert workers <= 3
    assert step == pytest.approx(55 * MS)


@given(TIMES, TIMES, st.integers(1, 16))
def test_the_proposal_is_within_the_limit(services: list[float], computes: list[float], most: int) -> None:
    workers, step = fewest_workers(work(services, computes), 2, most)
    assert 1 <= workers <= most
    assert step > 0


def test_a_deeper_queue_is_proposed_for_bursts_only() -> None:
    even, bursts = work([9.0], [10.0]), work([1.0] * 15 + [130.0], [10.0])
    assert shallowest_prefetch(even, 1, 2)[0] == 2
    depth, step = shallowest_prefetch(bursts, 1, 2)
    assert depth == 16
    assert step < step_ns(bursts, 1, 2)


def test_a_queue_that_is_deep_already_is_left_as_it_is() -> None:
    assert shallowest_prefetch(work([9.0], [10.0]), 1, 32)[0] == 32
