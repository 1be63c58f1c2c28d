"""A few samples take many times longer than the rest, and finished batches wait behind theirs."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import saved_by, waits
from whyidle.findings import CannotTell, Finding, Found, Remedy, RuledOut, Safety

ID = "slow_sample_blocks_batch"
# Per sample: the slowest against the usual. Below that, batches vary as ordinary preprocessing does.
TAIL_FACTOR = 5.0
# Share of the waiting that falls on batches at least twice as slow as the median.
LATE_RATIO = 0.5
# Of those batches, the part that one single sample took; elsewhere the whole batch was slow.
ONE_SAMPLE_RATIO = 0.4


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0 or not waits(facts, loader):
        return RuledOut(ID)
    if loader.sample_max_ns is None or not loader.sample_p50_ns or loader.late_share_ratio is None:
        return CannotTell(ID, "sample_timing")
    if loader.sample_max_ns < TAIL_FACTOR * loader.sample_p50_ns or loader.late_share_ratio < LATE_RATIO:
        return RuledOut(ID)
    if (loader.late_sample_ratio or 0.0) < ONE_SAMPLE_RATIO:
        return RuledOut(ID)
    even = saved_by(facts, loader, "even_samples")
    unordered = saved_by(facts, loader, "out_of_order")
    if even is None or unordered is None or even.low <= 0:
        return RuledOut(ID)
    saves = unordered if unordered.mid > 0.5 * even.mid else even
    return Found(
        ID,
        "data",
        saves,
        evidence=(
            *evidence_of(
                {
                    "sample_p50_ns": loader.sample_p50_ns,
                    "sample_max_ns": loader.sample_max_ns,
                    "waits_share_ratio": loader.late_share_ratio,
                    "num_workers": loader.num_workers,
                }
            ),
            *line_evidence(loader.line),
        ),
        remedies=(
            (Remedy("out_of_order", Safety.OPT_IN, {"in_order": False}),)
            if saves is unordered
            else (Remedy("even_out_samples", Safety.BY_HAND),)
        ),
        is_specific=True,
    )
