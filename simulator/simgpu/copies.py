"""Copies between host and device, with the waiting that each kind brings on CUDA.

host to device  pinned,   non_blocking   queued; the host goes on at once
                pinned,   blocking       queued; the host waits for the stream
                pageable, non_blocking   up to 64 KiB: the host copies into a staging buffer and goes on;
                                         above: the host waits for the stream and then for the staged transfer
                pageable, blocking       staged, and the host waits for the stream
device to host  to pinned memory with non_blocking: queued; every other one waits for the stream
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .clock import now_ns, spin_until_ns
from .cost import STAGING_LIMIT_BYTES
from .device import device
from .tensors import CPU, HOST_KEYS, host_view, is_on_device, rebind, wrap

_to_copy = torch.ops.aten._to_copy.default


def is_pinned(tensor: Tensor, device: Any = None) -> bool:
    return hasattr(tensor.untyped_storage(), "pinned_for_simgpu")


def mark_pinned(tensor: Tensor) -> Tensor:
    tensor.untyped_storage().pinned_for_simgpu = True
    return tensor


def pin_memory(tensor: Tensor, device: Any = None) -> Tensor:
    return mark_pinned(tensor.clone(memory_format=torch.preserve_format))


def charge_upload(source: Tensor, *, non_blocking: bool) -> None:
    pinned = is_pinned(source)
    byte_count = source.nbytes
    counters = device.counters
    counters.h2d_count += 1
    counters.h2d_bytes += byte_count
    counters.h2d_pageable_count += not pinned
    queue = device.current_queue
    waits_for_stream = not non_blocking
    if not pinned:
        if byte_count > STAGING_LIMIT_BYTES:
            waits_for_stream = True
        else:
            _stage(byte_count)
    device.enqueue("copy_h2d", device.cost.copy_ns(byte_count, to_device=True, pinned=pinned), queue)
    if waits_for_stream:
        device.synchronize_queue(queue)


def _stage(byte_count: int) -> None:
    began_ns = now_ns()
    spin_until_ns(began_ns + device.cost.staging_ns(byte_count))
    device.counters.host_blocked_ns += now_ns() - began_ns


def charge_download(target: Tensor, *, non_blocking: bool) -> None:
    pinned = is_pinned(target)
    byte_count = target.nbytes
    device.counters.d2h_count += 1
    device.counters.d2h_bytes += byte_count
    queue = device.current_queue
    device.enqueue("copy_d2h", device.cost.copy_ns(byte_count, to_device=False, pinned=pinned), queue)
    if not (pinned and non_blocking):
        device.synchronize_queue(queue)


def copy_(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    to_device, from_device = is_on_device(target), is_on_device(source)
    host_target = host_view(target)
    host_target.copy_(host_view(source))
    if to_device and from_device:
        device.launch("copy_", 0.0, 2 * host_target.nbytes)
    elif to_device:
        charge_upload(source, non_blocking=non_blocking)
    else:
        charge_download(target, non_blocking=non_blocking)
    return target


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    return copy_(target, source, non_blocking)


def copy_from_and_resize(source: Tensor, target: Tensor) -> Tensor:
    target.resize_(source.shape)
    return copy_(target, source)


def to_copy(
    source: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    """`Tensor.to`: at least one side is on the device."""
    from_device = is_on_device(source)
    to_device = device.type != "cpu" if device is not None else from_device
    host = _to_copy(host_view(source), dtype=dtype, device=CPU, memory_format=memory_format)
    if not to_device:
        if non_blocking:
            mark_pinned(host)
        charge_download(host, non_blocking=non_blocking)
        return host
    target = wrap(host)
    if from_device:
        _launch_cast(source, host)
    else:
        charge_upload(source, non_blocking=non_blocking)
        if host.dtype != source.dtype:
            _launch_cast(source, host)
    return target


def _launch_cast(source: Tensor, host: Tensor) -> None:
    device.launch("_to_copy", 0.0, source.nbytes + host.nbytes)


def local_scalar_dense(tensor: Tensor) -> Any:
    """`.item()`: a tiny copy down the stream, and the wait for it."""
    host = host_view(tensor)
    device.counters.d2h_count += 1
    device.counters.d2h_bytes += host.nbytes
    device.enqueue("copy_d2h", device.cost.copy_ns(host.nbytes, to_device=False, pinned=True))
    device.synchronize_queue()
    return host.item()


def resize_(tensor: Tensor, size: list[int], *, memory_format: torch.memory_format | None = None) -> Tensor:
    host = host_view(tensor)
    rebind(tensor, torch.ops.aten.alias(host).resize_(size, memory_format=memory_format))
    return tensor


def set_to_storage(tensor: Tensor, storage: Any, *layout: Any) -> Tensor:
    offset, size, stride = layout if layout else (0, [storage.nbytes() // tensor.element_size()], [1])
    return torch.ops.aten.set_.source_Storage_storage_offset.redispatch(
        HOST_KEYS, tensor, storage, offset, size, stride
    )


def set_to_tensor(tensor: Tensor, source: Tensor) -> Tensor:
    return set_to_storage(
        tensor, source.untyped_storage(), source.storage_offset(), source.shape, source.stride()
    )


def set_to_nothing(tensor: Tensor) -> Tensor:
    return set_to_storage(tensor, wrap(torch.empty(0, dtype=tensor.dtype)).untyped_storage(), 0, [0], [1])


def record_stream(tensor: Tensor, stream: Any) -> None:
    return None
