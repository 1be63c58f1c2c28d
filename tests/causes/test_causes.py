"""Every cause against its cases: facts under which it must be found, must be ruled out, cannot be told.

A file of cases:

    base: {…}          facts that all its cases share
    found:             also `ruled_out`, `cannot_tell`
      - name: …
        facts: {…}     laid over the base; null takes a fact away
        pool: data                       what else to check; each may be left out
        is_specific: true
        saves: [0.3, 0.4]                bounds of the middle estimate, as a share of the window
        evidence: {num_workers: 0}
        remedy: {id: raise_loader_workers, safety: safe, num_workers: 4}
        needs: nvml                      only for cannot_tell

Durations may be written "12 s", "0.4 ms".
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from factory import build, merge

from whyidle.analysis.facts import Facts
from whyidle.analysis.step_phases import PHASES
from whyidle.causes.all_causes import CAUSES
from whyidle.causes.base import Cause
from whyidle.causes.diagnose import diagnose
from whyidle.findings import CannotTell, Finding, Found, RuledOut

FOLDER = Path(__file__).parent
VERDICTS = {"found": Found, "ruled_out": RuledOut, "cannot_tell": CannotTell}
CHECKS = {"pool", "is_specific", "saves", "evidence", "remedy", "needs"}
OUTSIDE_THE_WINDOW = ("start", "end")
BY_ID = {cause.ID: cause for cause in CAUSES}


def load(cause: str) -> dict[str, Any]:
    content = yaml.safe_load((FOLDER / f"{cause}.yaml").read_text(encoding="utf-8"))
    assert set(content) <= {"base", *VERDICTS}, f"{cause}.yaml: {sorted(content)}"
    return dict(content)


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        content = load(path.stem)
        for verdict in VERDICTS:
            for case in content.get(verdict, []):
                unknown = set(case) - CHECKS - {"name", "facts"}
                assert not unknown, f"{path.name}: {case.get('name')}: {sorted(unknown)}"
                data = merge(content.get("base", {}), case.get("facts", {}))
                yield pytest.param(path.stem, verdict, data, case, id=f"{path.stem}: {case['name']}")


ALL_CASES = list(cases())
FOUND_CASES = [case for case in ALL_CASES if case.values[1] == "found"]


@pytest.mark.parametrize(("cause", "verdict", "data", "case"), ALL_CASES)
def test_a_cause_is_judged_as_its_case_says(
    cause: str, verdict: str, data: dict[str, Any], case: dict[str, Any]
) -> None:
    facts = build(Facts, data)
    finding = BY_ID[cause].judge(facts)
    assert isinstance(finding, VERDICTS[verdict]), finding
    assert finding.cause == cause
    if isinstance(finding, Found):
        check_found(finding, facts, case)
    if isinstance(finding, CannotTell):
        assert finding.needs == case.get("needs", finding.needs)


def check_found(found: Found, facts: Facts, case: dict[str, Any]) -> None:
    saves = found.saves_ns
    whole_ns = facts.wall_ns if found.pool in OUTSIDE_THE_WINDOW else facts.window_ns
    assert 0 <= saves.low <= saves.mid <= saves.high <= whole_ns
    assert found.pool in (*PHASES, "all", "compute", *OUTSIDE_THE_WINDOW)
    assert found.remedies
    assert found.pool == case.get("pool", found.pool)
    assert found.is_specific == case.get("is_specific", found.is_specific)
    if "saves" in case:
        low, high = case["saves"]
        assert low <= saves.mid / whole_ns <= high
    evidence = {item.fact: item.value for item in found.evidence}
    assert len(evidence) == len(found.evidence), "a fact is given twice"
    assert evidence | case.get("evidence", {}) == evidence
    if "remedy" in case:
        first = found.remedies[0]
        wanted = {"id": first.id, "safety": first.safety.value, **first.setting}
        assert wanted | case["remedy"] == wanted


@pytest.mark.parametrize(("cause", "verdict", "data", "case"), FOUND_CASES)
def test_what_is_found_has_its_price_in_the_report(
    cause: str, verdict: str, data: dict[str, Any], case: dict[str, Any]
) -> None:
    facts = build(Facts, data)
    diagnosis = diagnose(facts)
    shown = [item.cause for item in (*diagnosis.findings, *diagnosis.notes)]
    assert shown.count(cause) == 1, shown


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.ID)
def test_the_cases_show_all_that_a_cause_can_say(cause: Cause) -> None:
    source = inspect.getsource(inspect.getmodule(cause.judge))  # type: ignore[arg-type]
    content = load(cause.ID)
    count = {verdict: len(content.get(verdict, [])) for verdict in VERDICTS}
    can_be_found = "return Found(" in source or "return _found(" in source
    can_be_unknown = "CannotTell(" in source
    can_be_ruled_out = "RuledOut(" in source
    assert count["found"] >= 2 if can_be_found else count["found"] == 0
    assert count["cannot_tell"] >= (1 if can_be_found else 2) if can_be_unknown else count["cannot_tell"] == 0
    assert count["ruled_out"] >= 3 or not can_be_ruled_out
    names = Counter(case["name"] for verdict in VERDICTS for case in content.get(verdict, []))
    assert max(names.values()) == 1


def test_nothing_is_found_where_nothing_is_known() -> None:
    verdicts: list[Finding] = [cause.judge(Facts()) for cause in CAUSES]
    assert not [verdict for verdict in verdicts if isinstance(verdict, Found)]


def test_facts_that_do_not_exist_and_facts_of_another_type_are_refused() -> None:
    with pytest.raises(KeyError, match="no_such_fact"):
        build(Facts, {"no_such_fact": 1})
    with pytest.raises(KeyError, match="Phase needs"):
        build(Facts, {"phases": {"data": {"host_ns": 1}}})
    with pytest.raises(TypeError, match="device_kind"):
        build(Facts, {"device_kind": 1})
    with pytest.raises(TypeError, match="steps_count"):
        build(Facts, {"steps_count": "many"})
