"""Values are read back from the device in the step, and each read waits until the device has caught up."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.call_claims import calls_evidence, sync_share
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "scalar_read_each_step"


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("sync")
    if facts.device_kind == "cpu" or calls is None:
        return RuledOut(ID)  # a read from host memory waits for nothing
    if facts.device is None:  # a wait for a busy device costs nothing; only the idleness after it does
        return CannotTell(ID, "device_idle")
    idle_ns = facts.device.after_sync_ratio * facts.window_ns * (1 - sync_share(calls, "synchronize"))
    if idle_ns <= 0:
        return RuledOut(ID)
    return Found(
        ID,
        "all",
        Range(0.5 * idle_ns, 0.9 * idle_ns, idle_ns),
        evidence=(*evidence_of({"sync_count": calls.count}), *calls_evidence(facts, calls)),
        remedies=(Remedy("defer_scalar_reads", Safety.OPT_IN),),
        is_specific=True,
    )
