"""Putting the samples of a batch together takes as long as making them."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import needs_its_workers, saved_if_cheaper
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety
from whyidle.units import ms_to_ns

ID = "collate_slow"
COLLATE_RATIO = 0.4
LEAST_NS = ms_to_ns(2)  # torch's own collation of a usual batch takes well under a millisecond


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not needs_its_workers(facts, loader):
        return RuledOut(ID)
    if loader.collate_ratio is None or loader.service_ns is None:
        return CannotTell(ID, "batch_timing")
    if loader.num_workers and loader.collate == "default_collate":
        return RuledOut(ID)  # in a worker that is making shared memory: part of the hand-off
    if loader.collate_ratio < COLLATE_RATIO or loader.collate_ratio * loader.service_ns < LEAST_NS:
        return RuledOut(ID)
    removed = 0.9 * loader.collate_ratio
    return Found(
        ID,
        "data",
        saved_if_cheaper(loader, Range(0.4 * removed, removed, 1.0)),
        evidence=(
            *evidence_of(
                {
                    "collate_ratio": loader.collate_ratio,
                    "service_per_batch_ns": loader.service_ns,
                    "batch_size": loader.batch_size,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("collate_in_one_copy", Safety.BY_HAND),),
        is_specific=True,
    )
