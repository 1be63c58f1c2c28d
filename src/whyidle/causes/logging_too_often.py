"""Logging or printing takes a share of every step."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.call_claims import calls_evidence, dearest, rarer, time_ns
from whyidle.findings import Finding, Found, Remedy, RuledOut, Safety

ID = "logging_too_often"
KINDS = ("log", "print", "unnamed_logging")


def judge(facts: Facts) -> Finding:
    spent_ns = time_ns(facts, *KINDS)
    calls = dearest(facts, *KINDS)
    if calls is None or spent_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "logging",
        rarer(spent_ns),
        evidence=calls_evidence(facts, calls),
        remedies=(Remedy("log_every_n", Safety.OPT_IN, {"every_n_steps": 50}),),
    )
