"""A switch for debugging is on in a real run: anomaly mode, blocking launches, a tracer, determinism."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.findings import Evidence, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "debug_switch_on"
ON_RATIO = 0.5  # of the steps
# Share of the named phases that each switch adds: reported gains of 1.4–2.5× for anomaly mode
# (casebook DB01, DB02, and 1.4 reproduced), of 9× on call-heavy code for line tracing (DB04).
SAVES_OF_COMPUTE = {
    "anomaly_mode": (0.2, 0.45, 0.65),
    "tracer": (0.1, 0.4, 0.9),
    "blocking_launches": (0.05, 0.2, 0.5),
}


def judge(facts: Facts) -> Finding:
    on = [name for name in SAVES_OF_COMPUTE if facts.flags.get(name, 0.0) >= ON_RATIO]
    if not on:
        return RuledOut(ID)
    compute_ns = sum(
        facts.phases[name].host_ns
        for name in ("forward", "loss", "backward", "optimizer", "other")
        if name in facts.phases
    )
    low, mid, high = (max(SAVES_OF_COMPUTE[name][at] for name in on) for at in range(3))
    return Found(
        ID,
        "compute" if on != ["tracer"] else "all",
        Range(low * compute_ns, mid * compute_ns, high * compute_ns),
        evidence=(
            *(Evidence(name, True) for name in on),
            *evidence_of({"deterministic_mode": True if facts.flags.get("deterministic_mode") else None}),
        ),
        remedies=(Remedy("turn_off_debug_switch", Safety.OPT_IN),),
    )
