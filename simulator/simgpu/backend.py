"""Registers the device with torch: the one place that touches torch's private backend interface."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
from torch.jit._builtins import _register_builtin
from torch.utils._device import _device_constructors
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from . import attention, autocast, collectives, copies, device_module, operators, recurrent, streams
from .device import after_fork, device
from .tensors import empty, empty_storage, empty_strided

_OWN_KERNELS: dict[str, Callable[..., Any]] = {
    "as_strided": operators.build(torch.ops.aten.as_strided.default),  # here to skip the fallback's look-up
    "view": operators.build(torch.ops.aten.view.default),
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "copy_": copies.copy_,
    "_to_copy": copies.to_copy,
    "_copy_from": copies.copy_from,
    "_copy_from_and_resize": copies.copy_from_and_resize,
    "_local_scalar_dense": copies.local_scalar_dense,
    "resize_": copies.resize_,
    "set_.source_Storage": copies.set_to_storage,
    "set_.source_Storage_storage_offset": copies.set_to_storage,
    "set_.source_Tensor": copies.set_to_tensor,
    "set_": copies.set_to_nothing,
    "record_stream": copies.record_stream,
    "scaled_dot_product_attention": attention.attention,
    "_scaled_dot_product_fused_attention_overrideable": attention.fused,
    "_scaled_dot_product_fused_attention_overrideable_backward": attention.fused_backward,
    "_pack_padded_sequence": recurrent.pack_padded,
    "_thnn_fused_lstm_cell": recurrent.lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": recurrent.lstm_cell_backward,
    "_thnn_fused_gru_cell": recurrent.gru_cell,
    "_thnn_fused_gru_cell_backward": recurrent.gru_cell_backward,
}
_MAKERS_OF_PINNED = ("empty", "zeros", "ones", "full", "rand", "randn", "tensor", "empty_like", "zeros_like")

_libraries: list[torch.library.Library] = []  # a registration lives as long as its library object


def register() -> None:
    _setup_privateuseone_for_python_backend("simgpu", backend_module=device_module)
    _register_operators()
    _adapt_torch()
    os.register_at_fork(after_in_child=after_fork)


def _library(namespace: str) -> torch.library.Library:
    library = torch.library.Library(namespace, "IMPL")
    _libraries.append(library)
    return library


def _register_operators() -> None:
    every, aten = _library("_"), _library("aten")
    every.fallback(operators.fallback, "PrivateUse1")
    every.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name, kernel in _OWN_KERNELS.items():
        aten.impl(name, kernel, "PrivateUse1")
    for name, op in operators.composite_operators(other_than=_OWN_KERNELS):
        aten.m.impl(f"aten::{name}", "PrivateUse1", operators.build(op))
    aten.impl("scaled_dot_product_attention", attention.attention, "AutogradPrivateUse1")
    aten.impl("is_pinned", copies.is_pinned, "CPU")
    aten.impl("_pin_memory", copies.pin_memory, "CPU")
    autocast.register(aten)
    collectives.register(_library("c10d"))


def _adapt_torch() -> None:
    """Where torch asks C++ for what a Python backend cannot give, answer in Python."""
    torch.Event, torch.Stream = streams.GenericEvent, streams.GenericStream  # type: ignore[misc]
    _adapt_accelerator()
    _adapt_storage()
    _device_constructors()  # remembers which functions obey `with torch.device(...)`
    for name in _MAKERS_OF_PINNED:
        maker = _pinning(getattr(torch, name))
        setattr(torch, name, maker)
        _register_builtin(maker, f"aten::{name}")  # torch.jit.script knows functions by identity


def _adapt_accelerator() -> None:
    for name in ("synchronize", "current_stream", "set_stream", "empty_cache", "memory_stats"):
        setattr(torch.accelerator, name, getattr(device_module, name))
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(torch.accelerator, name, getattr(device_module, name))
    torch.accelerator.reset_peak_memory_stats = device_module.reset_peak_memory_stats
    torch.accelerator.get_memory_info = device_module.mem_get_info
    torch.accelerator.empty_host_cache = device_module.init


def _adapt_storage() -> None:
    """`torch.UntypedStorage(n, device="simgpu")`, on which deepcopy and torch.load rely."""
    make = torch.UntypedStorage.__new__

    def new(cls: type, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is not None and torch.device(device).type == "simgpu":
            return empty_storage(args[0] if args else 0)
        if device is not None:
            kwargs["device"] = device
        return make(cls, *args, **kwargs)

    torch.UntypedStorage.__new__ = new  # type: ignore[method-assign]


def _pinning(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> torch.Tensor:
        if kwargs.pop("pin_memory", False):
            return copies.mark_pinned(make(*args, **kwargs))
        return make(*args, **kwargs)

    return made


__all__ = ["device", "register"]
