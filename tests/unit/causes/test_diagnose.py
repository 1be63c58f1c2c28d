"""How lost time is shared out among what was found."""

from __future__ import annotations

import math
from typing import Any

import pytest
from factory import S, facts
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.facts import Facts
from whyidle.analysis.step_phases import COMPUTE_PHASES, PHASES
from whyidle.causes.all_causes import CAUSES
from whyidle.causes.base import LEAST_SHARE
from whyidle.causes.diagnose import Diagnosis, Priced, diagnose, settle
from whyidle.findings import CannotTell, Evidence, Finding, Found, Range, RuledOut

POOLS = ("data", "logging", "loss", "gc", "checkpoint", "compute", "all", "validation", "no_such_phase")
EDGES = ("start", "end")


def hundred_seconds(**phases: float) -> Facts:
    """A window of 100 s and 1000 steps; what no phase names is forward."""
    named = {
        name: {"host_ns": round(s * S), "bubble_ns": 0 if name in COMPUTE_PHASES else round(s * S)}
        for name, s in phases.items()
    }
    rest = {"host_ns": 100 * S - sum(int(phase["host_ns"]) for phase in named.values()), "bubble_ns": 0}
    whole: dict[str, Any] = {"forward": rest, **named}
    return facts(window_ns=100 * S, wall_ns=120 * S, steps_count=1000, phases=whole)


def claim(cause: str, pool: str, mid_s: float, *, spread: float = 0.2, is_specific: bool = False) -> Found:
    mid = mid_s * S
    saves = Range(mid * (1 - spread), mid, mid * (1 + spread))
    return Found(cause, pool, saves, is_specific=is_specific)


def priced(diagnosis: Diagnosis) -> dict[str, float]:
    return {item.cause: item.cost_ns / S for item in (*diagnosis.findings, *diagnosis.notes)}


# -- one claim ------------------------------------------------------------------------------------


def test_a_single_claim_costs_what_it_saves() -> None:
    (item,) = settle(hundred_seconds(data=50), [claim("a", "data", 40)]).findings
    assert item.cost_ns == 40 * S
    assert item.cost_ratio == 0.4
    assert item.step_ns == Range(52e6, 60e6, 68e6)


def test_no_claim_is_worth_more_than_its_phase() -> None:
    assert priced(settle(hundred_seconds(data=20), [claim("a", "data", 90)])) == {"a": 20}


def test_what_the_device_did_not_wait_for_cannot_be_saved() -> None:
    hidden = facts(
        window_ns=100 * S,
        steps_count=1000,
        phases={"logging": {"host_ns": 50 * S, "bubble_ns": 10 * S}},
    )
    assert priced(settle(hidden, [claim("a", "logging", 50)])) == {"a": 10}


def test_compute_is_claimed_by_its_host_time() -> None:
    assert priced(settle(hundred_seconds(data=20), [claim("a", "compute", 30)])) == {"a": 30}


def test_a_phase_that_did_not_occur_has_nothing_to_claim() -> None:
    diagnosis = settle(hundred_seconds(), [claim("a", "data", 40), claim("b", "no_such_phase", 40)])
    assert priced(diagnosis) == {}


def test_under_three_per_cent_it_is_a_note_and_under_three_in_a_thousand_nothing() -> None:
    found = [claim("large", "data", 3.01), claim("small", "gc", 2.99), claim("tiny", "logging", 0.2)]
    diagnosis = settle(hundred_seconds(data=10, gc=10, logging=10), list(found))
    assert [item.cause for item in diagnosis.findings] == ["large"]
    assert [item.cause for item in diagnosis.notes] == ["small"]


def test_start_and_end_are_shares_of_the_whole_run_and_change_no_step() -> None:
    start, end = settle(hundred_seconds(), [claim("a", "start", 30), claim("b", "end", 24)]).findings
    assert (start.cost_ratio, end.cost_ratio) == (0.25, 0.2)
    assert start.step_ns is None
    assert end.step_ns is None


def test_a_claim_of_nothing_is_no_division_by_zero() -> None:
    assert priced(settle(hundred_seconds(data=10), [claim("a", "data", 0)])) == {}
    assert priced(settle(facts(), [claim("a", "data", 5), claim("b", "all", 5)])) == {}


# -- several claims -------------------------------------------------------------------------------


def test_the_specific_cause_is_served_before_the_general_one_it_explains() -> None:
    found: list[Finding] = [
        claim("general", "data", 40),
        claim("specific", "data", 35, is_specific=True),
    ]
    assert priced(settle(hundred_seconds(data=45), found)) == {"specific": 35}


def test_a_specific_cause_of_little_does_not_push_the_general_one_aside() -> None:
    found: list[Finding] = [claim("general", "data", 40), claim("specific", "data", 5, is_specific=True)]
    costs = priced(settle(hundred_seconds(data=45), found))
    assert costs["general"] == pytest.approx(40)


def test_what_a_specific_cause_leaves_goes_to_the_general_one() -> None:
    found: list[Finding] = [claim("general", "data", 40), claim("specific", "data", 25, is_specific=True)]
    costs = priced(settle(hundred_seconds(data=45), found))
    assert costs == {"specific": 25, "general": 15}


def test_crumbs_of_a_general_cause_are_the_same_story() -> None:
    found: list[Finding] = [claim("general", "data", 40), claim("specific", "data", 30, is_specific=True)]
    assert priced(settle(hundred_seconds(data=45), found)) == {"specific": 30}


def test_claims_on_different_phases_do_not_touch() -> None:
    found: list[Finding] = [claim("a", "data", 20), claim("b", "checkpoint", 10), claim("c", "gc", 5)]
    costs = priced(settle(hundred_seconds(data=20, checkpoint=10, gc=5), found))
    assert costs == {"a": 20, "b": 10, "c": 5}


@pytest.mark.parametrize(
    ("pool", "names"),
    [
        ("logging", ("tracker_too_often", "logging_too_often")),
        ("gc", ("garbage_collection_pauses", "cache_cleared_in_loop")),
        ("data", ("loader_without_workers", "sample_cpu_heavy")),  # who claims only what the first leaves
    ],
)
def test_two_causes_that_claim_separate_parts_of_a_phase_both_have_a_price(
    pool: str, names: tuple[str, str]
) -> None:
    found: list[Finding] = [claim(names[0], pool, 20), claim(names[1], pool, 15)]
    costs = priced(settle(hundred_seconds(**{pool: 36}), found))
    assert costs == {names[0]: 20, names[1]: 15}


def test_slow_epoch_starts_and_slow_batches_both_have_a_price() -> None:
    """Starts are left out of the steady wait that the others claim."""
    found: list[Finding] = [
        claim("workers_rebuilt_each_epoch", "data", 20, is_specific=True),
        claim("collate_slow", "data", 15, is_specific=True),
    ]
    assert len(priced(settle(hundred_seconds(data=36), found))) == 2


def test_threads_that_fight_are_named_before_the_samples_that_burn_cpu() -> None:
    """`threads_oversubscribed` claims 40 % of the wait, `sample_cpu_heavy` 90 %: both in the same run."""
    found: list[Finding] = [
        claim("sample_cpu_heavy", "data", 0.9 * 40),
        claim("threads_oversubscribed", "data", 0.4 * 40, is_specific=True),
    ]
    assert "threads_oversubscribed" in priced(settle(hundred_seconds(data=40), found))


def test_a_claim_on_everything_takes_what_others_left() -> None:
    found: list[Finding] = [claim("all", "all", 90), claim("data", "data", 50)]
    costs = priced(settle(hundred_seconds(data=50), found))
    assert sum(costs.values()) <= 100 + 1e-6


def test_findings_come_dearest_first() -> None:
    found: list[Finding] = [claim("a", "gc", 5), claim("b", "data", 30), claim("c", "logging", 10)]
    diagnosis = settle(hundred_seconds(gc=5, data=30, logging=10), found)
    assert [item.cause for item in diagnosis.findings] == ["b", "c", "a"]


def test_other_verdicts_are_passed_on() -> None:
    unknown = CannotTell("c", "nvml")
    diagnosis = settle(hundred_seconds(), [RuledOut("a"), unknown, RuledOut("b")])
    assert diagnosis == Diagnosis((), (), ("a", "b"), (unknown,))


# -- any claims at all ----------------------------------------------------------------------------

SECONDS = st.floats(0, 150)
CLAIMS = st.builds(
    lambda pool, ends, is_specific: Found(
        "", pool, Range(*(second * S for second in sorted(ends))), is_specific=is_specific
    ),
    st.sampled_from((*POOLS, *PHASES)),
    st.tuples(SECONDS, SECONDS, SECONDS),
    st.booleans(),
)


@st.composite
def runs(draw: st.DrawFn) -> Facts:
    weights = draw(st.dictionaries(st.sampled_from(PHASES), st.integers(0, 50), max_size=8))
    whole = sum(weights.values()) or 1
    phases = {}
    for name, weight in weights.items():
        host_ns = weight * 100 * S // whole
        hidden = draw(st.floats(0, 1))
        phases[name] = {
            "host_ns": host_ns,
            "bubble_ns": 0 if name in COMPUTE_PHASES else round(host_ns * hidden),
        }
    return facts(window_ns=100 * S, wall_ns=120 * S, steps_count=draw(st.integers(0, 500)), phases=phases)


@given(runs(), st.lists(CLAIMS, max_size=8))
def test_whatever_is_claimed_no_second_is_sold_twice(run: Facts, claims: list[Found]) -> None:
    found = [
        Found(f"c{number}", each.pool, each.saves_ns, is_specific=each.is_specific)
        for number, each in enumerate(claims)
    ]
    diagnosis = settle(run, list(found))
    items = (*diagnosis.findings, *diagnosis.notes)
    tolerance = 1e-6 * run.window_ns
    assert sum(item.cost_ns for item in items) <= run.window_ns + tolerance
    for item in items:
        check_price(item, run, tolerance)
    for name in PHASES:
        own = sum(item.cost_ns for item in items if item.found.pool == name)
        whole = ("loss", "backward") if name == "loss" else (name,)  # a loop's graph is in both
        assert own <= sum(claimable_ns(run, each) for each in whole) + tolerance
    assert len({item.cause for item in items}) == len(items)
    for part in (diagnosis.findings, diagnosis.notes):
        assert sorted(part, key=lambda item: -item.cost_ns) == list(part)
    assert all(item.cost_ratio >= LEAST_SHARE for item in diagnosis.findings)
    assert all(item.cost_ratio < LEAST_SHARE for item in diagnosis.notes)


def claimable_ns(run: Facts, name: str) -> int:
    phase = run.phases.get(name)
    if phase is None:
        return 0
    return phase.host_ns if name in COMPUTE_PHASES or name == "validation" else phase.bubble_ns


def check_price(item: Priced, run: Facts, tolerance: float) -> None:
    assert 0 <= item.cost_ns <= item.found.saves_ns.mid + tolerance
    assert item.cost_ratio == pytest.approx(item.cost_ns / run.window_ns)
    if run.steps_count == 0:
        assert item.step_ns is None
        return
    assert item.step_ns is not None
    mean = run.window_ns / run.steps_count
    bounds = (item.step_ns.low, item.step_ns.mid, item.step_ns.high)
    assert all(math.isfinite(bound) for bound in bounds)
    assert 0 <= bounds[0] <= bounds[1] <= bounds[2] <= mean + 1e-6


def test_evidence_and_remedies_stay_with_their_finding() -> None:
    found = Found("a", "data", Range(9 * S, 10 * S, 11 * S), evidence=(Evidence("num_workers", 0),))
    (item,) = settle(hundred_seconds(data=20), [found]).findings
    assert item.found is found


# -- all causes together --------------------------------------------------------------------------


def healthy(**changes: Any) -> Facts:
    """A job whose workers are well ahead of it, with a little of everything."""
    whole = {
        "device_kind": "cpu",
        "visible_devices_count": 0,
        "cores_count": 8.0,
        "wall_ns": 70 * S,
        "window_ns": 60 * S,
        "start": {"time_ns": 6 * S},
        "end": {"time_ns": 1 * S},
        "steps_count": 600,
        "phases": {
            "data": {"host_ns": S // 2, "bubble_ns": S // 2},
            "forward": {"host_ns": 19 * S, "bubble_ns": 0},
            "loss": {"host_ns": S // 2, "bubble_ns": 0},
            "backward": {"host_ns": 36 * S, "bubble_ns": 0},
            "optimizer": {"host_ns": 3 * S, "bubble_ns": 0},
            "logging": {"host_ns": S // 2, "bubble_ns": S // 2},
            "other": {"host_ns": S // 2, "bubble_ns": S // 2},
        },
        "calls": {
            "print": {"count": 12, "self_ns": S // 100, "total_ns": S // 100},
            "progress": {"count": 600, "self_ns": S // 10, "total_ns": S // 10},
        },
        "loader": {
            "num_workers": 4,
            "batches_count": 600,
            "batch_size": 32,
            "wait_ns": S // 2,
            "steady_wait_ns": S // 4,
            "epoch_starts_ns": [S // 4],
            "first_start_ns": S // 4,
            "service_ns": 120e6,
            "service_p50_ns": 118e6,
            "on_cpu_ratio": 0.9,
            "run_delay_ratio": 0.03,
            "worker_busy_ratio": 0.4,
            "worker_threads": 1,
            "sample_p50_ns": 3.5e6,
            "sample_max_ns": 9e6,
            "collate_ratio": 0.05,
            "opens_per_sample": 1.0,
            "bytes_per_sample": 2e5,
            "late_share_ratio": 0.0,
            "suggested_num_workers": 4,
            "suggested_prefetch_factor": 2,
            "predictions": {
                "as_is": 100e6,
                "free_data": 99.5e6,
                "more_workers": 100e6,
                "deeper_prefetch": 100e6,
            },
        },
        "trend": {"first_ns": 100e6, "last_ns": 101e6, "mean_ns": 100e6, "monotony_ratio": 0.4},
        "main_cpu_ns": 200 * S,
    }
    return facts(**{**whole, **changes})


def test_a_healthy_run_has_no_findings() -> None:
    diagnosis = diagnose(healthy())
    assert diagnosis.findings == ()
    assert len(diagnosis.ruled_out) + len(diagnosis.cannot_tell) >= len(CAUSES) - len(diagnosis.notes) - 2


def test_every_cause_gives_one_verdict() -> None:
    verdicts = [cause.judge(healthy()) for cause in CAUSES]
    assert [verdict.cause for verdict in verdicts] == [cause.ID for cause in CAUSES]


def test_the_emptiest_facts_break_no_cause() -> None:
    assert diagnose(Facts()).findings == ()
    assert diagnose(facts(window_ns=1, steps_count=1)).findings == ()
