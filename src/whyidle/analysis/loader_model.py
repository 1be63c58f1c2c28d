"""A DataLoader replayed with the batch times that were measured, to ask what another setting would give.

The rules are torch's own: batch i goes to worker i mod W, at most `prefetch` batches a worker are
outstanding, batches are handed over in order (unless `in_order=False`), and the loop asks for the
next batch when its step is done. On top of the replay stands a bound from the cores: what a step
burns on the CPU, in the workers and in the main process, cannot be done faster than all cores allow.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

REPLAY_BATCHES = 2000
MOST_WORKERS = 64
# Handing a batch over costs the loop unpickling and mapping shared memory; measured 0.2–0.6 ms for
# two small tensors on torch 2.13. Used only where the run itself did not show it.
HANDOFF_NS = 400_000
HEADROOM = 1.2  # the loader should outrun the step by this much: batches and machines vary
NEAR_BEST_RATIO = 1.03  # the cheapest setting within 3 % of the best is the one to suggest


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One steady step as the loader sees it; sequences are per batch, in order, in nanoseconds."""

    services_ns: Sequence[float]
    computes_ns: Sequence[float]  # the loop's time from getting a batch to asking for the next
    worker_cpu_ns: float  # on-CPU time of making one batch
    main_cpu_ns: float  # on-CPU time of one step in the main process, all threads
    cores: float
    handoff_ns: float = HANDOFF_NS


def step_ns(work: Workload, workers: int, prefetch: int = 2, *, in_order: bool = True) -> float:
    """Mean time from batch to batch with the given setting."""
    count = min(REPLAY_BATCHES, max(200, len(work.services_ns)))
    services = list(islice(cycle(work.services_ns), count))
    computes = list(islice(cycle(work.computes_ns), count))
    if workers == 0:
        return (sum(services) + sum(computes)) / count
    computes = [compute + work.handoff_ns for compute in computes]
    replay = _replay_in_order if in_order else _replay_out_of_order
    bound = (work.worker_cpu_ns + work.main_cpu_ns) / work.cores
    return max(replay(services, computes, workers, prefetch) / count, bound)


def _replay_in_order(
    services: Sequence[float], computes: Sequence[float], workers: int, prefetch: int
) -> float:
    count = len(services)
    finish = [0.0] * count
    consumed = [0.0] * count
    now = 0.0
    made = 0
    for index in range(count):
        while made <= index or (made < count and made < index + workers * prefetch):
            sent = consumed[made - workers * prefetch] if made >= workers * prefetch else 0.0
            free = finish[made - workers] if made >= workers else 0.0
            finish[made] = max(sent, free) + services[made]
            made += 1
        now = max(now, finish[index])
        consumed[index] = now
        now += computes[index]
    return now


def _replay_out_of_order(
    services: Sequence[float], computes: Sequence[float], workers: int, prefetch: int
) -> float:
    """Whoever is free takes the next batch, and the loop takes whichever batch is ready first."""
    free = [0.0] * workers
    heapq.heapify(free)
    ready: list[float] = []
    consumed: list[float] = []
    now = 0.0
    made = 0
    for taken, compute in enumerate(computes):
        while made < len(services) and made < taken + workers * prefetch:
            sent = consumed[made - workers * prefetch] if made >= workers * prefetch else 0.0
            finish = max(sent, heapq.heappop(free)) + services[made]
            heapq.heappush(free, finish)
            heapq.heappush(ready, finish)
            made += 1
        now = max(now, heapq.heappop(ready))
        consumed.append(now)
        now += compute
    return now


def fewest_workers(work: Workload, prefetch: int, most: int) -> tuple[int, float]:
    """The smallest number of workers within 3 % of the best step time, and that time."""
    slower = replace(work, services_ns=[service * HEADROOM for service in work.services_ns])
    times: dict[int, float] = {}
    for workers in range(1, min(most, MOST_WORKERS) + 1):
        times[workers] = step_ns(slower, workers, prefetch)
        if workers > 8 and times[workers] > 0.99 * times[workers - 4]:
            break
    best = min(times.values())
    workers = next(workers for workers, time in times.items() if time <= NEAR_BEST_RATIO * best)
    return workers, step_ns(work, workers, prefetch)


def shallowest_prefetch(work: Workload, workers: int, now: int) -> tuple[int, float]:
    """The smallest prefetch factor, up to 16, within 3 % of the best step time, and that time."""
    times = {depth: step_ns(work, workers, depth) for depth in (now, *(2, 4, 8, 16)) if depth >= now}
    best = min(times.values())
    return next((depth, time) for depth, time in sorted(times.items()) if time <= NEAR_BEST_RATIO * best)
