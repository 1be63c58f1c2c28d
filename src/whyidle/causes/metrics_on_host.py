"""Metrics are computed on the host, step after step, while the device waits."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.call_claims import rarer
from whyidle.findings import Finding, Found, Remedy, RuledOut, Safety

ID = "metrics_on_host"


def judge(facts: Facts) -> Finding:
    phase = facts.phases.get("metrics")
    if phase is None or phase.bubble_ns <= 0:
        return RuledOut(ID)
    line = phase.line
    return Found(
        ID,
        "metrics",
        rarer(phase.bubble_ns),
        evidence=(
            *evidence_of(
                {
                    "time_per_step_ns": facts.per_step(phase.bubble_ns),
                    "library": next(iter(line.libraries), None) if line is not None else None,
                }
            ),
            *line_evidence(line),
        ),
        remedies=(
            Remedy("compute_metrics_every_n", Safety.BY_HAND),
            Remedy("compute_metrics_on_device", Safety.BY_HAND),
        ),
    )
