"""Collectives: gloo moves the host memory behind device tensors. They take host time and no device time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .tensors import CPU, host_view

_OPERATORS = """
    allreduce_ allreduce_coalesced_ broadcast_ reduce_ allgather_ _allgather_base_ allgather_coalesced_
    reduce_scatter_ _reduce_scatter_base_ gather_ scatter_ alltoall_ alltoall_base_ send recv_ barrier
"""


def _to_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return host_view(value)
    if isinstance(value, (list, tuple)):
        return [_to_host(v) for v in value]
    return CPU if isinstance(value, torch.device) else value


def _kernel(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        out = op(*[_to_host(a) for a in args], **{k: _to_host(v) for k, v in kwargs.items()})
        # Results come first among the arguments; the last thing returned is the handle to wait for.
        return (args[0], out[-1]) if isinstance(out, tuple) else out

    return kernel


def register(library: torch.library.Library) -> None:
    if not dist.is_available():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has its own kernels for a device with its own process group
        for name in _OPERATORS.split():
            op = getattr(torch.ops.c10d, name).default
            library.impl(op, _kernel(op), "PrivateUse1")
