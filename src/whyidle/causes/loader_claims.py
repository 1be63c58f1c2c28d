"""What the causes around the DataLoader share: which part of its wait each of them may claim."""

from __future__ import annotations

from itertools import pairwise

from whyidle.analysis.facts import Facts, Loader
from whyidle.findings import Range

# Waiting below this share of the window is how a healthy loader looks from the loop: a batch in memory
# takes its fraction of a millisecond, and workers on full cores are late by a few per cent.
LEAST_WAIT_SHARE = 0.05
LEAST_WAIT_SHARE_WITH_WORKERS = 0.08
# Full workers show 0.9 and more; epoch starts and the last batches of an epoch take the rest.
BUSY_RATIO = 0.6
QUEUE_ENOUGH_RATIO = 0.6
EXPLAINED_RATIO = 0.5  # of the measured waiting; less, and the replay lacks what slowed this run
OPENS_PER_SAMPLE = 4.0
SMALL_FILE_BYTES = 64 * 1024  # below it an open costs more than the read on any network file system
OPEN_WAITING_RATIO = 0.4
# Opening a cached local file takes about 20 µs; where opens cost less than this, they are not the cause.
LEAST_NS_PER_OPEN = 200_000.0
# The replay's own error on recorded runs; see docs on prediction error.
MODEL_SPREAD = 0.15


def waits(facts: Facts, loader: Loader) -> bool:
    least = LEAST_WAIT_SHARE_WITH_WORKERS if loader.num_workers else LEAST_WAIT_SHARE
    return facts.share(loader.wait_ns) >= least


def needs_its_workers(facts: Facts, loader: Loader) -> bool:
    """Whether the loop waits for samples to be made: in itself, or in workers that are busy."""
    return waits(facts, loader) and (
        loader.num_workers == 0 or (loader.worker_busy_ratio or 0.0) >= BUSY_RATIO
    )


def opens_dominate(loader: Loader) -> bool:
    """Whether a sample opens so many small files that opening is what it waits for."""
    opens, read_bytes, waiting = loader.opens_per_sample, loader.bytes_per_sample, waiting_ratio(loader)
    if not opens or read_bytes is None or waiting is None or not loader.sample_p50_ns:
        return False
    if (loader.reopened_per_sample or 0.0) >= 0.8 * opens:
        return False
    return (
        opens >= OPENS_PER_SAMPLE
        and read_bytes / opens <= SMALL_FILE_BYTES
        and waiting >= OPEN_WAITING_RATIO
        and waiting * loader.sample_p50_ns / opens >= LEAST_NS_PER_OPEN
    )


def waiting_ratio(loader: Loader) -> float | None:
    """Share of making a batch that its thread slept through; None where that was not measured."""
    if loader.on_cpu_ratio is None:
        return None
    return max(0.0, 1 - loader.on_cpu_ratio - (loader.run_delay_ratio or 0.0))


def first_epochs_excess_ns(loader: Loader) -> int:
    """What starting every iteration after the first cost beyond one batch's own making."""
    usual_ns = loader.service_ns or loader.wait_p50_ns
    return int(sum(max(0.0, start - usual_ns) for start in loader.epoch_starts_ns[1:]))


def saved_by(facts: Facts, loader: Loader, change: str) -> Range | None:
    """Nanoseconds of steady waiting that a change of the loader saves, from the replayed model.

    The model is scaled to the run: what it predicts for the present setting stands for what was
    measured. None where no batch was timed.
    """
    as_is, changed = loader.predictions.get("as_is"), loader.predictions.get(change)
    free = loader.predictions.get("free_data")
    if as_is is None or changed is None or free is None:
        return None
    measured_ns = loader.steady_wait_ns / max(1, loader.batches_count)
    modelled_ns = max(as_is - free, 1.0)
    left_ns = max(0.0, changed - free)
    saved_ratio = 1 - left_ns / max(modelled_ns, measured_ns)
    mid = max(0.0, saved_ratio) * loader.steady_wait_ns
    low = (
        max(0.0, 1 - (left_ns + MODEL_SPREAD * changed) / max(modelled_ns, measured_ns))
        * loader.steady_wait_ns
    )
    high = max(mid, max(0.0, 1 - 0.7 * left_ns / max(modelled_ns, measured_ns)) * loader.steady_wait_ns)
    return Range(min(low, mid), mid, high)


def hides_in_queue(facts: Facts, loader: Loader) -> bool:
    """Whether a deeper queue alone saves nearly what more workers would: then depth is the cure."""
    more = saved_by(facts, loader, "more_workers")
    deeper = saved_by(facts, loader, "deeper_prefetch")
    return deeper is not None and (more is None or deeper.mid >= QUEUE_ENOUGH_RATIO * more.mid)


def saved_if_cheaper(loader: Loader, removed: Range) -> Range:
    """Nanoseconds of steady waiting saved when these parts of making a batch fall away.

    In the loop itself a part of the work is that part of the wait; behind workers the wait goes once
    they outrun the step, which the replay knows.
    """
    return Range(*(_saved(loader, ratio) for ratio in (removed.low, removed.mid, removed.high)))


def _saved(loader: Loader, removed_ratio: float) -> float:
    table = sorted(loader.with_service_ratio.items())
    if loader.num_workers == 0 or len(table) < 2:
        return removed_ratio * loader.steady_wait_ns
    now_ns, free_ns = table[-1][1], loader.predictions.get("free_data", table[0][1])
    waiting_ns = max(now_ns - free_ns, 1.0)
    if waiting_ns < EXPLAINED_RATIO * loader.steady_wait_ns / max(1, loader.batches_count):
        return removed_ratio * loader.steady_wait_ns  # something else slows the workers: take it as it is
    left_ns = max(0.0, _interpolated(table, 1 - removed_ratio) - free_ns)
    return max(0.0, 1 - left_ns / waiting_ns) * loader.steady_wait_ns


def _interpolated(table: list[tuple[float, float]], at: float) -> float:
    for (low, low_ns), (high, high_ns) in pairwise(table):
        if at <= high:
            return low_ns + (high_ns - low_ns) * max(0.0, at - low) / (high - low)
    return table[-1][1]


def free_cores(facts: Facts, loader: Loader) -> float | None:
    """Cores that neither the workers nor the main process use; None where the machine is unknown."""
    if facts.cores_count is None or not facts.window_ns:
        return None
    used = (facts.main_cpu_ns or 0) / facts.window_ns
    if loader.num_workers and loader.worker_busy_ratio is not None and loader.on_cpu_ratio is not None:
        # Time in line for a core is demand too, whoever holds the core.
        demand = min(1.0, loader.on_cpu_ratio + (loader.run_delay_ratio or 0.0))
        used += loader.num_workers * loader.worker_busy_ratio * demand
    return facts.cores_count - used
