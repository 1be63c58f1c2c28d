"""Samples spend their time waiting for reads to come back."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Loader
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import needs_its_workers, opens_dominate, saved_if_cheaper, waiting_ratio
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "sample_waits_for_storage"
# Neither on a core nor in line for one: the rest of the time the sample waits for something.
WAITING_RATIO = 0.5
LEAST_BYTES_PER_SAMPLE = 4096.0


def reads_files(loader: Loader) -> bool:
    return (loader.opens_per_sample or 0.0) >= 0.5 or (
        loader.bytes_per_sample or 0.0
    ) >= LEAST_BYTES_PER_SAMPLE


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not needs_its_workers(facts, loader):
        return RuledOut(ID)
    ratio = waiting_ratio(loader)
    if ratio is None:
        return CannotTell(ID, "batch_timing")
    if ratio < WAITING_RATIO or not reads_files(loader) or opens_dominate(loader):
        return RuledOut(ID)
    removed = 0.95 * ratio
    return Found(
        ID,
        "data",
        saved_if_cheaper(loader, Range(0.5 * removed, removed, 1.0)),
        evidence=(
            *evidence_of(
                {
                    "worker_on_cpu_ratio": loader.on_cpu_ratio,
                    "opens_per_sample_count": loader.opens_per_sample,
                    "bytes_per_sample_bytes": loader.bytes_per_sample,
                    "sample_p50_ns": loader.sample_p50_ns,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(
            Remedy("stage_to_local_disk", Safety.BY_HAND),
            Remedy("raise_loader_workers", Safety.SAFE, {"num_workers": loader.suggested_num_workers or 4}),
        ),
        is_specific=True,
    )
