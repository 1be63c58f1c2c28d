"""Forward or loss make tensors on the host and copy them over."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "tensors_made_on_host"
PER_STEP = 0.9


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("copy")
    if facts.device_kind == "cpu" or calls is None or not calls.count:
        return RuledOut(ID)
    if facts.device is None:
        return CannotTell(ID, "device_idle")
    per_step = facts.per_step(calls.inside_model_count)
    idle_ns = facts.phase_ns("copy") * calls.inside_model_count / calls.count
    idle_ns += facts.device.after_copy_ratio * facts.window_ns * calls.inside_model_count / calls.count
    if per_step < PER_STEP or idle_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "all",
        Range(0.4 * idle_ns, 0.8 * idle_ns, idle_ns),
        evidence=(*evidence_of({"copies_per_step_count": round(per_step, 2)}), *line_evidence(calls.line)),
        remedies=(Remedy("make_tensors_on_device", Safety.BY_HAND),),
        is_specific=True,
    )
