"""Each step copies many small tensors to the device one by one."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.findings import CannotTell, Finding, RuledOut

ID = "many_small_copies"


def judge(facts: Facts) -> Finding:
    if facts.device_kind == "cpu" or "copy" not in facts.calls:
        return RuledOut(ID)
    return CannotTell(ID, "device_idle")
