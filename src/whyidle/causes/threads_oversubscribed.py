"""Each loader worker runs a pool of threads, and all pools together fight for the cores."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import waits
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "threads_oversubscribed"
THREADS_PER_CORE = 2.0
# torch sets one thread a worker; two and more were asked for.
LEAST_THREADS = 2


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0:
        return RuledOut(ID)
    if loader.worker_threads is None or facts.cores_count is None:
        return CannotTell(ID, "worker_facts")
    threads = loader.worker_threads * loader.num_workers
    if loader.worker_threads < LEAST_THREADS or threads < THREADS_PER_CORE * facts.cores_count:
        return RuledOut(ID)
    if not waits(facts, loader) or (loader.on_cpu_ratio or 0.0) + (loader.run_delay_ratio or 0.0) < 0.3:
        return RuledOut(ID)
    mid = 0.5 * loader.steady_wait_ns
    return Found(
        ID,
        "data",
        Range(0.0, mid, 0.8 * loader.steady_wait_ns),
        evidence=(
            *evidence_of(
                {
                    "threads_per_worker_count": loader.worker_threads,
                    "num_workers": loader.num_workers,
                    "cores_count": facts.cores_count,
                    "worker_run_delay_ratio": loader.run_delay_ratio,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("one_thread_per_worker", Safety.SAFE, {"torch_num_threads": 1}),),
        is_specific=True,
    )
