"""An experiment tracker (TensorBoard, Weights & Biases, MLflow …) is fed too much, too often."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.call_claims import calls_evidence, main_library, rarer
from whyidle.findings import Finding, Found, Remedy, RuledOut, Safety

ID = "tracker_too_often"


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("tracker")
    if calls is None or calls.self_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "logging",
        rarer(calls.self_ns),
        evidence=(
            *evidence_of({"library": main_library(calls, calls.line)}),
            *calls_evidence(facts, calls),
        ),
        remedies=(Remedy("report_every_n", Safety.OPT_IN, {"every_n_steps": 50}),),
    )
