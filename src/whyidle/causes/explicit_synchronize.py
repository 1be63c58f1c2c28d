"""The loop calls synchronize() itself, and the host waits for the device each time."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.findings import CannotTell, Finding, RuledOut

ID = "explicit_synchronize"


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("sync")
    if facts.device_kind == "cpu" or calls is None or "synchronize" not in calls.names:
        return RuledOut(ID)
    return CannotTell(ID, "device_idle")
