"""The loop calls synchronize() itself, and the host waits for the device each time."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.call_claims import calls_evidence, sync_share
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "explicit_synchronize"


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("sync")
    if facts.device_kind == "cpu" or calls is None or "synchronize" not in calls.names:
        return RuledOut(ID)
    if facts.device is None:
        return CannotTell(ID, "device_idle")
    idle_ns = facts.device.after_sync_ratio * facts.window_ns * sync_share(calls, "synchronize")
    if idle_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "all",
        Range(0.5 * idle_ns, 0.9 * idle_ns, idle_ns),
        evidence=calls_evidence(facts, calls),
        remedies=(Remedy("remove_synchronize", Safety.OPT_IN),),
        is_specific=True,
    )
