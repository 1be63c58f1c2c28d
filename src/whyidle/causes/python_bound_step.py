"""The step launches so many small kernels that the host cannot keep the device fed."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "python_bound_step"
LAUNCHING = ("forward", "backward", "optimizer")
# The queue has run empty by the end of nearly every launching phase, and the device idled through a
# good part of them. Shorter gaps are the first launches after a wait, which another cause owns.
DRAINED_RATIO = 0.7
LEAST_SHARE = 0.15
MOST_UNKNOWN = 0.3  # of the marked time: kernels never seen back to back


def judge(facts: Facts) -> Finding:
    if facts.device is None:
        return CannotTell(ID, "gpu" if facts.device_kind == "cpu" else "drained_markers")
    if facts.device.unknown_ratio > MOST_UNKNOWN:
        return CannotTell(ID, "drained_markers")
    idle_ns = sum(facts.phase_ns(name) for name in LAUNCHING)
    host_ns = sum(facts.phases[name].host_ns for name in LAUNCHING if name in facts.phases)
    drained = [facts.device.drained_ratio_by_phase.get(name, 0.0) for name in ("forward", "backward")]
    if facts.share(idle_ns) < LEAST_SHARE or idle_ns < 0.5 * host_ns or min(drained) < DRAINED_RATIO:
        return RuledOut(ID)
    return Found(
        ID,
        "compute",
        Range(0.3 * idle_ns, 0.7 * idle_ns, float(idle_ns)),
        evidence=evidence_of(
            {
                "drained_ratio": min(drained),
                "time_per_step_ns": facts.per_step(host_ns),
                "idle_in_launching_ns": idle_ns,
            }
        ),
        remedies=(Remedy("compile_model", Safety.OPT_IN), Remedy("use_foreach_optimizer", Safety.OPT_IN)),
    )
