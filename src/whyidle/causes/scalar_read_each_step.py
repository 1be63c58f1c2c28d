"""Values are read back from the device in the step, and each read waits until the device has caught up."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.call_claims import calls_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "scalar_read_each_step"


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("sync")
    if facts.device_kind == "cpu" or calls is None:
        return RuledOut(ID)  # a read from host memory waits for nothing
    if "device_idle" in facts.missing:  # a wait for a busy device costs nothing; only idleness after it does
        return CannotTell(ID, facts.missing["device_idle"])
    bubble_ns = facts.phase_ns("sync")
    if bubble_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "sync",
        Range(0.5 * bubble_ns, 0.9 * bubble_ns, float(bubble_ns)),
        evidence=(*evidence_of({"sync_count": calls.count}), *calls_evidence(facts, calls)),
        remedies=(Remedy("defer_scalar_reads", Safety.OPT_IN),),
    )
