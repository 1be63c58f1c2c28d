from __future__ import annotations

import gc

import pytest
import simgpu
import torch

MIB = 1024**2


def floats(byte_count: int) -> torch.Tensor:
    return torch.empty(byte_count // 4, device="simgpu")


def test_allocation_follows_the_tensors() -> None:
    gc.collect()
    base = torch.simgpu.memory_allocated()
    a = floats(MIB)
    assert torch.simgpu.memory_allocated() == base + MIB
    view, parameter = a[10:].view(-1), torch.nn.Parameter(a)
    del a, parameter
    assert torch.simgpu.memory_allocated() == base + MIB
    del view
    assert torch.simgpu.memory_allocated() == base
    assert torch.accelerator.max_memory_allocated() >= base + MIB


def test_peak_and_cache() -> None:
    a = floats(4 * MIB)
    del a
    assert torch.simgpu.memory_reserved() >= 4 * MIB
    torch.simgpu.reset_peak_memory_stats()
    assert torch.simgpu.max_memory_allocated() == torch.simgpu.memory_allocated()
    simgpu.busy(10)
    torch.simgpu.empty_cache()
    assert torch.simgpu.current_stream().query(), "giving memory back waits for the device"
    assert torch.simgpu.memory_reserved() == torch.simgpu.memory_allocated()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.empty(10**12, device="simgpu"),  # more than any host has
        lambda: torch.zeros(MIB, device="simgpu"),
        lambda: torch.zeros(MIB).to("simgpu"),
        lambda: torch.ones(600, device="simgpu").repeat(1000),
        lambda: torch.nn.Linear(1000, 1000).to("simgpu"),
    ],
)
def test_out_of_memory(ask) -> None:
    gc.collect()
    simgpu.configure(memory_bytes=torch.simgpu.memory_allocated() + MIB)
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        ask()
    assert floats(MIB // 2).numel() == MIB // 8


def test_out_of_memory_in_backward_reaches_the_caller() -> None:
    x = torch.ones(200, 200, device="simgpu", requires_grad=True)
    loss = (x * 2).exp().sum()
    simgpu.configure(memory_bytes=torch.simgpu.memory_allocated() + 1000)
    with pytest.raises(torch.OutOfMemoryError):
        loss.backward()


def test_device_reports_its_memory() -> None:
    simgpu.configure(memory_bytes=64 * MIB)
    free_bytes, total_bytes = torch.simgpu.mem_get_info()
    assert total_bytes == 64 * MIB == torch.simgpu.get_device_properties(0).total_memory
    assert free_bytes == total_bytes - torch.simgpu.memory_reserved()
