"""Opening files dominates: a sample opens many small ones and waits for each."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import needs_its_workers, opens_dominate, saved_if_cheaper, waiting_ratio
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "many_small_files"


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not needs_its_workers(facts, loader):
        return RuledOut(ID)
    if loader.opens_per_sample is None or loader.bytes_per_sample is None:
        return CannotTell(ID, "file_counts")
    if not opens_dominate(loader):
        return RuledOut(ID)
    removed = 0.95 * (waiting_ratio(loader) or 0.0)
    return Found(
        ID,
        "data",
        saved_if_cheaper(loader, Range(0.5 * removed, removed, 1.0)),
        evidence=(
            *evidence_of(
                {
                    "opens_per_sample_count": loader.opens_per_sample,
                    "bytes_per_open_bytes": loader.bytes_per_sample / loader.opens_per_sample,
                    "worker_on_cpu_ratio": loader.on_cpu_ratio,
                    "sample_p50_ns": loader.sample_p50_ns,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("pack_dataset", Safety.BY_HAND),),
        is_specific=True,
    )
