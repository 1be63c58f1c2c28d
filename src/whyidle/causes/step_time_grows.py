"""Steps take longer and longer: something kept from step to step grows."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "step_time_grows"
GROWTH_RATIO = 1.3  # last fifth against first: shared machines drift by less
MONOTONY_RATIO = 0.7  # of the rises from tenth to tenth; chance gives a half


def judge(facts: Facts) -> Finding:
    trend = facts.trend
    if trend is None:
        return CannotTell(ID, "more_steps")
    if not trend.first_ns or trend.last_ns < GROWTH_RATIO * trend.first_ns:
        return RuledOut(ID)
    if trend.monotony_ratio < MONOTONY_RATIO or (trend.cpu_growth_ratio or GROWTH_RATIO) < 1.15:
        return RuledOut(ID)
    excess_ns = max(0.0, trend.mean_ns - trend.first_ns) * facts.steps_count
    return Found(
        ID,
        trend.growing_phase if trend.growing_phase in ("data", "logging", "metrics", "checkpoint") else "all",
        Range(0.6 * excess_ns, excess_ns, min(float(facts.window_ns), 1.2 * excess_ns)),
        evidence=(
            *evidence_of(
                {
                    "step_growth_ratio": trend.last_ns / trend.first_ns,
                    "memory_growth_bytes": trend.memory_growth_bytes,
                    "growing_phase": trend.growing_phase,
                }
            ),
            *line_evidence(trend.line),
        ),
        remedies=(Remedy("stop_keeping_history", Safety.BY_HAND),),
        is_specific=True,
    )
