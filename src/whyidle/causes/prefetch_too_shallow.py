"""Workers are fast enough on average, but too few batches are kept ready to ride out the bursts."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.loader_claims import hides_in_queue, saved_by, waits
from whyidle.findings import CannotTell, Finding, Found, Remedy, RuledOut, Safety

ID = "prefetch_too_shallow"
# Of the wait; a deeper queue that hides less than that is not the cure.
WORTH_RATIO = 0.3


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0 or not waits(facts, loader):
        return RuledOut(ID)
    saves = saved_by(facts, loader, "deeper_prefetch")
    depth, now = loader.suggested_prefetch_factor, loader.prefetch_factor or 2
    if saves is None:
        return CannotTell(ID, "batch_timing")
    if depth is None or depth <= now or saves.low <= 0 or saves.mid < WORTH_RATIO * loader.steady_wait_ns:
        return RuledOut(ID)
    if not hides_in_queue(facts, loader):
        return RuledOut(ID)
    return Found(
        ID,
        "data",
        saves,
        evidence=evidence_of(
            {
                "prefetch_factor": now,
                "queue_depth_p50_count": loader.ready_p50,
                "service_per_batch_ns": loader.service_ns,
                "num_workers": loader.num_workers,
            }
        ),
        remedies=(Remedy("deepen_prefetch", Safety.SAFE, {"prefetch_factor": depth}),),
    )
