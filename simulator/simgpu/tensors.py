"""Device tensors and the host memory behind them.

A device tensor is a real torch tensor on `simgpu` whose storage points at host memory; the storage object
carries an `Allocation`. Views, parameters and detached tensors share that storage and find their data by it.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import torch

from .device import device as _device

DEVICE = torch.device("privateuseone", 0)  # the same device goes by the name simgpu:0 once it is registered
CPU = torch.device("cpu")
HOST_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

_VIEWS_LIMIT = 64
_DLPACK_EXTENSION_DEVICE = 12
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_to_dlpack, _from_dlpack = torch._C._to_dlpack, torch._C._from_dlpack
_make_storage = torch._C._construct_storage_from_data_pointer
_make_tensor = torch._C._acc.create_empty_tensor
_set = torch.ops.aten.set_.source_Storage_storage_offset._handle.redispatch_boxed


class Allocation:
    """A block of simulated device memory: host bytes, and the host tensors that view them."""

    __slots__ = ("byte_count", "host", "views")

    def __init__(self, host: torch.UntypedStorage) -> None:
        self.byte_count = 0
        byte_count = host.nbytes()
        _device.allocate(byte_count)
        self.byte_count = byte_count
        self.host = host
        host.backs_simgpu = True
        self.views: dict[Any, torch.Tensor] = {}

    def __del__(self) -> None:
        _device.free(self.byte_count)


def new_storage(host: torch.UntypedStorage) -> torch.UntypedStorage:
    """A device storage over host memory; counts against the device's memory until it dies."""
    return _storage_over(Allocation(host))


def _storage_over(allocation: Allocation) -> torch.UntypedStorage:
    storage = _make_storage(allocation.host.data_ptr(), DEVICE, allocation.byte_count)
    storage.allocation = allocation
    return storage


def empty_storage(byte_count: int) -> torch.UntypedStorage:
    _check_room(byte_count)
    return new_storage(torch.UntypedStorage(byte_count))


def empty(
    size: list[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    _check_room(prod(size) * dtype.itemsize)
    return wrap(
        torch.empty(size, dtype=dtype, device=CPU, memory_format=memory_format or torch.contiguous_format)
    )


def empty_strided(
    size: list[int],
    stride: list[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    _check_room(prod(size) * dtype.itemsize)
    return wrap(torch.empty_strided(size, stride, dtype=dtype, device=CPU))


def _check_room(byte_count: int) -> None:
    """Report a full device before the host commits the memory."""
    if byte_count + _device.allocated_bytes > _device.cost.memory_bytes:
        _device.allocate(byte_count)


def is_on_device(tensor: torch.Tensor) -> bool:
    return hasattr(tensor.untyped_storage(), "allocation")


def wrap(host: torch.Tensor) -> torch.Tensor:
    """The device tensor over a host tensor that nobody else holds."""
    shape, stride, offset, dtype = host.shape, host.stride(), host.storage_offset(), host.dtype
    if offset:
        allocation = Allocation(host.untyped_storage())
        tensor = _make_tensor((), dtype)
        _set(HOST_KEYS, tensor, _storage_over(allocation), offset, shape, stride)
    else:
        tensor = _adopt(host)
        allocation = Allocation(host.untyped_storage())
        tensor.untyped_storage().allocation = allocation
    allocation.views[shape, stride, offset, dtype] = host
    return tensor


def _adopt(host: torch.Tensor) -> torch.Tensor:
    """By way of DLPack with the device changed: half the time of making a tensor and setting its storage."""
    capsule = _to_dlpack(host)
    # DLTensor begins with a data pointer and then the device's type.
    ctypes.c_int32.from_address(_capsule_pointer(capsule, b"dltensor") + 8).value = _DLPACK_EXTENSION_DEVICE
    return _from_dlpack(capsule)


def backs_a_device_tensor(host: torch.Tensor) -> bool:
    return hasattr(host.untyped_storage(), "backs_simgpu")


def rebind(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Point a device tensor at the host tensor that an `out=` or `resize_` left behind."""
    storage = tensor.untyped_storage()
    allocation = storage.allocation
    host_storage = host.untyped_storage()
    if host_storage.data_ptr() != storage.data_ptr() or host_storage.nbytes() != allocation.byte_count:
        storage = new_storage(host_storage)
    _set(HOST_KEYS, tensor, storage, host.storage_offset(), host.shape, host.stride())


def host_view(tensor: torch.Tensor) -> torch.Tensor:
    """The host tensor over the same memory as a device tensor; a host tensor gives itself."""
    try:
        allocation = tensor.untyped_storage().allocation
    except AttributeError:
        return tensor
    key = tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype
    views = allocation.views
    view = views.get(key)
    if view is None:
        if len(views) > _VIEWS_LIMIT:
            views.clear()
        view = torch.empty(0, dtype=key[3], device=CPU).set_(allocation.host, key[2], key[0], key[1])
        views[key] = view
    if tensor.is_conj():
        view = view.conj()
    return torch._neg_view(view) if tensor.is_neg() else view
