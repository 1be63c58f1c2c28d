from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SIMULATOR = Path(__file__).parents[2] / "simulator"


def refused() -> None:
    with pytest.raises(RuntimeError, match="forked subprocess"):
        torch.ones(1, device="simgpu")


def test_a_forked_child_may_not_use_the_device() -> None:
    torch.ones(1, device="simgpu")
    child = multiprocessing.get_context("fork").Process(target=refused)
    child.start()
    child.join(30)
    assert child.exitcode == 0


DATA_PARALLEL = """
import simgpu, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).to("simgpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(5, 4, device="simgpu")).square().mean().backward()
    optimizer.step()
mine = torch.cat([p.detach().flatten() for p in model.parameters()])
everyone = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(everyone, mine)
assert torch.equal(everyone[0], everyone[1]) and mine.is_simgpu
dist.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch without gloo")
def test_data_parallel_training_with_gloo(tmp_path: Path) -> None:
    ranks = []
    for rank in range(2):
        environment = {
            **os.environ,
            "PYTHONPATH": str(SIMULATOR),
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(20000 + os.getpid() % 20000),
        }
        ranks.append(subprocess.Popen([sys.executable, "-c", DATA_PARALLEL], env=environment, cwd=tmp_path))
    assert [rank.wait(timeout=50) for rank in ranks] == [0, 0]
