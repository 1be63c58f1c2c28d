"""What the simulator is for: two events around a stretch measure exactly the idle time that it causes."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest
import simgpu
import torch

STEPS = 6


def run_job(
    data_ms: float, device_ms: float, checkpoint_ms: float, *, reads_loss: bool
) -> dict[str, list[int]]:
    """For each stretch: its bubble by events, and by the books; plus both for the whole run."""
    pending = []

    def stretch(name: str, milliseconds: float) -> None:
        start, end = (torch.simgpu.Event(enable_timing=True) for _ in range(2))
        start.record()
        time.sleep(milliseconds / 1e3)
        end.record()
        pending.append((name, start, end))

    weight = torch.ones(8, 8, device="simgpu")
    simgpu.synchronize()
    began_ns = simgpu.now_ns()
    for _ in range(STEPS):
        stretch("data", data_ms)
        loss = (weight @ weight).sum()
        simgpu.busy(device_ms)
        if reads_loss:
            loss.item()
        stretch("checkpoint", checkpoint_ms)
    simgpu.synchronize()
    ended_ns = simgpu.now_ns()
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, start, end in pending:
        sums[name][0] += round(start.elapsed_time(end) * 1e6)
        sums[name][1] += simgpu.idle_ns(start.reached_ns, end.reached_ns)
    sums["run"] = [ended_ns - began_ns, simgpu.idle_ns(began_ns, ended_ns)]
    return sums


@pytest.mark.parametrize(
    "job",
    [(6, 1, 0, False), (0, 40, 4, False), (0, 6, 4, True), (1, 4, 0, False)],
    ids=["starved", "hidden checkpoint", "drained checkpoint", "balanced"],
)
def test_events_agree_with_the_books(job) -> None:
    *lengths, reads_loss = job
    sums = run_job(*lengths, reads_loss=reads_loss)
    for by_events, by_books in sums["data"], sums["checkpoint"]:
        assert by_events == by_books
    assert sums["data"][1] + sums["checkpoint"][1] <= sums["run"][1]


def test_a_checkpoint_behind_a_backlog_is_free_and_after_a_read_is_not() -> None:
    hidden = run_job(0, 40, 4, reads_loss=False)
    drained = run_job(0, 6, 4, reads_loss=True)
    assert hidden["checkpoint"][0] == 0
    assert drained["checkpoint"][0] >= STEPS * 3_900_000
