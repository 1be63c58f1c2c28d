"""Facts of the machine and of the job's environment that hold for the whole run.

Nothing here names the user or the host: the hostname is hashed, and only variables that steer the
frameworks are kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

_BYTES_PER_KIB = 1024
_PREFIXES = (
    *("CUDA_", "CUBLAS_", "CUDNN_", "GOMP_", "HIP_", "KMP_", "MALLOC_", "MKL_", "NCCL_", "NVIDIA_", "OMP_"),
    *("OPENBLAS_", "PYTORCH_", "ROCR_", "TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "XLA_"),
)
_NAMES = {
    *("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK"),
    *("NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"),
    *("SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_NODE", "SLURM_NNODES", "SLURM_NTASKS"),
}
_SECRETS = ("TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL")
_CONTAINER_FILES = {"docker": ".dockerenv", "podman": "run/.containerenv"}
_CONTAINER_WORDS = {"docker": "docker", "kubepods": "kubernetes", "containerd": "containerd", "lxc": "lxc"}


def describe(
    environ: Mapping[str, str],
    root: str = "/",
    *,
    effective_cores: float | None = None,
    memory_limit_bytes: int | None = None,
    gpu_names: list[str] | None = None,
    driver_version: str | None = None,
) -> dict[str, Any]:
    """Everything fits into JSON; what cannot be read is None. The keyword facts come from other probes."""
    memory = _kib_values(_read(root, "proc/meminfo"))
    kernel = _read(root, "proc/sys/kernel/osrelease").strip() or None
    return {
        "host": _host_hash(root),
        "platform": f"{os.uname().sysname}-{os.uname().machine}".lower(),
        "kernel": kernel,
        "cpu_model": _cpu_model(root),
        "logical_core_count": _logical_core_count(root),
        "effective_cores": effective_cores,
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "memory_limit_bytes": memory_limit_bytes,
        "swap_total_bytes": memory.get("SwapTotal"),
        "shm_total_bytes": _file_system_bytes(root, "dev/shm"),
        "containers": _containers(environ, root, kernel or ""),
        "variables": relevant_variables(environ),
        "gpu_names": gpu_names,
        "driver_version": driver_version or _driver_version(root),
    }


def relevant_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that change how fast a training job runs, with their values."""
    return {name: environ[name] for name in sorted(environ) if _is_relevant(name)}


def _is_relevant(name: str) -> bool:
    return (name in _NAMES or name.startswith(_PREFIXES)) and not any(word in name for word in _SECRETS)


def _host_hash(root: str) -> str | None:
    name = _read(root, "proc/sys/kernel/hostname").strip()
    return hashlib.sha256(name.encode()).hexdigest()[:12] if name else None


def _cpu_model(root: str) -> str | None:
    for line in _read(root, "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return None


def _logical_core_count(root: str) -> int | None:
    lines = _read(root, "proc/stat").splitlines()
    return sum(line.startswith("cpu") and line[3:4].isdigit() for line in lines) or None


def _kib_values(text: str) -> dict[str, int]:
    values = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdigit():
            values[name] = int(number[0]) * _BYTES_PER_KIB
    return values


def _file_system_bytes(root: str, folder: str) -> int | None:
    try:
        status = os.statvfs(os.path.join(root, folder))
    except OSError:
        return None
    return status.f_blocks * status.f_frsize


def _containers(environ: Mapping[str, str], root: str, kernel: str) -> list[str]:
    """Hints, not proof: what this process seems to be wrapped in."""
    hints = {name for name, path in _CONTAINER_FILES.items() if os.path.exists(os.path.join(root, path))}
    groups = _read(root, "proc/self/cgroup")
    hints |= {name for word, name in _CONTAINER_WORDS.items() if word in groups}
    if "KUBERNETES_SERVICE_HOST" in environ:
        hints.add("kubernetes")
    if "SLURM_JOB_ID" in environ:
        hints.add("slurm")
    if "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ:
        hints.add("apptainer")
    if "microsoft" in kernel.lower():
        hints.add("wsl")
    return sorted(hints)


def _driver_version(root: str) -> str | None:
    """`NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug …`"""
    for word in _read(root, "proc/driver/nvidia/version").partition("\n")[0].split():
        if word.replace(".", "").isdigit() and "." in word:
            return word
    return None


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
