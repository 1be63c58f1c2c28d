"""Making samples burns more CPU than the cores can give beside the training loop."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import LEAST_SHARE, evidence_of, line_evidence
from whyidle.causes.loader_claims import free_cores, needs_its_workers, saved_by
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "sample_cpu_heavy"
# A worker that computes is on a core, or in line for one, nearly all the time.
COMPUTING_RATIO = 0.6
FREE_CORES = 0.5
HEAVY_SAMPLE_NS = 300_000.0  # below that a core makes thousands a second


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not needs_its_workers(facts, loader):
        return RuledOut(ID)
    if loader.on_cpu_ratio is None:
        return CannotTell(ID, "batch_timing")
    if loader.on_cpu_ratio + (loader.run_delay_ratio or 0.0) < COMPUTING_RATIO:
        return RuledOut(ID)
    if (loader.sample_p50_ns or 0.0) < HEAVY_SAMPLE_NS:
        return RuledOut(ID)
    free = free_cores(facts, loader)
    more = saved_by(facts, loader, "more_workers")
    can_have_more = loader.num_workers == 0 or free is None or free > FREE_CORES
    # Cheaper samples can take away the waiting that more workers cannot.
    left_ns = loader.steady_wait_ns - (more.mid if more is not None and can_have_more else 0.0)
    if facts.share(left_ns) < LEAST_SHARE:
        return RuledOut(ID)
    return Found(
        ID,
        "data",
        Range(0.3 * left_ns, 0.9 * left_ns, float(left_ns)),
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
