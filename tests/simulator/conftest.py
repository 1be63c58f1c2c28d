from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # sums are bit-identical only between threads that split them alike

SIMULATOR = Path(__file__).parents[2] / "simulator"
sys.path.insert(0, str(SIMULATOR))

import simgpu  # noqa: E402
from simgpu.cost import CostModel  # noqa: E402
from simgpu.device import device  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_books():
    """Each test starts with an idle device, default rates and empty books."""
    simgpu.configure(keep_kernels=False, **vars(CostModel()))
    for queue in device.queues:
        queue.ready_ns = 0  # what an earlier test left queued is dropped
    simgpu.forget()
    yield
    simgpu.configure(keep_kernels=False, **vars(CostModel()))
