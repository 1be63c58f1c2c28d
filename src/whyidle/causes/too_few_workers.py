"""All workers are busy and the loop still waits: more of them would help."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import hides_in_queue, saved_by, waits
from whyidle.findings import CannotTell, Finding, Found, Remedy, RuledOut, Safety

ID = "too_few_workers"
# Full workers show 0.9 and more. Where the step takes about as long as the workers, both wait for each
# other by turns and the workers show little over a half; below, something else holds the batches up.
BUSY_RATIO = 0.45


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0 or not waits(facts, loader):
        return RuledOut(ID)
    if loader.worker_busy_ratio is None:
        return CannotTell(ID, "worker_timing")
    saves = saved_by(facts, loader, "more_workers")
    workers = loader.suggested_num_workers or 0
    if saves is None:
        return CannotTell(ID, "batch_timing")
    if loader.worker_busy_ratio < BUSY_RATIO or workers <= loader.num_workers or saves.low <= 0:
        return RuledOut(ID)
    if hides_in_queue(facts, loader):
        return RuledOut(ID)
    return Found(
        ID,
        "data",
        saves,
        evidence=(
            *evidence_of(
                {
                    "num_workers": loader.num_workers,
                    "suggested_num_workers": workers,
                    "worker_busy_ratio": loader.worker_busy_ratio,
                    "worker_on_cpu_ratio": loader.on_cpu_ratio,
                    "service_per_batch_ns": loader.service_ns,
                    "wait_per_step_ns": facts.per_step(loader.wait_ns),
                    "cores_count": facts.cores_count,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("raise_loader_workers", Safety.SAFE, {"num_workers": workers}),),
    )
