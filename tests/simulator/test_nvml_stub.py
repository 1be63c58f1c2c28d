from __future__ import annotations

import os
import subprocess
import sys

import pytest
import simgpu
import torch
from nvml_stub import build as stub

pytest.importorskip("pynvml")

READER = """
import pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
print(pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(handle),
      pynvml.nvmlDeviceGetUtilizationRates(handle).gpu, memory.total, memory.used, processes[0].pid, sep="|")
try:
    pynvml.nvmlDeviceGetFanSpeed(handle)
except pynvml.NVMLError_FunctionNotFound:
    print("no fan")
"""


@pytest.mark.skipif(stub.compiler() is None, reason="no C compiler")
def test_another_process_reads_utilisation_through_nvidia_ml_py(tmp_path) -> None:
    stub.build(tmp_path)
    file = tmp_path / "device"
    simgpu.busy(30_000)  # longer than this test may take
    kept = torch.ones(1024, device="simgpu")
    publisher = simgpu.publish(file, period_s=0.02)
    try:
        simgpu.device.wait_until(simgpu.now_ns() + 250_000_000)  # one window of utilisation, and some
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "SIMGPU_NVML_FILE": str(file)}
        answer = subprocess.run(
            [sys.executable, "-c", READER], env=environment, capture_output=True, text=True, check=True
        ).stdout
    finally:
        publisher.stop()
    count, name, utilisation, total, used, pid = answer.splitlines()[0].split("|")
    assert (count, name, utilisation) == ("1", "Simulated GPU", "100")
    assert (int(total), int(pid)) == (simgpu.device.cost.memory_bytes, os.getpid())
    assert int(used) >= kept.nbytes
    assert answer.splitlines()[1] == "no fan"
