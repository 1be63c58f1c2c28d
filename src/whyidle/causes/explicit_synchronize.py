"""The loop calls synchronize() itself, and the host waits for the device each time."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.findings import CannotTell, Finding, RuledOut

ID = "explicit_synchronize"


def judge(facts: Facts) -> Finding:
    if facts.device_kind == "cpu" or "sync" not in facts.calls:
        return RuledOut(ID)
    return CannotTell(ID, "device_idle")
