from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from whyidle.probes.nvml import NvmlSampler


class FakeError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class FakeNvml:
    """Stands in for the pynvml module: `answers` maps a call to a value, an error or a function."""

    NVMLError = FakeError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_FUNCTION_NOT_FOUND = 13

    def __init__(self, *names: str, **answers: Any) -> None:
        self.calls: list[str] = []
        self.answers = {
            "nvmlDeviceGetCount": len(names),
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetName": lambda handle: names[handle],
            "nvmlDeviceGetUUID": lambda handle: f"GPU-{'abcdefgh'[handle]}000",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5, total=10),
            "nvmlDeviceGetMaxClockInfo": 2000,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=40, memory=20),
            "nvmlDeviceGetPowerUsage": 300_000,
            "nvmlDeviceGetClockInfo": 1500,
            "nvmlDeviceGetTemperature": 60,
            "nvmlDeviceGetCurrentClocksEventReasons": 4,
            "nvmlSystemGetDriverVersion": b"535.1",
            "nvmlShutdown": None,
            **answers,
        }

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return call


def indices(nvml: FakeNvml, **environ: str) -> list[int]:
    return [gpu.index for gpu in NvmlSampler(nvml, environ).gpus]


def test_one_sample_of_a_device() -> None:
    sampler = NvmlSampler(FakeNvml("H100"), {})
    [sample] = sampler.sample()
    assert sampler.driver_version == "535.1"
    assert sampler.gpus[0].name == "H100"
    assert sampler.gpus[0].power_limit_milliwatts == 700_000
    assert (sample.busy_ratio, sample.memory_busy_ratio) == (0.4, 0.2)
    assert (sample.memory_used_bytes, sample.memory_total_bytes) == (5, 10)
    assert (sample.sm_clock_mhz, sample.sm_clock_max_mhz) == (1500, 2000)
    assert (sample.power_milliwatts, sample.temperature_celsius, sample.clock_limit_bits) == (300_000, 60, 4)


@pytest.mark.parametrize("code", [3, 4, 13])
def test_a_call_that_is_never_answered_is_none_and_not_repeated(code: int) -> None:
    nvml = FakeNvml("H100", nvmlDeviceGetUtilizationRates=FakeError(code))
    sampler = NvmlSampler(nvml, {})
    for _ in range(3):
        [sample] = sampler.sample()
        assert sample.busy_ratio is None
        assert sample.power_milliwatts == 300_000
    assert nvml.calls.count("nvmlDeviceGetUtilizationRates") == 1


def test_a_passing_error_is_none_and_tried_again() -> None:
    nvml = FakeNvml("H100", nvmlDeviceGetPowerUsage=FakeError(999))
    sampler = NvmlSampler(nvml, {})
    assert sampler.sample()[0].power_milliwatts is None
    nvml.answers["nvmlDeviceGetPowerUsage"] = 100
    assert sampler.sample()[0].power_milliwatts == 100


@pytest.mark.parametrize("new_name", [None, FakeError(13)])
def test_clock_limits_by_their_old_name(new_name: Exception | None) -> None:
    nvml = FakeNvml("H100", nvmlDeviceGetCurrentClocksThrottleReasons=0x80)
    if new_name is None:  # an older binding
        del nvml.answers["nvmlDeviceGetCurrentClocksEventReasons"]
    else:  # an older driver
        nvml.answers["nvmlDeviceGetCurrentClocksEventReasons"] = new_name
    assert NvmlSampler(nvml, {}).sample()[0].clock_limit_bits == 0x80


def test_zero_is_a_value() -> None:
    answers = {"nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0, memory=0)}
    nvml = FakeNvml("H100", nvmlDeviceGetCurrentClocksEventReasons=0, **answers)
    [sample] = NvmlSampler(nvml, {}).sample()
    assert (sample.busy_ratio, sample.clock_limit_bits) == (0.0, 0)


def test_visible_devices_of_equal_cards() -> None:
    nvml = FakeNvml("H100", "H100", "H100", "H100")
    assert indices(nvml) == [0, 1, 2, 3]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="3,1") == [1, 3]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="GPU-c,GPU-a000") == [0, 2]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="1,-1,2") == [1]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="1,9,2") == [1]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="") == []
    assert indices(nvml, CUDA_VISIBLE_DEVICES="NoDevFiles") == []


def test_ordinals_of_unequal_cards_are_resolved_only_in_bus_order() -> None:
    nvml = FakeNvml("T4", "H100")
    assert indices(nvml, CUDA_VISIBLE_DEVICES="0") == [0, 1]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID") == [0]
    assert indices(nvml, CUDA_VISIBLE_DEVICES="GPU-b") == [1]


def test_a_mig_instance_is_watched_through_its_card() -> None:
    answers = {
        "nvmlDeviceGetHandleByUUID": "instance",
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": "card",
        "nvmlDeviceGetIndex": 1,
    }
    assert indices(FakeNvml("A100", "A100", **answers), CUDA_VISIBLE_DEVICES="MIG-x") == [1]
    assert indices(FakeNvml("A100", "A100"), CUDA_VISIBLE_DEVICES="MIG-x") == [0, 1]


def test_a_slow_driver_gets_to_every_device_in_turn() -> None:
    def slow(handle: int) -> int:
        time.sleep(0.003)
        return handle

    sampler = NvmlSampler(FakeNvml("T4", "T4", "T4", nvmlDeviceGetPowerUsage=slow), {}, budget_ns=1_000_000)
    seen = [[sample.index for sample in sampler.sample()] for _ in range(4)]
    assert seen == [[0], [1], [2], [0]]


STUB = r"""
#include <string.h>
#include <stdlib.h>
typedef int ret;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned gpu, memory; } rates;
static int devices[2] = {0, 1};
#define SECOND(device) (*(int *)(device) == 1)
ret nvmlInitWithFlags(unsigned flags) {
    const char *code = getenv("STUB_INIT");
    return code ? atoi(code) : 0; }
ret nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(ret code) { return "an error"; }
ret nvmlSystemGetDriverVersion(char *text, unsigned size) { strcpy(text, "470.1"); return 0; }
ret nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
ret nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &devices[index]; return 0; }
ret nvmlDeviceGetName(void *device, char *text, unsigned size) { strcpy(text, "Stub"); return 0; }
ret nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    strcpy(text, SECOND(device) ? "GPU-bb" : "GPU-aa"); return 0; }
ret nvmlDeviceGetMemoryInfo(void *device, memory *m) {
    m->total = 1000; m->used = 250; m->free = 750; return 0; }
ret nvmlDeviceGetUtilizationRates(void *device, rates *r) {
    if (SECOND(device)) return 3;
    r->gpu = 71; r->memory = 0; return 0; }
ret nvmlDeviceGetPowerUsage(void *device, unsigned *value) {
    *value = 123456; return SECOND(device) ? 999 : 0; }
ret nvmlDeviceGetClockInfo(void *device, int kind, unsigned *value) { *value = 1200 + kind; return 0; }
ret nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *value) { *value = 1980; return 0; }
ret nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) {
    *bits = 0x40; return 0; }
"""

READ_STUB = """
import json, os
from dataclasses import asdict
from whyidle.probes.nvml import NvmlSampler
sampler, reason = NvmlSampler.open(os.environ)
samples = [asdict(sample) for sample in sampler.sample()] if sampler else None
print(json.dumps({"reason": reason, "samples": samples, "driver": sampler and sampler.driver_version}))
"""


@pytest.fixture(scope="module")
def stub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "stub.c").write_text(STUB)
    library = str(folder / "libnvidia-ml.so.1")
    command = [compiler, "-shared", "-fPIC", "-w", "-Wl,-soname,libnvidia-ml.so.1", "-o", library]
    subprocess.run([*command, str(folder / "stub.c")], check=True)
    return folder


def read_driver(folder: Path, **environ: str) -> dict[str, Any]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    result = subprocess.run(
        [sys.executable, "-c", READ_STUB],
        env={**inherited, "LD_LIBRARY_PATH": str(folder), **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_the_real_binding_with_a_partial_driver(stub_folder: Path) -> None:
    answer = read_driver(stub_folder)
    assert answer["reason"] is None
    assert answer["driver"] == "470.1"
    first, second = answer["samples"]
    assert (first["busy_ratio"], first["memory_busy_ratio"]) == (0.71, 0.0)
    assert (first["memory_used_bytes"], first["memory_total_bytes"]) == (250, 1000)
    assert first["power_milliwatts"] == 123_456
    assert (first["sm_clock_mhz"], first["sm_clock_max_mhz"]) == (1201, 1980)
    assert first["clock_limit_bits"] == 0x40
    assert first["temperature_celsius"] is None  # no such symbol
    assert second["busy_ratio"] is None  # not supported
    assert second["power_milliwatts"] is None  # unknown error
    assert second["memory_used_bytes"] == 250


def test_the_real_binding_restricted_to_one_device(stub_folder: Path) -> None:
    answer = read_driver(stub_folder, CUDA_VISIBLE_DEVICES="GPU-bb")
    assert [sample["index"] for sample in answer["samples"]] == [1]


@pytest.mark.parametrize(("code", "reason"), [("9", "driver_missing"), ("999", "nvml_error_999")])
def test_no_driver_gives_a_reason(stub_folder: Path, code: str, reason: str) -> None:
    answer = read_driver(stub_folder, STUB_INIT=code)
    assert (answer["samples"], answer["reason"]) == (None, reason)


def test_no_visible_device_gives_a_reason(stub_folder: Path) -> None:
    answer = read_driver(stub_folder, CUDA_VISIBLE_DEVICES="")
    assert (answer["samples"], answer["reason"]) == (None, "no_device")


def test_no_library_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    pynvml = pytest.importorskip("pynvml")

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", missing)
    assert NvmlSampler.open({}) == (None, "library_missing")


def test_no_binding_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert NvmlSampler.open({}) == (None, "binding_missing")
