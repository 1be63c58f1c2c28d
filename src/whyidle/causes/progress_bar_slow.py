"""Drawing progress bars takes a share of every step."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.call_claims import calls_evidence, dearest, main_library, rarer
from whyidle.findings import Finding, Found, Remedy, RuledOut, Safety

ID = "progress_bar_slow"


def judge(facts: Facts) -> Finding:
    spent_ns = facts.phase_ns("progress")
    calls = dearest(facts, "progress", "unnamed_progress")
    if calls is None or spent_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "progress",
        rarer(spent_ns),
        evidence=(
            *evidence_of({"library": main_library(calls, calls.line)}),
            *calls_evidence(facts, calls),
        ),
        remedies=(Remedy("slow_progress_refresh", Safety.SAFE, {"refresh_seconds": 1.0}),),
    )
