"""Opening files dominates: each sample opens many, or each is tiny."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import waits
from whyidle.causes.sample_waits_for_storage import waiting_ratio
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "many_small_files"
OPENS_PER_SAMPLE = 4.0
SMALL_FILE_BYTES = 64 * 1024  # below it an open costs more than the read on any network file system
# Opening cached local files takes about 20 µs; where opens cost a sample less, they are not the cause.
LEAST_NS_PER_OPEN = 200_000.0
WAITING_RATIO = 0.4


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not waits(facts, loader):
        return RuledOut(ID)
    if loader.opens_per_sample is None or loader.bytes_per_sample is None or not loader.sample_p50_ns:
        return CannotTell(ID, "file_counts")
    opens = loader.opens_per_sample
    ratio = waiting_ratio(loader) or 0.0
    same = loader.reopened_per_sample or 0.0
    if opens < 1 or same >= 0.8 * opens:
        return RuledOut(ID)
    per_open_bytes = loader.bytes_per_sample / opens
    per_open_ns = ratio * loader.sample_p50_ns / opens
    is_many = opens >= OPENS_PER_SAMPLE
    if per_open_bytes > SMALL_FILE_BYTES or ratio < WAITING_RATIO or per_open_ns < LEAST_NS_PER_OPEN:
        return RuledOut(ID)
    if not is_many and per_open_bytes > SMALL_FILE_BYTES / 2:
        return RuledOut(ID)
    mid = ratio * loader.steady_wait_ns * (1 - 1 / (2 * opens))
    return Found(
        ID,
        "data",
        Range(0.5 * mid, mid, float(loader.steady_wait_ns)),
        evidence=(
            *evidence_of(
                {
                    "opens_per_sample_count": opens,
                    "bytes_per_open_bytes": per_open_bytes,
                    "worker_on_cpu_ratio": loader.on_cpu_ratio,
                    "sample_p50_ns": loader.sample_p50_ns,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("pack_dataset", Safety.BY_HAND),),
        is_specific=is_many,
    )
