"""A GPU is there and the model trains on the CPU."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "gpu_unused"


def judge(facts: Facts) -> Finding:
    if facts.visible_devices_count is None:
        return CannotTell(ID, "nvml")
    if facts.visible_devices_count == 0 or facts.device_kind != "cpu":
        return RuledOut(ID)
    compute_ns = sum(
        facts.phases[name].host_ns
        for name in ("forward", "loss", "backward", "optimizer")
        if name in facts.phases
    )
    return Found(
        ID,
        "compute",
        Range(0.3 * compute_ns, 0.8 * compute_ns, 0.95 * compute_ns),
        evidence=evidence_of({"visible_gpus_count": facts.visible_devices_count, "used_gpus_count": 0}),
        remedies=(Remedy("move_model_to_gpu", Safety.BY_HAND),),
    )
