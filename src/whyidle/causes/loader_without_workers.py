"""The main process makes the samples itself while the device waits."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Loader
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import saved_by, waits
from whyidle.findings import CannotTell, Evidence, Finding, Found, Remedy, RuledOut, Safety

ID = "loader_without_workers"


def _remedy(loader: Loader, workers: int) -> Remedy:
    """Without sharding of its own an iterable dataset gives every sample once per worker."""
    if loader.is_iterable:
        return Remedy("shard_and_raise_workers", Safety.BY_HAND, {"num_workers": workers})
    return Remedy("raise_loader_workers", Safety.SAFE, {"num_workers": workers})


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers > 0 or not waits(facts, loader):
        return RuledOut(ID)
    saves = saved_by(facts, loader, "more_workers")
    if saves is None:
        return CannotTell(ID, "batch_timing")
    # Workers that would only move the work around are no cure: samples may be cheaper than the hand-off.
    if saves.low <= 0:
        return RuledOut(ID)
    workers = loader.suggested_num_workers or 2
    return Found(
        ID,
        "data",
        saves,
        evidence=(
            Evidence("num_workers", 0),
            *line_evidence(loader.line),
            *evidence_of(
                {
                    "wait_per_step_ns": facts.per_step(loader.wait_ns),
                    "worker_on_cpu_ratio": loader.on_cpu_ratio,
                    "cores_count": facts.cores_count,
                }
            ),
        ),
        remedies=(_remedy(loader, workers),),
    )
