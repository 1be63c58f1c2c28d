"""Reports as `reports/model.py` builds them, small enough to read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any


def phase(
    host_s: float, host_ratio: float, bubble_ratio: float, hot_line: str | None = None
) -> dict[str, Any]:
    return {
        "host_s": host_s,
        "host_ratio": host_ratio,
        "bubble_s": 57.0 * bubble_ratio,
        "bubble_ratio": bubble_ratio,
        "hot_line": hot_line,
    }


def starved() -> dict[str, Any]:
    """A GPU that waits for data, and a little for checkpoints."""
    return deepcopy(_STARVED)


def healthy() -> dict[str, Any]:
    report = starved()
    report.update(idle_ratio=0.03, findings=[], notes=report["notes"])
    report["gpu"] = {"any_busy_ratio": 0.97, "compute_busy_ratio": 0.95, "exposed_communication_ratio": 0.0}
    report["phases"] = {"data": phase(1.0, 0.02, 0.01), "backward": phase(56.0, 0.98, 0.02, "train.py:20")}
    return report


def without_steps() -> dict[str, Any]:
    report = starved()
    report.update(
        steps=None,
        idle_ratio=None,
        gpu=None,
        phases={},
        findings=[],
        notes=[],
        ruled_out=[],
        lines=[],
        ranks=[],
        overhead_ratio=None,
        window_s=0.0,
        problems=[{"id": "no_torch", "detail": ""}, {"id": "job_failed", "detail": "1"}],
        exit_code=1,
    )
    return report


_STARVED: dict[str, Any] = {
    "schema": 1,
    "whyidle": "0.1.0",
    "command": ["python", "train.py"],
    "run": "whyidle-runs/train-1",
    "exit_code": 0,
    "signal": None,
    "wall_s": 61.2,
    "start_s": 3.1,
    "window_s": 57.0,
    "end_s": 1.1,
    "device": {"kind": "cuda", "name": "NVIDIA H200", "count": 1},
    "machine": {"cores": 16.0, "cpu_busy_ratio": 0.12, "memory_peak_bytes": 4_200_000_000},
    "steps": {"count": 480, "median_ms": 118.0, "mean_ms": 119.0, "p95_ms": 180.2, "samples_per_s": 264.1},
    "idle_ratio": 0.71,
    "gpu": {"any_busy_ratio": 0.29, "compute_busy_ratio": 0.27, "exposed_communication_ratio": 0.0},
    "phases": {
        "data": phase(36.5, 0.64, 0.63, "data.py:41"),
        "copy": phase(0.57, 0.01, 0.0, "train.py:18"),
        "forward": phase(6.3, 0.11, 0.0, "train.py:19"),
        "loss": phase(1.1, 0.02, 0.0),
        "backward": phase(7.4, 0.13, 0.0, "train.py:21"),
        "optimizer": phase(1.7, 0.03, 0.002),
        "checkpoint": phase(2.9, 0.05, 0.048, "train.py:30"),
        "logging": phase(0.51, 0.009, 0.008, "train.py:26"),
        "other": phase(0.06, 0.001, 0.0),
    },
    "overhead_ratio": 0.004,
    "findings": [
        {
            "cause": "loader_without_workers",
            "state": "found",
            "cost_ratio": 0.63,
            "cost_s": 35.9,
            "predicted_step_ms": {"low": 41.0, "mid": 44.1, "high": 49.0},
            "evidence": [
                {"fact": "num_workers", "value": 0},
                {"fact": "wait_per_step_ns", "value": 74_800_000},
                {"fact": "cores_count", "value": 16},
                {"fact": "hot_line", "value": "data.py:41", "share_ratio": 0.81},
                {"fact": "hot_text", "value": "image = Image.open(path).convert('RGB')"},
            ],
            "remedies": [{"id": "raise_loader_workers", "safety": "safe", "setting": {"num_workers": 4}}],
        },
        {
            "cause": "checkpoint_blocks",
            "state": "found",
            "cost_ratio": 0.048,
            "cost_s": 2.74,
            "predicted_step_ms": {"low": 112.0, "mid": 113.0, "high": 115.0},
            "evidence": [
                {"fact": "calls_count", "value": 24},
                {"fact": "written_bytes", "value": 1_740_000_000},
                {"fact": "bytes_per_s", "value": 635_000_000.0},
                {"fact": "hot_line", "value": "train.py:30", "share_ratio": 0.97},
            ],
            "remedies": [
                {"id": "save_in_background", "safety": "opt_in", "setting": {}},
                {"id": "save_less_often", "safety": "by_hand", "setting": {}},
            ],
        },
    ],
    "notes": [
        {"cause": "logging_too_often", "state": "found", "cost_ratio": 0.008, "cost_s": 0.46, "evidence": []}
    ],
    "ruled_out": [
        "too_many_workers",
        "too_few_workers",
        "slow_sample_blocks_batch",
        "copy_blocks_host",
        "garbage_collection_pauses",
        "validation_dominates",
        "debug_switch_on",
        "scalar_read_each_step",
    ],
    "cannot_tell": [
        {"cause": "gpu_clocks_limited", "needs": "nvml"},
        {"cause": "collate_slow", "needs": "workers"},
    ],
    "ranks": [{"rank": 0, "pid": 123, "steps": 480, "median_ms": 118.0}],
    "lines": [
        {
            "phase": "data",
            "line": "data.py:41",
            "text": "image = Image.open(path).convert('RGB')",
            "share_ratio": 0.52,
        },
        {"phase": "backward", "line": "train.py:21", "text": "loss.backward()", "share_ratio": 0.13},
        {
            "phase": "checkpoint",
            "line": "train.py:30",
            "text": "torch.save(state, path)",
            "share_ratio": 0.05,
        },
    ],
    "problems": [],
}
