"""Copies to the device come from pageable memory or wait for their end."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.findings import CannotTell, Finding, RuledOut

ID = "copy_blocks_host"


def judge(facts: Facts) -> Finding:
    if facts.device_kind == "cpu" or "copy" not in facts.calls:
        return RuledOut(ID)
    return CannotTell(ID, "device_idle")
