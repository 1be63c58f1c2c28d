"""After a resume the loop draws batches only to skip them, at the loader's full price."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import Finding, Found, Range, Remedy, RuledOut, Safety

ID = "resume_replays_loader"


def judge(facts: Facts) -> Finding:
    if facts.replayed_batches == 0:
        return RuledOut(ID)
    spent_ns = float(facts.replay_ns)
    return Found(
        ID,
        "data",
        Range(0.9 * spent_ns, 0.99 * spent_ns, spent_ns),
        evidence=(
            *evidence_of({"batches_replayed_count": facts.replayed_batches}),
            *line_evidence(facts.replay_line),
        ),
        remedies=(Remedy("skip_indices_not_batches", Safety.BY_HAND),),
        is_specific=True,
    )
