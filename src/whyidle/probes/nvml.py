"""What the driver says about the GPUs, from outside the job.

Every call is optional: a card, driver, container or MIG instance that does not answer one gives None.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BUDGET_NS = 8_000_000
_SM_CLOCK = 1  # NVML_CLOCK_SM
_TEMPERATURE_OF_GPU = 0  # NVML_TEMPERATURE_GPU


@dataclass(frozen=True)
class GpuSample:
    """One device at one moment; `index` is NVML's, `time_ns` is `time.perf_counter_ns`.

    `busy_ratio` is the share of the driver's last interval with any kernel resident.
    `clock_limit_bits` are NVML's clock event reasons: 0x1 idle, 0x4 power cap, 0x8 hardware slowdown,
    0x20 and 0x40 heat, 0x80 power brake.
    """

    time_ns: int
    index: int
    busy_ratio: float | None
    memory_busy_ratio: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    power_milliwatts: int | None
    sm_clock_mhz: int | None
    sm_clock_max_mhz: int | None
    temperature_celsius: int | None
    clock_limit_bits: int | None


@dataclass(frozen=True)
class Gpu:
    """What does not change about a device."""

    index: int
    uuid: str | None
    name: str | None
    memory_total_bytes: int | None
    sm_clock_max_mhz: int | None
    power_limit_milliwatts: int | None


class NvmlSampler:
    """Samples the devices that the job can see. `nvml` is the pynvml module or a stand-in for it."""

    def __init__(self, nvml: Any, environ: Mapping[str, str], *, budget_ns: int = _BUDGET_NS) -> None:
        self._calls = _Calls(nvml)
        self._budget_ns = budget_ns
        self._next = 0
        everything = [self._describe(index) for index in range(self._calls("nvmlDeviceGetCount") or 0)]
        gpus = [gpu for gpu in everything if gpu is not None]
        indices = _visible_indices(gpus, environ, self._calls)
        self._gpus = tuple(gpu for gpu in gpus if indices is None or gpu.index in indices)
        self.driver_version: str | None = _text(self._calls("nvmlSystemGetDriverVersion"))

    @classmethod
    def open(cls, environ: Mapping[str, str]) -> tuple[NvmlSampler | None, str | None]:
        """A sampler, or why there is none: `library_missing`, `driver_missing`, `no_device`, …"""
        try:
            import pynvml
        except ImportError:
            return None, "binding_missing"
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return None, _reason(pynvml, error)
        sampler = cls(pynvml, environ)
        if sampler.gpus:
            return sampler, None
        sampler.close()
        return None, "no_device"

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return self._gpus

    def sample(self) -> list[GpuSample]:
        """One sample of each device; slow drivers get to the remaining ones at the next call."""
        samples: list[GpuSample] = []
        end_ns = time.perf_counter_ns() + self._budget_ns
        while len(samples) < len(self._gpus):
            samples.append(self._look_at(self._gpus[self._next]))
            self._next = (self._next + 1) % len(self._gpus)
            if time.perf_counter_ns() > end_ns:
                break
        return sorted(samples, key=lambda sample: sample.index)

    def close(self) -> None:
        self._calls("nvmlShutdown")

    def _describe(self, index: int) -> Gpu | None:
        device = self._calls.device(index)
        if device is None:
            return None
        memory = self._calls.ask("nvmlDeviceGetMemoryInfo", index)
        return Gpu(
            index=index,
            uuid=_text(self._calls.ask("nvmlDeviceGetUUID", index)),
            name=_text(self._calls.ask("nvmlDeviceGetName", index)),
            memory_total_bytes=None if memory is None else int(memory.total),
            sm_clock_max_mhz=self._calls.ask("nvmlDeviceGetMaxClockInfo", index, _SM_CLOCK),
            power_limit_milliwatts=self._calls.ask("nvmlDeviceGetEnforcedPowerLimit", index),
        )

    def _look_at(self, gpu: Gpu) -> GpuSample:
        ask, index = self._calls.ask, gpu.index
        time_ns = time.perf_counter_ns()
        rates = ask("nvmlDeviceGetUtilizationRates", index)
        memory = ask("nvmlDeviceGetMemoryInfo", index)
        limit_bits = ask("nvmlDeviceGetCurrentClocksEventReasons", index)
        if limit_bits is None:  # drivers before 535 know the old name only
            limit_bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons", index)
        return GpuSample(
            time_ns=time_ns,
            index=index,
            busy_ratio=None if rates is None else rates.gpu / 100,
            memory_busy_ratio=None if rates is None else rates.memory / 100,
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=gpu.memory_total_bytes,
            power_milliwatts=ask("nvmlDeviceGetPowerUsage", index),
            sm_clock_mhz=ask("nvmlDeviceGetClockInfo", index, _SM_CLOCK),
            sm_clock_max_mhz=gpu.sm_clock_max_mhz,
            temperature_celsius=ask("nvmlDeviceGetTemperature", index, _TEMPERATURE_OF_GPU),
            clock_limit_bits=limit_bits,
        )


class _Calls:
    """Calls by name; an error is None, and a call that a device will never answer is not repeated."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles: dict[int, Any] = {}
        self._hopeless: set[tuple[str, int | None]] = set()
        names = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "NO_PERMISSION")
        self._final_codes = {getattr(nvml, f"NVML_ERROR_{name}", None) for name in names}

    def __call__(self, name: str, *arguments: Any, index: int | None = None) -> Any:
        if (name, index) in self._hopeless:
            return None
        try:
            return getattr(self._nvml, name)(*arguments)
        except AttributeError:  # an older binding
            self._hopeless.add((name, index))
        except self._nvml.NVMLError as error:
            if getattr(error, "value", None) in self._final_codes:
                self._hopeless.add((name, index))
        return None

    def device(self, index: int) -> Any:
        if index not in self._handles:
            handle = self("nvmlDeviceGetHandleByIndex", index)
            if handle is None:
                return None
            self._handles[index] = handle
        return self._handles[index]

    def ask(self, name: str, index: int, *arguments: Any) -> Any:
        return self(name, self.device(index), *arguments, index=index)


def _visible_indices(gpus: Sequence[Gpu], environ: Mapping[str, str], calls: _Calls) -> set[int] | None:
    """NVML indices behind CUDA_VISIBLE_DEVICES; None when it does not tell, so that all are watched."""
    setting = environ.get("CUDA_VISIBLE_DEVICES")
    if setting is None:
        return None
    visible: set[int] = set()
    for entry in (part.strip() for part in setting.split(",")):
        if entry.isdigit():
            if not _ordinals_are_indices(gpus, environ):
                return None
            index: int | None = int(entry) if int(entry) < len(gpus) else None
        else:
            index = _index_of_uuid(entry, gpus, calls)
            if index is None and entry.startswith("MIG-"):
                return None
        if index is None:  # CUDA ignores what follows an invalid entry
            break
        visible.add(index)
    return visible


def _ordinals_are_indices(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> bool:
    """CUDA counts the fastest device first unless told otherwise; NVML counts along the bus."""
    return environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({gpu.name for gpu in gpus}) <= 1


def _index_of_uuid(entry: str, gpus: Sequence[Gpu], calls: _Calls) -> int | None:
    if entry.startswith("GPU-"):
        matches = [gpu.index for gpu in gpus if gpu.uuid and gpu.uuid.startswith(entry)]
        return matches[0] if len(matches) == 1 else None
    if entry.startswith("MIG-"):
        instance = calls("nvmlDeviceGetHandleByUUID", entry)
        parent = instance and calls("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", instance)
        index = calls("nvmlDeviceGetIndex", parent) if parent else None
        return None if index is None else int(index)
    return None


def _reason(nvml: Any, error: Any) -> str:
    reasons = {
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library_missing",
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver_missing",
        nvml.NVML_ERROR_NO_PERMISSION: "no_permission",
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver_updated_without_reboot",
    }
    return reasons.get(error.value, f"nvml_error_{error.value}")


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
