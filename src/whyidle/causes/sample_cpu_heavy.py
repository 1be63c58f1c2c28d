"""Making samples burns more CPU than the cores can give beside the training loop."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import free_cores, saved_by, waits
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "sample_cpu_heavy"
# A worker that computes is on a core, or in line for one, nearly all the time.
COMPUTING_RATIO = 0.6
FREE_CORES = 0.5


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not waits(facts, loader):
        return RuledOut(ID)
    if loader.on_cpu_ratio is None:
        return CannotTell(ID, "batch_timing")
    if loader.on_cpu_ratio + (loader.run_delay_ratio or 0.0) < COMPUTING_RATIO:
        return RuledOut(ID)
    free = free_cores(facts, loader)
    if loader.num_workers and (loader.worker_busy_ratio or 0.0) < 0.6:
        return RuledOut(ID)
    more = saved_by(facts, loader, "more_workers")
    left_ns = loader.steady_wait_ns - (more.mid if more is not None else 0.0)
    if loader.num_workers and free is not None and free > FREE_CORES and more is not None and more.low > 0:
        left_ns = loader.steady_wait_ns - more.mid
    if left_ns <= 0:
        return RuledOut(ID)
    # Cheaper samples can take away all the waiting that workers cannot.
    return Found(
        ID,
        "data",
        Range(0.3 * loader.steady_wait_ns, loader.steady_wait_ns * 0.9, float(loader.steady_wait_ns))
        if loader.num_workers
        else Range(0.3 * left_ns, 0.9 * left_ns, float(left_ns)),
        evidence=(
            *evidence_of(
                {
                    "service_per_batch_ns": loader.service_ns,
                    "worker_on_cpu_ratio": loader.on_cpu_ratio,
                    "num_workers": loader.num_workers,
                    "cores_count": facts.cores_count,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("make_samples_cheaper", Safety.BY_HAND),),
    )
