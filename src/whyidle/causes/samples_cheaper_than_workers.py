"""Handing a batch from a worker to the loop costs more than making it."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Loader
from whyidle.causes.base import around, evidence_of
from whyidle.causes.loader_claims import LEAST_WAIT_SHARE
from whyidle.findings import CannotTell, Finding, Found, Remedy, RuledOut, Safety

ID = "samples_cheaper_than_workers"
# Making the batch in the loop must save at least this part of the wait to be worth the change.
WORTH_RATIO = 0.35
# Workers beside a step that uses all cores make it wait a few per cent whatever they do.
LEAST_SAVED_SHARE = 0.08
IDLE_WORKERS_RATIO = 0.6
# Of the loop's steady wait: a loop that unpickles is on a core, one that waits for a worker sleeps.
UNPICKLING_RATIO = 0.25


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0 or not loader.batches_count:
        return RuledOut(ID)
    if facts.share(loader.steady_wait_ns) < LEAST_WAIT_SHARE:
        return RuledOut(ID)
    own_ns = _own_ns(loader)
    if own_ns is None:
        return CannotTell(ID, "batch_timing")
    saved_ns = loader.steady_wait_ns - own_ns * loader.batches_count
    if saved_ns < WORTH_RATIO * loader.steady_wait_ns or facts.share(saved_ns) < LEAST_SAVED_SHARE:
        return RuledOut(ID)
    starting_ns = loader.wait_ns - loader.steady_wait_ns
    if saved_ns > 0.5 * starting_ns:  # else starting them is the state to name
        saved_ns += starting_ns
    return Found(
        ID,
        "data",
        around(saved_ns, 0.25),
        evidence=evidence_of(
            {
                "num_workers": loader.num_workers,
                "service_per_batch_ns": own_ns,
                "handoff_per_batch_ns": loader.wait_ns / loader.batches_count,
                "batch_size": loader.batch_size,
            }
        ),
        remedies=(Remedy("lower_loader_workers", Safety.SAFE, {"num_workers": 0}),),
        is_specific=True,
    )


def _own_ns(loader: Loader) -> float | None:
    """What making a batch costs in the loop itself.

    A worker's figure less the time it stood in line for a core. Where idle workers show that the
    hand-off is what the loop waits for, the worker's figure is swollen by it too (shared memory is made
    in its collation, and its queue's thread takes turns with it): then its least disturbed batches count.
    """
    if loader.service_ns is None:
        return None
    plain_ns = loader.service_ns * (1 - (loader.run_delay_ratio or 0.0))
    is_handing_over = (
        loader.worker_busy_ratio or 1.0
    ) < IDLE_WORKERS_RATIO and loader.next_cpu_ns >= UNPICKLING_RATIO * loader.steady_wait_ns
    if not is_handing_over or loader.own_ns is None:
        return plain_ns
    collate_ratio = loader.collate_ratio or 0.0 if loader.collate == "default_collate" else 0.0
    return min(plain_ns, loader.own_ns * (1 - collate_ratio))
