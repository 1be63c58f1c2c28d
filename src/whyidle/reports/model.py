"""The report as rows and numbers: the JSON contract, and all that the other reports show. No words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import whyidle
from whyidle.analysis.facts import Facts, Line
from whyidle.analysis.read_facts import HotLine, RunFacts
from whyidle.analysis.step_phases import COMPUTE_PHASES
from whyidle.causes.diagnose import Diagnosis, Priced
from whyidle.record.reader import RunRecord
from whyidle.units import ns_to_ms, ns_to_s

SCHEMA = 1
MOST_UNKNOWN = 0.1  # of the marked time; with more, how busy the device was is not known


def build(run: RunRecord, measured: RunFacts, diagnosis: Diagnosis) -> dict[str, Any]:
    """The report of one run, as documented in docs/en/json-report.md."""
    facts = measured.facts
    info = run.run
    return {
        "schema": SCHEMA,
        "whyidle": whyidle.__version__,
        "command": info.get("command", []),
        "run": str(run.folder),
        "exit_code": info.get("exit_code"),
        "signal": info.get("signal"),
        "wall_s": _seconds(measured.wall_ns),
        "start_s": _seconds(facts.start.time_ns) if facts and facts.start else None,
        "window_s": _seconds(facts.window_ns) if facts else None,
        "end_s": _seconds(facts.end.time_ns) if facts and facts.end else None,
        "device": _device(info, facts),
        "machine": _machine(run),
        "steps": _steps(facts, measured.samples_per_s) if facts else None,
        "idle_ratio": _idle_ratio(facts) if facts else None,
        "gpu": _gpu(facts, measured) if facts else None,
        "phases": _phases(facts) if facts else {},
        "overhead_ratio": _ratio(measured.overhead_ratio),
        "findings": [_finding(item) for item in diagnosis.findings],
        "notes": [_finding(item) for item in diagnosis.notes],
        "ruled_out": list(diagnosis.ruled_out),
        "cannot_tell": [{"cause": item.cause, "needs": item.needs} for item in diagnosis.cannot_tell],
        "ranks": [
            {
                "rank": rank.rank,
                "pid": rank.pid,
                "steps": rank.steps_count,
                "median_ms": _ms(rank.step_median_ns),
            }
            for rank in measured.ranks
        ],
        "lines": [_line(hot) for hot in measured.lines],
        "problems": [*_job_problems(info), *(dict(problem) for problem in measured.problems)],
    }


def _seconds(value_ns: float) -> float:
    return round(ns_to_s(value_ns), 3)


def _ms(value_ns: float) -> float:
    return round(ns_to_ms(value_ns), 3)


def _ratio(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _device(info: Mapping[str, Any], facts: Facts | None) -> dict[str, Any]:
    kind = facts.device_kind if facts else "cpu"
    environment = info.get("environment", {})
    return {
        "kind": kind,
        "name": info.get("device_name") or environment.get("cpu_model") or kind,
        "count": info.get("device_count") or 1,
    }


def _machine(run: RunRecord) -> dict[str, Any]:
    first, last = (run.host[0], run.host[-1]) if run.host else ({}, {})
    busy = _growth(first, last, "system_busy_ns")
    whole = _growth(first, last, "system_total_ns")
    peaks = [line["tree_rss_peak_bytes"] for line in run.host if line.get("tree_rss_peak_bytes")]
    return {
        "cores": run.run.get("environment", {}).get("effective_cores"),
        "cpu_busy_ratio": _ratio(busy / whole) if busy is not None and whole else None,
        "memory_peak_bytes": max(peaks, default=None),
    }


def _growth(first: Mapping[str, Any], last: Mapping[str, Any], key: str) -> int | None:
    before, after = first.get(key), last.get(key)
    return after - before if isinstance(before, int) and isinstance(after, int) else None


def _steps(facts: Facts, samples_per_s: float | None) -> dict[str, Any]:
    return {
        "count": facts.steps_count,
        "median_ms": _ms(facts.step_median_ns),
        "mean_ms": _ms(facts.step_mean_ns),
        "p95_ms": _ms(facts.step_p95_ns),
        "samples_per_s": None if samples_per_s is None else round(samples_per_s, 2),
    }


def _gpu(facts: Facts, measured: RunFacts) -> dict[str, Any] | None:
    """Known where the device's queue was marked; host times say nothing about it."""
    if facts.device is None or facts.device.unknown_ratio > MOST_UNKNOWN:
        return None
    idle = facts.share(sum(phase.bubble_ns for phase in facts.phases.values()))
    copying = facts.phases.get("copy")
    copy_ratio = facts.share(copying.host_ns - copying.bubble_ns) if copying is not None else 0.0
    return {
        "any_busy_ratio": round(1 - idle, 4),
        "compute_busy_ratio": round(max(0.0, 1 - idle - copy_ratio), 4),
        "exposed_communication_ratio": 0.0 if len(measured.ranks) < 2 else None,
    }


def _idle_ratio(facts: Facts) -> float | None:
    if facts.device is not None and facts.device.unknown_ratio > MOST_UNKNOWN:
        return None
    if facts.device is not None:
        return round(facts.share(sum(phase.bubble_ns for phase in facts.phases.values())), 4)
    busy_ns = sum(phase.host_ns for name, phase in facts.phases.items() if name in COMPUTE_PHASES)
    return round(1 - facts.share(busy_ns), 4)


def _phases(facts: Facts) -> dict[str, Any]:
    return {
        name: {
            "host_s": _seconds(phase.host_ns),
            "host_ratio": _ratio(facts.share(phase.host_ns)),
            "bubble_s": _seconds(phase.bubble_ns),
            "bubble_ratio": _ratio(facts.share(phase.bubble_ns)),
            "hot_line": phase.line.place if phase.line is not None else None,
        }
        for name, phase in facts.phases.items()
    }


def _finding(item: Priced) -> dict[str, Any]:
    step = item.step_ns
    return {
        "cause": item.cause,
        "state": "found",
        "cost_ratio": _ratio(item.cost_ratio),
        "cost_s": _seconds(item.cost_ns),
        "predicted_step_ms": None
        if step is None
        else {"low": _ms(step.low), "mid": _ms(step.mid), "high": _ms(step.high)},
        "evidence": [
            {"fact": evidence.fact, "value": evidence.value}
            | ({} if evidence.share_ratio is None else {"share_ratio": evidence.share_ratio})
            for evidence in item.found.evidence
        ],
        "remedies": [
            {"id": remedy.id, "safety": remedy.safety.value, "setting": dict(remedy.setting)}
            for remedy in item.found.remedies
        ],
    }


def _line(hot: HotLine) -> dict[str, Any]:
    line: Line = hot.line
    return {"phase": hot.phase, "line": line.place, "text": line.text, "share_ratio": _ratio(hot.share_ratio)}


def _job_problems(info: Mapping[str, Any]) -> list[dict[str, str]]:
    if info.get("signal"):
        return [{"id": "job_killed", "detail": str(info["signal"])}]
    if info.get("exit_code"):
        return [{"id": "job_failed", "detail": str(info["exit_code"])}]
    return []
