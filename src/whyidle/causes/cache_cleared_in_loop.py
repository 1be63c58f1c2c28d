"""The loop itself calls gc.collect() or empty_cache() again and again."""

from __future__ import annotations

from dataclasses import replace

from whyidle.analysis.facts import Facts
from whyidle.causes.call_claims import calls_evidence, dearest
from whyidle.findings import Finding, Found, Range, Remedy, RuledOut, Safety

ID = "cache_cleared_in_loop"
KINDS = ("gc_collect", "empty_cache")
LEAST_CALLS = 3  # once an epoch may be meant


def judge(facts: Facts) -> Finding:
    spent_ns = sum(facts.calls[kind].total_ns for kind in KINDS if kind in facts.calls)
    count = sum(facts.calls[kind].count for kind in KINDS if kind in facts.calls)
    calls = dearest(facts, *KINDS)
    if calls is None or count < LEAST_CALLS:
        return RuledOut(ID)
    line = calls.line
    phase = facts.phases.get("gc")
    if line is None and phase is not None:
        line = phase.line
    return Found(
        ID,
        "gc",
        Range(0.8 * spent_ns, 0.97 * spent_ns, float(spent_ns)),
        evidence=calls_evidence(facts, replace(calls, self_ns=spent_ns, line=line)),
        remedies=(Remedy("skip_cache_clearing", Safety.OPT_IN),),
    )
