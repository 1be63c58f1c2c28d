"""What an operator costs the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

STAGING_LIMIT_BYTES = 64 * 1024  # up to here a driver stages a pageable copy without waiting for the stream


@dataclass
class CostModel:
    """Rates of the device; `configure` changes them at any time, work already queued keeps its cost."""

    flops_per_s: float = 20e12
    bytes_per_s: float = 1e12
    h2d_bytes_per_s: float = 12e9
    d2h_bytes_per_s: float = 12e9
    pageable_ratio: float = 0.5  # rate of a copy through the staging buffer, relative to pinned memory
    staging_bytes_per_s: float = 10e9  # host side of a small pageable copy
    kernel_floor_us: float = 3.0
    copy_floor_us: float = 3.0
    launch_us: float = 0.0  # least host time of one launch; the simulator itself takes 10-20 us
    memory_bytes: int = 8 * 1024**3

    def kernel_ns(self, flops: float, byte_count: int) -> int:
        work_s = max(flops / self.flops_per_s, byte_count / self.bytes_per_s)
        return int(work_s * 1e9 + self.kernel_floor_us * 1e3)

    def copy_ns(self, byte_count: int, *, to_device: bool, pinned: bool) -> int:
        rate = self.h2d_bytes_per_s if to_device else self.d2h_bytes_per_s
        if not pinned:
            rate *= self.pageable_ratio
        return int(byte_count / rate * 1e9 + self.copy_floor_us * 1e3)

    def staging_ns(self, byte_count: int) -> int:
        return int(byte_count / self.staging_bytes_per_s * 1e9)


Flops = Callable[[Sequence[Any], Any], float]


def _matrix_product(left: int, right: int) -> Flops:
    def flops(args: Sequence[Any], out: Any) -> float:
        return 2.0 * args[left].numel() * args[right].shape[-1]

    return flops


def _matrix_vector(args: Sequence[Any], out: Any) -> float:
    return 2.0 * args[0].numel()


def _convolution(args: Sequence[Any], out: Any) -> float:
    weight = args[1]
    transposed = args[6]
    positions = args[0].numel() // args[0].shape[1] if transposed else out.numel() // out.shape[1]
    return 2.0 * positions * weight.numel()


def _convolution_backward(args: Sequence[Any], out: Any) -> float:
    grad, source, weight, transposed, wanted = args[0], args[1], args[2], args[7], args[10]
    positions = source.numel() // source.shape[1] if transposed else grad.numel() // grad.shape[1]
    return 2.0 * positions * weight.numel() * (wanted[0] + wanted[1])


def _attention(args: Sequence[Any], out: Any) -> float:
    query, key, value = args[:3]
    rows = prod(query.shape[:-1])
    return 2.0 * rows * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _attention_backward(args: Sequence[Any], out: Any) -> float:
    return 2.5 * _attention(args[1:4], out)


FLOPS: dict[str, Flops] = {
    "mm": _matrix_product(0, 1),
    "bmm": _matrix_product(0, 1),
    "addmm": _matrix_product(1, 2),
    "addmm_": _matrix_product(1, 2),
    "baddbmm": _matrix_product(1, 2),
    "baddbmm_": _matrix_product(1, 2),
    "addbmm": _matrix_product(1, 2),
    "mv": _matrix_vector,
    "dot": _matrix_vector,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "attention": _attention,
    "attention_backward": _attention_backward,
}
