"""More workers than cores, each waiting for a core more than it waits for anything else."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.loader_claims import waits
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "too_many_workers"
# Workers of a loader that fits its cores wait for one under a tenth of the time.
RUN_DELAY_RATIO = 0.3
# Switching and cache misses cost the loader a few per cent for each worker too many; the tf.data and
# SPDL guides put the knee near the core count. Only the wait is claimed, never compute.
SAVED_RATIO = 0.1


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or facts.cores_count is None or loader.num_workers <= facts.cores_count:
        return RuledOut(ID)
    if loader.run_delay_ratio is None:
        return CannotTell(ID, "run_delay")
    if not waits(facts, loader) or loader.run_delay_ratio < RUN_DELAY_RATIO:
        return RuledOut(ID)
    if (
        loader.on_cpu_ratio or 0.0
    ) + loader.run_delay_ratio < 0.7:  # they mostly wait for data, not for cores
        return RuledOut(ID)
    mid = SAVED_RATIO * loader.steady_wait_ns
    workers = max(1, int(facts.cores_count))
    return Found(
        ID,
        "data",
        Range(0.0, mid, 3 * mid),
        evidence=evidence_of(
            {
                "num_workers": loader.num_workers,
                "cores_count": facts.cores_count,
                "worker_run_delay_ratio": loader.run_delay_ratio,
                "worker_on_cpu_ratio": loader.on_cpu_ratio,
            }
        ),
        remedies=(Remedy("lower_loader_workers", Safety.SAFE, {"num_workers": workers}),),
    )
