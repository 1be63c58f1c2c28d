"""A large part of the run passes after the last step."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import Finding, Found, Range, Remedy, RuledOut, Safety
from whyidle.units import s_to_ns

ID = "slow_end"
# Against the whole run, and long in absolute terms: a two-second import in a ten-second script is
# no finding.
LEAST_NS = s_to_ns(10)
LEAST_SHARE = 0.2


def judge(facts: Facts) -> Finding:
    edge = facts.end
    if edge is None or edge.time_ns < LEAST_NS or edge.time_ns < LEAST_SHARE * facts.wall_ns:
        return RuledOut(ID)
    return Found(
        ID,
        "end",
        Range(0.3 * edge.time_ns, 0.8 * edge.time_ns, float(edge.time_ns)),
        evidence=(
            *evidence_of({"end_ns": edge.time_ns, "library": edge.library}),
            *line_evidence(edge.line),
        ),
        remedies=(Remedy("shorten_end", Safety.BY_HAND),),
    )
