"""Forward or loss make tensors on the host and copy them over."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.findings import CannotTell, Finding, RuledOut

ID = "tensors_made_on_host"


def judge(facts: Facts) -> Finding:
    if facts.device_kind == "cpu" or "copy" not in facts.calls:
        return RuledOut(ID)
    return CannotTell(ID, "device_idle")
