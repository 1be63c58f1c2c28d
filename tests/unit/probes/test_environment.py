from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from whyidle.probes.environment import describe, relevant_variables


def _write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write(tmp_path, "proc/sys/kernel/hostname", "secret-host\n")
    _write(tmp_path, "proc/sys/kernel/osrelease", "6.1.0-test\n")
    _write(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: A Fine CPU @ 3 GHz\n")
    _write(tmp_path, "proc/stat", "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n")
    _write(tmp_path, "proc/meminfo", "MemTotal:       2048 kB\nMemAvailable:   1024 kB\nSwapTotal: 0 kB\n")
    return tmp_path


def test_machine_facts(root: Path) -> None:
    facts = describe({}, str(root), effective_cores=1.5, gpu_names=["A GPU"], driver_version="535.1")
    assert facts["kernel"] == "6.1.0-test"
    assert facts["cpu_model"] == "A Fine CPU @ 3 GHz"
    assert facts["logical_core_count"] == 2
    assert facts["effective_cores"] == 1.5
    assert facts["memory_total_bytes"] == 2 << 20
    assert facts["memory_available_bytes"] == 1 << 20
    assert facts["swap_total_bytes"] == 0
    assert facts["gpu_names"] == ["A GPU"]
    assert facts["driver_version"] == "535.1"
    assert facts["containers"] == []


def test_host_is_recognisable_but_not_named(root: Path) -> None:
    facts = describe({}, str(root))
    assert "secret-host" not in json.dumps(facts)
    assert facts["host"] == describe({}, str(root))["host"]
    _write(root, "proc/sys/kernel/hostname", "other-host\n")
    assert facts["host"] != describe({}, str(root))["host"]


def test_unknown_is_none(tmp_path: Path) -> None:
    facts = describe({}, str(tmp_path))
    known = {name for name, value in facts.items() if value is not None}
    assert known == {"platform", "containers", "variables"}


def test_shared_memory_size(root: Path) -> None:
    (root / "dev/shm").mkdir(parents=True)
    status = os.statvfs(root)
    assert describe({}, str(root))["shm_total_bytes"] == status.f_blocks * status.f_frsize


def test_driver_version_without_nvml(root: Path) -> None:
    line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"
    _write(root, "proc/driver/nvidia/version", f"{line}\nGCC version: 12.2\n")
    assert describe({}, str(root))["driver_version"] == "535.104.05"


def test_container_hints(root: Path) -> None:
    _write(root, ".dockerenv", "")
    _write(root, "proc/self/cgroup", "0::/kubepods/besteffort/pod1\n")
    _write(root, "proc/sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n")
    facts = describe({"SLURM_JOB_ID": "7"}, str(root))
    assert facts["containers"] == ["docker", "kubernetes", "slurm", "wsl"]


def test_only_variables_that_steer_training_are_kept() -> None:
    kept = "CUDA_LAUNCH_BLOCKING CUDA_VISIBLE_DEVICES MKL_NUM_THREADS NCCL_DEBUG OMP_NUM_THREADS"
    kept += " PYTORCH_NO_CUDA_MEMORY_CACHING TORCH_DISTRIBUTED_DEBUG WORLD_SIZE"
    dropped = "HOME PATH AWS_SECRET_ACCESS_KEY TORCH_HUB_TOKEN RANKED"
    environ = dict.fromkeys(f"{kept} {dropped}".split(), "1")
    assert relevant_variables(environ) == dict.fromkeys(kept.split(), "1")


def test_this_machine_fits_into_json() -> None:
    facts = describe(os.environ)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["logical_core_count"] == os.cpu_count()
