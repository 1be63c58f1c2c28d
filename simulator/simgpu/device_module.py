"""`torch.simgpu`: the face that torch and training scripts know, modelled on `torch.cuda`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from .device import device as _device
from .streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "device",
    "set_stream",
    "stream",
]

_NAME = "Simulated GPU"


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    pass


_lazy_init = init


def _is_in_bad_fork() -> bool:
    return _device.in_forked_child


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def set_device(device: Any) -> None:
    pass


class device:  # noqa: N801 - torch looks the context manager up by this name
    def __init__(self, device: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def get_device_name(device: Any = None) -> str:
    return _NAME


def get_device_properties(device: Any = None) -> SimpleNamespace:
    return SimpleNamespace(name=_NAME, total_memory=_device.cost.memory_bytes, multi_processor_count=1)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    return (1, 0)


def synchronize(device: Any = None) -> None:
    _device.synchronize()


# memory


def memory_allocated(device: Any = None) -> int:
    return _device.allocated_bytes


def max_memory_allocated(device: Any = None) -> int:
    return _device.peak_bytes


def memory_reserved(device: Any = None) -> int:
    return _device.reserved_bytes


def max_memory_reserved(device: Any = None) -> int:
    return _device.peak_reserved_bytes


def reset_peak_memory_stats(device: Any = None) -> None:
    _device.peak_bytes = _device.allocated_bytes
    _device.peak_reserved_bytes = _device.reserved_bytes


def mem_get_info(device: Any = None) -> tuple[int, int]:
    total_bytes = _device.cost.memory_bytes
    return total_bytes - _device.reserved_bytes, total_bytes


def memory_stats(device: Any = None) -> dict[str, int]:
    return {
        "allocated_bytes.all.current": _device.allocated_bytes,
        "allocated_bytes.all.peak": _device.peak_bytes,
        "reserved_bytes.all.current": _device.reserved_bytes,
        "reserved_bytes.all.peak": _device.peak_reserved_bytes,
    }


def empty_cache() -> None:
    _device.empty_cache()


# random numbers: one generator with the host, so a job draws the numbers that it draws on the CPU


def manual_seed(seed: int) -> None:
    pass


manual_seed_all = manual_seed


def get_rng_state(device: Any = None) -> torch.Tensor:
    return torch.get_rng_state()


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    torch.set_rng_state(new_state)


# mixed precision


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    return True
