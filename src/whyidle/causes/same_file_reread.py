"""The same file is opened and read again for every sample."""

from __future__ import annotations

from pathlib import PurePath

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import needs_its_workers, saved_if_cheaper
from whyidle.findings import CannotTell, Evidence, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "same_file_reread"
OPENS_PER_SAMPLE = 0.8


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not needs_its_workers(facts, loader):
        return RuledOut(ID)
    if loader.opens_per_sample is None:
        return CannotTell(ID, "file_counts")
    if loader.reopened_path is None or (loader.reopened_per_sample or 0.0) < OPENS_PER_SAMPLE:
        return RuledOut(ID)
    # Samples that open nothing else spend their time on that file; others share it.
    own = min(1.0, (loader.reopened_per_sample or 0.0) / max(loader.opens_per_sample, 1e-9))
    line = loader.line
    top = max(line.share_ratio, line.function_share_ratio) if line is not None else 0.5
    removed = min(0.95, max(own * 0.8, top) * (1 - (loader.collate_ratio or 0.0)))
    return Found(
        ID,
        "data",
        saved_if_cheaper(loader, Range(0.4 * removed, removed, 1.0)),
        evidence=(
            Evidence("same_file", PurePath(loader.reopened_path).name),
            *evidence_of({"same_file_opens_count": loader.reopened_per_sample}),
            *line_evidence(line),
        ),
        remedies=(Remedy("read_once", Safety.BY_HAND),),
        is_specific=True,
    )
