"""Each step copies many small tensors to the device one by one."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import calls_per_step, evidence_of, line_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "many_small_copies"
COPIES_PER_STEP = 16.0
SMALL_BYTES = 64 * 1024  # at bus speed such a copy takes less than starting it


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("copy")
    if facts.device_kind == "cpu" or calls is None or not calls.count:
        return RuledOut(ID)
    if facts.device is None:
        return CannotTell(ID, "device_idle")
    per_step = calls_per_step(facts, calls)
    if per_step < COPIES_PER_STEP or calls.bytes / calls.count > SMALL_BYTES:
        return RuledOut(ID)
    idle_ns = facts.phase_ns("copy")
    if idle_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "copy",
        Range(0.5 * idle_ns, 0.85 * idle_ns, float(idle_ns)),
        evidence=(
            *evidence_of(
                {
                    "copies_per_step_count": round(per_step, 1),
                    "bytes_per_copy_bytes": calls.bytes / calls.count,
                }
            ),
            *line_evidence(calls.line),
        ),
        remedies=(Remedy("copy_together", Safety.BY_HAND),),
        is_specific=True,
    )
