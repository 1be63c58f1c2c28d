"""The loop stands still while a checkpoint is written."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, interval_steps, line_evidence
from whyidle.causes.call_claims import dearest
from whyidle.findings import Finding, Found, Range, Remedy, RuledOut, Safety

ID = "checkpoint_blocks"


def judge(facts: Facts) -> Finding:
    blocked_ns = facts.phase_ns("checkpoint")
    calls = dearest(facts, "checkpoint", "fsync", "unnamed_checkpoint")
    if calls is None or blocked_ns <= 0:
        return RuledOut(ID)
    saves = facts.calls.get("checkpoint", calls)
    phase = facts.phases["checkpoint"]
    return Found(
        ID,
        "checkpoint",
        # In the background only the snapshot stays in the loop: a copy in memory, a few per cent of
        # writing it; saving half as often leaves half.
        Range(0.5 * blocked_ns, 0.9 * blocked_ns, float(blocked_ns)),
        evidence=(
            *evidence_of(
                {
                    "calls_count": saves.count or None,
                    "time_per_call_ns": blocked_ns / saves.count if saves.count else None,
                    "interval_steps_count": interval_steps(facts, saves),
                    "written_bytes": saves.bytes or None,
                    "bytes_per_s": saves.bytes / blocked_ns * 1e9 if saves.bytes else None,
                }
            ),
            *line_evidence(phase.line),
        ),
        remedies=(
            Remedy("save_in_background", Safety.OPT_IN),
            Remedy("save_less_often", Safety.BY_HAND),
        ),
    )
