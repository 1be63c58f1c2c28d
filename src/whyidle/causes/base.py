"""What every cause is: a module with an id and a pure judgement over facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from whyidle.analysis.facts import Calls, Facts, Line
from whyidle.findings import Evidence, Finding, Range

# Below that share of the steady window a state costs too little to act on; it becomes a note. The
# shared machines that jobs run on vary by more than that from run to run.
LEAST_SHARE = 0.03


class Cause(Protocol):
    """`ID` is also the name of the file, of its texts and of its cases."""

    ID: str

    def judge(self, facts: Facts) -> Finding: ...


def around(value: float, spread: float = 0.2) -> Range:
    """An estimate with a relative spread to both sides."""
    return Range(max(0.0, value * (1 - spread)), value, value * (1 + spread))


def line_evidence(line: Line | None) -> tuple[Evidence, ...]:
    """The place to look at, with its share of the samples, and its text."""
    if line is None:
        return ()
    evidence = [Evidence("hot_line", line.place, round(line.share_ratio, 3))]
    if line.text:
        evidence.append(Evidence("hot_text", line.text))
    return tuple(evidence)


def evidence_of(values: Mapping[str, int | float | str | bool | None]) -> tuple[Evidence, ...]:
    """Evidence for what is known; what is not known is left out."""
    return tuple(
        Evidence(fact, round(value, 4) if isinstance(value, float) else value)
        for fact, value in values.items()
        if value is not None
    )


def calls_per_step(facts: Facts, calls: Calls) -> float:
    return calls.count / facts.steps_count if facts.steps_count else 0.0


def interval_steps(facts: Facts, calls: Calls) -> int | None:
    """How many steps lie between steps with such calls; None when none has one."""
    return round(facts.steps_count / calls.steps_with_calls) if calls.steps_with_calls else None
