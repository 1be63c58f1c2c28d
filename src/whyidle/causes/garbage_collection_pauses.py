"""Python's garbage collector stops the loop to walk a large heap."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of
from whyidle.causes.call_claims import time_ns
from whyidle.findings import Finding, Found, Range, Remedy, RuledOut, Safety

ID = "garbage_collection_pauses"


def judge(facts: Facts) -> Finding:
    calls = facts.calls.get("gc")
    if calls is None:
        return RuledOut(ID)
    # Collections that the program asks for are another cause's.
    explicit = facts.calls.get("gc_collect")
    own_ns = time_ns(facts, "gc") - (explicit.total_ns if explicit is not None else 0)
    if own_ns <= 0:
        return RuledOut(ID)
    automatic = max(0, calls.count - (explicit.count if explicit is not None else 0))
    return Found(
        ID,
        "gc",
        Range(0.6 * own_ns, 0.95 * own_ns, float(own_ns)),
        evidence=evidence_of(
            {
                "calls_count": automatic,
                "time_per_call_ns": own_ns / automatic if automatic else None,
                "gc_ratio": facts.share(own_ns),
            }
        ),
        remedies=(Remedy("freeze_gc", Safety.OPT_IN),),
    )
