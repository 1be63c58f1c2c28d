"""Handing a batch from a worker to the loop costs more than making it."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import around, evidence_of
from whyidle.causes.loader_claims import waits
from whyidle.findings import CannotTell, Finding, Found, Remedy, RuledOut, Safety

ID = "samples_cheaper_than_workers"
# Making the batch in the loop must save at least this part of the wait to be worth the change.
WORTH_RATIO = 0.35


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0 or not waits(facts, loader) or not loader.batches_count:
        return RuledOut(ID)
    if loader.service_ns is None:
        return CannotTell(ID, "batch_timing")
    # In the loop a batch costs its making without the time its worker stood in line for a core.
    own_ns = loader.service_ns * (1 - (loader.run_delay_ratio or 0.0))
    saved_ns = loader.wait_ns - own_ns * loader.batches_count
    if saved_ns < WORTH_RATIO * loader.wait_ns:
        return RuledOut(ID)
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
