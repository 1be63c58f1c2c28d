"""The main process makes the samples itself while the device waits."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Loader
from whyidle.analysis.stacks import WAITING_LIBRARIES
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import LEAST_WAIT_SHARE, saved_by, waits
from whyidle.findings import CannotTell, Evidence, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "loader_without_workers"
LEAST_OWN_SHARE = 0.1  # named by its functions only, so with a wider margin


def _remedy(loader: Loader, workers: int) -> Remedy:
    """Without sharding of its own an iterable dataset gives every sample once per worker."""
    if loader.is_iterable:
        return Remedy("shard_and_raise_workers", Safety.BY_HAND, {"num_workers": workers})
    return Remedy("raise_loader_workers", Safety.SAFE, {"num_workers": workers})


def _by_hand(facts: Facts) -> Finding:
    """Loading without a DataLoader: batches are made in the loop's own thread, by functions that say so."""
    phase = facts.phases.get("data")
    if phase is None or phase.line is None or facts.share(phase.bubble_ns) < LEAST_OWN_SHARE:
        return RuledOut(ID)
    if any(phase.line.libraries.get(name, 0.0) > 0.3 for name in WAITING_LIBRARIES):
        return RuledOut(ID)  # it waits for somebody else
    making_ns, rest_ns = phase.bubble_ns, facts.window_ns - phase.bubble_ns
    cores = facts.cores_count or 1.0
    mid = max(0.0, facts.window_ns - max(rest_ns, facts.window_ns / cores, making_ns / max(1.0, cores)))
    if facts.share(mid) < LEAST_WAIT_SHARE:
        return RuledOut(ID)
    return Found(
        ID,
        "data",
        Range(0.4 * mid, mid, float(making_ns)),
        evidence=(
            *line_evidence(phase.line),
            *evidence_of({"wait_per_step_ns": facts.per_step(making_ns), "cores_count": facts.cores_count}),
        ),
        remedies=(Remedy("load_in_processes", Safety.BY_HAND),),
    )


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None:
        return _by_hand(facts)
    if loader.num_workers > 0 or not waits(facts, loader):
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
