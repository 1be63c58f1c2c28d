"""What the causes of single kinds of call share: their time, how often they come, where they stand."""

from __future__ import annotations

from whyidle.analysis.facts import Calls, Facts, Line
from whyidle.causes.base import calls_per_step, evidence_of, interval_steps, line_evidence
from whyidle.findings import Evidence, Range


def time_ns(facts: Facts, *kinds: str) -> int:
    """Time of these kinds on the training thread, each second counted once."""
    return sum(facts.calls[kind].self_ns for kind in kinds if kind in facts.calls)


def dearest(facts: Facts, *kinds: str) -> Calls | None:
    """Of these kinds the one that took longest; None when none occurred."""
    known = [facts.calls[kind] for kind in kinds if kind in facts.calls]
    return max(known, key=lambda calls: calls.self_ns, default=None)


def main_library(calls: Calls, line: Line | None = None) -> str | None:
    """The library or call that took most of the time, as recorded or as sampled."""
    named = {name: time for name, time in calls.names.items() if name}
    if named:
        return max(named, key=lambda name: named[name])
    return next(iter(line.libraries), None) if line is not None else None


def calls_evidence(facts: Facts, calls: Calls) -> tuple[Evidence, ...]:
    """How often, how long, where."""
    return (
        *evidence_of(
            {
                "calls_count": calls.count or None,
                "calls_per_step_count": round(calls_per_step(facts, calls), 2) if calls.count else None,
                "time_per_call_ns": calls.self_ns / calls.count if calls.count else None,
                "interval_steps_count": interval_steps(facts, calls),
            }
        ),
        *line_evidence(calls.line),
    )


def rarer(duration_ns: float, least: float = 0.7) -> Range:
    """What doing it every n steps instead of every step saves: nearly all, at least `least`."""
    return Range(least * duration_ns, 0.95 * duration_ns, float(duration_ns))


def sync_share(calls: Calls, name: str) -> float:
    """Share of the waiting for the device that calls of this name did."""
    whole = sum(calls.names.values())
    return calls.names.get(name, 0) / whole if whole else 0.0
