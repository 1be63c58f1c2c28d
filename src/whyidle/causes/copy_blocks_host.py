"""The host waits for copies to the device, and the device for the host afterwards."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import LEAST_SHARE, calls_per_step, evidence_of, line_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "copy_blocks_host"
BLOCKING_RATIO = 0.5  # of the copies


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("copy")
    if facts.device_kind == "cpu" or calls is None or not calls.count:
        return RuledOut(ID)
    if facts.device is None:
        return CannotTell(ID, "device_idle")
    if (calls.blocking_ratio or 0.0) < BLOCKING_RATIO:
        return RuledOut(ID)
    # Pinning costs a copy of its own on the host: it pays only where the device really stands idle.
    idle_ns = facts.device.after_copy_ratio * facts.window_ns
    if facts.share(idle_ns) < LEAST_SHARE:
        return RuledOut(ID)
    return Found(
        ID,
        "all",
        Range(0.3 * idle_ns, 0.8 * idle_ns, idle_ns),
        evidence=(
            *evidence_of(
                {
                    "copies_per_step_count": round(calls_per_step(facts, calls), 2),
                    "pageable_ratio": calls.pageable_ratio,
                    "pageable_non_blocking_count": calls.pageable_non_blocking_count or None,
                    "pageable_bytes": round(calls.bytes * (calls.pageable_ratio or 0.0) / facts.steps_count)
                    if facts.steps_count
                    else None,
                }
            ),
            *line_evidence(calls.line),
        ),
        remedies=(Remedy("pin_and_copy_async", Safety.SAFE, {"pin_memory": True, "non_blocking": True}),),
        is_specific=True,
    )
