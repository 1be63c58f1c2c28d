"""Which copies block the host and which only queue, by the simulator's count of waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import simgpu
import torch

LARGE = torch.zeros(64 * 1024)  # 256 KiB
SMALL = torch.zeros(64)


def waits_for_backlog(action: Callable[[], object]) -> bool:
    """Whether the action waited for the stream; if it did, everything queued before is done."""
    simgpu.busy(10)
    before_count = simgpu.counters().syncs_count
    action()
    waited = simgpu.counters().syncs_count > before_count
    if waited:
        assert torch.simgpu.current_stream().query()
    return waited


@pytest.mark.parametrize(
    ("source", "non_blocking", "waits"),
    [
        (LARGE, True, True),
        (LARGE, False, True),
        (SMALL, True, False),
        (SMALL, False, True),
        (LARGE.pin_memory(), True, False),
        (LARGE.pin_memory(), False, True),
    ],
    ids=["pageable-async", "pageable", "small-async", "small", "pinned-async", "pinned"],
)
def test_host_to_device(source: torch.Tensor, non_blocking: bool, waits: bool) -> None:
    assert waits_for_backlog(lambda: source.to("simgpu", non_blocking=non_blocking)) is waits


@pytest.mark.parametrize("non_blocking", [True, False])
def test_copy_into_device_buffer(non_blocking: bool) -> None:
    buffer = torch.empty_like(LARGE, device="simgpu")
    pinned = LARGE.pin_memory()
    assert waits_for_backlog(lambda: buffer.copy_(pinned, non_blocking=non_blocking)) is not non_blocking


@pytest.mark.parametrize(
    ("read", "waits"),
    [
        (lambda t: t.cpu(), True),
        (lambda t: t.to("cpu", non_blocking=True), False),
        (lambda t: t.sum().item(), True),
        (lambda t: bool(t[0] > 0), True),
        (lambda t: float(t[0]), True),
        (lambda t: t[:4].tolist(), True),
        (lambda t: t.cpu().numpy(), True),
        (lambda t: repr(t[:2]), True),
        (lambda t: t.nonzero(), True),
        (lambda t: t[t > 0], True),
        (lambda t: torch.equal(t, t), True),
        (lambda t: torch.empty(t.shape).copy_(t, non_blocking=True), True),
        (lambda t: torch.empty(t.shape, pin_memory=True).copy_(t, non_blocking=True), False),
        (lambda t: t.clone(), False),
        (lambda t: t[torch.tensor([1, 2])], True),
        (lambda t: t * 2 + t.sum(), False),
        (lambda t: torch.tensor([1.0], device="simgpu"), True),
    ],
)
def test_what_waits_for_the_device(read, waits: bool) -> None:
    tensor = torch.zeros(1000, device="simgpu")
    assert waits_for_backlog(lambda: read(tensor)) is waits


def test_copy_time_follows_bytes_and_pinning() -> None:
    simgpu.configure(h2d_bytes_per_s=1e9, pageable_ratio=0.5, copy_floor_us=0, keep_kernels=True)
    LARGE.pin_memory().to("simgpu", non_blocking=True)
    LARGE.to("simgpu")
    pinned, pageable = simgpu.kernels()
    assert pinned.end_ns - pinned.start_ns == LARGE.nbytes
    assert pageable.end_ns - pageable.start_ns == 2 * LARGE.nbytes


def test_counters_tell_copies_apart() -> None:
    SMALL.to("simgpu")
    SMALL.pin_memory().to("simgpu").cpu()
    counters = simgpu.counters()
    assert (counters.h2d_count, counters.h2d_pageable_count, counters.d2h_count) == (2, 1, 1)
    assert counters.h2d_bytes == 2 * SMALL.nbytes
    assert counters.syncs_count == 3


def test_explicit_synchronize_is_counted() -> None:
    simgpu.busy(5)
    torch.accelerator.synchronize()
    assert torch.simgpu.current_stream().query()
    assert simgpu.counters().syncs_count == 1
    assert simgpu.counters().host_blocked_ns > 0


def test_pinned_memory() -> None:
    pinned = SMALL.pin_memory()
    assert pinned.is_pinned()
    assert pinned[3:].is_pinned()
    assert torch.equal(pinned, SMALL)
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert not SMALL.is_pinned()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin", [True, False])
def test_data_loader(workers: int, pin: bool) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(16, 2), torch.arange(16))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers, pin_memory=pin)
    batches = list(loader)
    assert [x.is_pinned() for x, _ in batches] == [pin] * 4
    moved = torch.cat([y.to("simgpu", non_blocking=True) for _, y in batches])
    assert torch.equal(moved.cpu(), torch.arange(16))
