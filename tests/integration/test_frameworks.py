"""Loops that others wrote: Lightning, Transformers' Trainer, Accelerate."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.lab import Lab, Observed
from whyidle.record import schema

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FRAMEWORKS = Path(__file__).parent / "frameworks"
JOBS = {"lightning": "pytorch_lightning", "hf_trainer": "transformers", "accelerated": "accelerate"}
STEPS = 30  # each job: two epochs of 120 samples; 40 more are validated after each
SAMPLE_S = 0.002


def optimizer_rows(observed: Observed) -> int:
    kind = schema.KIND["optimizer"]
    return sum(row[0] == kind for process in observed.record.processes for row in process.rows(schema.SPAN))


@pytest.mark.parametrize("job", JOBS)
def test_a_framework_loop_is_understood(lab: Lab, job: str) -> None:
    pytest.importorskip(JOBS[job])
    script = FRAMEWORKS / f"{job}.py"
    bare, observed = lab.both(sys.executable, script)
    assert (observed.stdout, observed.exit_code) == (bare.stdout, 0)
    report = observed.report
    phases = {name: phase["host_s"] for name, phase in report["phases"].items()}
    assert optimizer_rows(observed) == STEPS
    assert STEPS - 10 <= observed.steps <= STEPS  # leading steps may be warm-up
    assert sum(phase["host_ratio"] for phase in report["phases"].values()) == pytest.approx(1, abs=0.01)
    data_s = observed.steps * 240 / STEPS * SAMPLE_S
    assert 0.9 * data_s < phases["data"] < 3 * data_s  # a sleep lasts longer on a busy machine
    assert 0.9 * 80 * SAMPLE_S < phases["validation"] < 0.5 * report["window_s"]
    assert {"forward", "backward", "optimizer"} <= set(phases)
    assert phases["other"] < 0.15 * report["window_s"]
    assert report["phases"]["data"]["hot_line"].startswith(f"{job}.py:")
    assert report["problems"] == []
