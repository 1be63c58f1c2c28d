"""The report's dict against the contract: keys, their order, units and rounding."""

from __future__ import annotations

import json
from typing import Any

import pytest
from factory import MS, S, build, facts, run_of

import whyidle
from whyidle.analysis.facts import Facts, Line
from whyidle.analysis.read_facts import HotLine, Rank, RunFacts
from whyidle.analysis.step_phases import PHASES
from whyidle.causes.diagnose import Diagnosis, Priced
from whyidle.findings import CannotTell, Evidence, Found, Range, Remedy, Safety
from whyidle.reports.model import build as build_report

KEYS = [
    "schema",
    "whyidle",
    "command",
    "run",
    "exit_code",
    "signal",
    "wall_s",
    "start_s",
    "window_s",
    "end_s",
    "device",
    "machine",
    "steps",
    "idle_ratio",
    "gpu",
    "phases",
    "overhead_ratio",
    "findings",
    "notes",
    "ruled_out",
    "cannot_tell",
    "ranks",
    "lines",
    "problems",
]
FINDING_KEYS = ["cause", "state", "cost_ratio", "cost_s", "predicted_step_ms", "evidence", "remedies"]


def measured(**changes: Any) -> Facts:
    whole: dict[str, Any] = {
        "device_kind": "cpu",
        "wall_ns": 61_234_567_890,
        "window_ns": 57 * S,
        "start": {"time_ns": 3 * S},
        "end": {"time_ns": 1_234_567_890},
        "steps_count": 480,
        "step_mean_ns": 57 * S / 480,
        "step_median_ns": 121.0004 * MS,
        "step_p95_ns": 180.2 * MS,
        "phases": {
            "data": {
                "host_ns": 42 * S,
                "bubble_ns": 40 * S,
                "line": {"place": "data.py:41", "share_ratio": 0.8},
            },
            "forward": {"host_ns": 5 * S, "bubble_ns": 0},
            "backward": {"host_ns": 7_777_777_777, "bubble_ns": 0},
            "other": {"host_ns": 2_222_222_223, "bubble_ns": 2_222_222_223},
        },
    }
    return facts(**{**whole, **changes})


def found() -> Priced:
    return Priced(
        Found(
            "loader_without_workers",
            "data",
            Range(39 * S, 40 * S, 41 * S),
            evidence=(Evidence("num_workers", 0), Evidence("hot_line", "data.py:41", 0.81)),
            remedies=(Remedy("raise_loader_workers", Safety.SAFE, {"num_workers": 4}),),
        ),
        40 * S,
        0.70175438,
        Range(33.33333e6, 35.4167e6, 37.5e6),
    )


def report(
    run_facts: RunFacts | None = None, diagnosis: Diagnosis | None = None, **run: Any
) -> dict[str, Any]:
    whole = run_facts or RunFacts(facts=measured(), wall_ns=61_234_567_890, samples_per_s=264.1234)
    info = {"command": ["python", "train.py"], "exit_code": 0, "signal": None, **run}
    return build_report(run_of(**info), whole, diagnosis or Diagnosis(findings=(found(),)))


def test_the_keys_are_those_of_the_contract_in_its_order() -> None:
    assert list(report()) == KEYS
    assert list(report()["findings"][0]) == FINDING_KEYS


def test_the_report_is_json_as_it_stands() -> None:
    text = json.dumps(report(), allow_nan=False)
    assert json.loads(text) == report()


def test_what_a_run_is() -> None:
    head = report()
    assert head["schema"] == 1
    assert head["whyidle"] == whyidle.__version__
    assert head["command"] == ["python", "train.py"]
    assert head["run"] == "whyidle-runs/train-1"
    assert head["device"] == {"kind": "cpu", "name": "cpu", "count": 1}


def test_start_window_and_end_make_up_the_wall() -> None:
    times = report()
    assert times["wall_s"] == 61.235
    assert times["start_s"] + times["window_s"] + times["end_s"] == pytest.approx(times["wall_s"], abs=0.002)


def test_steps_are_in_milliseconds() -> None:
    assert report()["steps"] == {
        "count": 480,
        "median_ms": 121.0,
        "mean_ms": 118.75,
        "p95_ms": 180.2,
        "samples_per_s": 264.12,
    }


def test_phases_keep_their_order_and_their_shares_add_up() -> None:
    phases = report()["phases"]
    assert list(phases) == [name for name in PHASES if name in phases]
    assert sum(phase["host_ratio"] for phase in phases.values()) == pytest.approx(1, abs=0.001)
    assert phases["data"] == {
        "host_s": 42.0,
        "host_ratio": 0.7368,
        "bubble_s": 40.0,
        "bubble_ratio": 0.7018,
        "hot_line": "data.py:41",
    }
    assert phases["forward"]["hot_line"] is None


def test_on_a_cpu_idle_is_what_is_not_compute() -> None:
    busy_ns = 5 * S + 7_777_777_777
    assert report()["idle_ratio"] == pytest.approx(1 - busy_ns / (57 * S), abs=1e-4)
    assert report()["gpu"] is None


def test_a_finding_in_full() -> None:
    assert report()["findings"] == [
        {
            "cause": "loader_without_workers",
            "state": "found",
            "cost_ratio": 0.7018,
            "cost_s": 40.0,
            "predicted_step_ms": {"low": 33.333, "mid": 35.417, "high": 37.5},
            "evidence": [
                {"fact": "num_workers", "value": 0},
                {"fact": "hot_line", "value": "data.py:41", "share_ratio": 0.81},
            ],
            "remedies": [{"id": "raise_loader_workers", "safety": "safe", "setting": {"num_workers": 4}}],
        }
    ]


def test_a_finding_outside_the_steps_predicts_no_step() -> None:
    slow_start = Priced(Found("slow_start", "start", Range(1, 2, 3)), 30 * S, 0.25, None)
    shown = report(diagnosis=Diagnosis(notes=(slow_start,)))
    assert shown["findings"] == []
    assert shown["notes"][0]["predicted_step_ms"] is None


def test_the_other_verdicts_are_listed() -> None:
    shown = report(diagnosis=Diagnosis(ruled_out=("a", "b"), cannot_tell=(CannotTell("c", "nvml"),)))
    assert shown["ruled_out"] == ["a", "b"]
    assert shown["cannot_tell"] == [{"cause": "c", "needs": "nvml"}]


def test_ranks_and_lines() -> None:
    line = build(Line, {"place": "data.py:41", "share_ratio": 0.9, "text": "img = Image.open(path)"})
    whole = RunFacts(
        facts=measured(),
        wall_ns=61 * S,
        ranks=(Rank(rank=0, pid=123, steps_count=480, step_median_ns=121.0 * MS),),
        lines=(HotLine(phase="data", line=line, share_ratio=0.60004),),
        overhead_ratio=0.00412,
    )
    shown = report(whole)
    assert shown["ranks"] == [{"rank": 0, "pid": 123, "steps": 480, "median_ms": 121.0}]
    assert shown["lines"] == [
        {"phase": "data", "line": "data.py:41", "text": "img = Image.open(path)", "share_ratio": 0.6}
    ]
    assert shown["overhead_ratio"] == 0.0041


def test_a_run_without_steps_is_unknown_not_zero() -> None:
    shown = report(RunFacts(facts=None, wall_ns=2 * S), Diagnosis())
    assert list(shown) == KEYS
    assert shown["wall_s"] == 2.0
    for key in ("start_s", "window_s", "end_s", "steps", "idle_ratio", "overhead_ratio"):
        assert shown[key] is None
    assert shown["phases"] == {}


def test_a_machine_that_was_not_watched_is_unknown() -> None:
    assert report()["machine"] == {"cores": None, "cpu_busy_ratio": None, "memory_peak_bytes": None}


def test_the_machine_from_what_the_launcher_saw() -> None:
    run = run_of(environment={"effective_cores": 2.0})
    run.host += [
        {"system_busy_ns": 10 * S, "system_total_ns": 100 * S, "tree_rss_peak_bytes": 500},
        {"system_busy_ns": 26 * S, "system_total_ns": 120 * S, "tree_rss_peak_bytes": 900},
    ]
    machine = build_report(run, RunFacts(facts=None, wall_ns=S), Diagnosis())["machine"]
    assert machine == {"cores": 2.0, "cpu_busy_ratio": 0.8, "memory_peak_bytes": 900}


@pytest.mark.parametrize(
    ("run", "problems"),
    [
        ({"exit_code": 0}, []),
        ({"exit_code": 1}, [{"id": "job_failed", "detail": "1"}]),
        ({"exit_code": 137, "signal": "SIGKILL"}, [{"id": "job_killed", "detail": "SIGKILL"}]),
    ],
)
def test_how_the_job_ended(run: dict[str, Any], problems: list[dict[str, str]]) -> None:
    assert report(**run)["problems"] == problems


def test_problems_of_the_job_come_before_those_of_the_record() -> None:
    short = {"id": "too_short", "detail": "4"}
    whole = RunFacts(facts=measured(), wall_ns=61 * S, problems=(short,))
    assert report(whole, exit_code=1)["problems"] == [{"id": "job_failed", "detail": "1"}, short]


def test_a_run_record_that_lost_its_launcher_still_reports() -> None:
    bare = build_report(run_of(), RunFacts(facts=measured(), wall_ns=61 * S), Diagnosis())
    assert list(bare) == KEYS
    assert bare["command"] == []
    assert bare["exit_code"] is None
