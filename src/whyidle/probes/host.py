"""What the machine and the job's process tree do, read from /proc and /sys, outside the job.

A counter that this kernel, container or user cannot see is None. All counters only ever grow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

_NS_PER_US = 1_000
_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class HostSample:
    """One look. `time_ns` is `time.perf_counter_ns`; `tree_…` sums over the job and its descendants.

    `tree_cpu_ns` and the byte counters include descendants that have exited. `tree_rss_bytes` counts
    a page once for each process that shares it. Context switches are those of the main threads.
    `system_…` and `psi_…` are the whole machine's, `cgroup_…` those of the tightest CPU quota.
    """

    time_ns: int
    tree_process_count: int
    tree_thread_count: int
    tree_cpu_ns: int
    tree_rss_bytes: int
    tree_rss_peak_bytes: int
    tree_major_fault_count: int
    tree_read_bytes: int | None
    tree_write_bytes: int | None
    tree_rchar_bytes: int | None
    tree_wchar_bytes: int | None
    tree_voluntary_switch_count: int | None
    tree_involuntary_switch_count: int | None
    system_busy_ns: int | None
    system_total_ns: int | None
    system_iowait_ns: int | None
    system_steal_ns: int | None
    psi_cpu_some_ns: int | None
    psi_cpu_full_ns: int | None
    psi_io_some_ns: int | None
    psi_io_full_ns: int | None
    psi_memory_some_ns: int | None
    psi_memory_full_ns: int | None
    cgroup_period_count: int | None
    cgroup_throttled_count: int | None
    cgroup_throttled_ns: int | None
    swap_in_bytes: int | None
    swap_out_bytes: int | None


class HostSampler:
    """Samples the process tree of `pid`; cheap enough for two samples a second."""

    def __init__(self, pid: int, root: str = "/") -> None:
        self._root = root
        self._tree = _Tree(pid, root)
        self._rss_peak_bytes = 0
        quotas = [*_quotas(root, pid)]
        self._throttling_folder = min(quotas)[1] if quotas else _leaf(root, pid)

    def sample(self) -> HostSample:
        time_ns = time.perf_counter_ns()
        tree = self._tree.look()
        self._rss_peak_bytes = max(self._rss_peak_bytes, tree.rss_bytes)
        return HostSample(
            time_ns=time_ns,
            tree_process_count=tree.process_count,
            tree_thread_count=tree.thread_count,
            tree_cpu_ns=tree.cpu_ns,
            tree_rss_bytes=tree.rss_bytes,
            tree_rss_peak_bytes=self._rss_peak_bytes,
            tree_major_fault_count=tree.major_fault_count,
            tree_read_bytes=tree.read_bytes,
            tree_write_bytes=tree.write_bytes,
            tree_rchar_bytes=tree.rchar_bytes,
            tree_wchar_bytes=tree.wchar_bytes,
            tree_voluntary_switch_count=tree.voluntary_switch_count,
            tree_involuntary_switch_count=tree.involuntary_switch_count,
            **_system(self._root),
            **_pressure(self._root),
            **_throttling(self._throttling_folder),
            **_swap(self._root),
        )


def effective_cores(root: str = "/", pid: int | str = "self") -> float | None:
    """How many cores a process can keep busy: the fewest of its affinity and its cgroups' quotas."""
    limits = [cores for cores, _ in _quotas(root, pid)]
    affinity_count = _affinity_count(root, pid)
    if affinity_count is not None:
        limits.append(float(affinity_count))
    return min(limits, default=None)


def memory_limit_bytes(root: str = "/", pid: int | str = "self") -> int | None:
    """The least memory limit among the process's cgroups."""
    limits = []
    for folder in _path_to_top(root, pid, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(f"{folder}/{name}").strip()
            # An unlimited v1 group holds a number near 2**63.
            if text.isdigit() and int(text) < 1 << 62:
                limits.append(int(text))
    return min(limits, default=None)


# The process tree


@dataclass(frozen=True)
class _Process:
    """Counters of one process, or sums of them. The kernel adds a reaped child's to its parent's,
    except for context switches."""

    parent_pid: int = 0
    process_count: int = 0
    thread_count: int = 0
    rss_bytes: int = 0
    cpu_ns: int = 0
    major_fault_count: int = 0
    read_bytes: int | None = None
    write_bytes: int | None = None
    rchar_bytes: int | None = None
    wchar_bytes: int | None = None
    voluntary_switch_count: int | None = None
    involuntary_switch_count: int | None = None


_NAMES = tuple(field.name for field in fields(_Process))
_SWITCHES = ("voluntary_switch_count", "involuntary_switch_count")
_OF_THE_LIVING = ("parent_pid", "process_count", "thread_count", "rss_bytes")


class _Tree:
    """Follows a process and its descendants, those too whose parent has exited."""

    def __init__(self, pid: int, root: str) -> None:
        self._proc = os.path.join(root, "proc")
        self._strangers: set[int] = set()
        self._members: dict[int, _Process] = {}
        self._pid = pid
        self._retired = _Process()
        self._last = _Process()

    def look(self) -> _Process:
        alive = self._alive()
        before, self._members = self._members, alive
        for pid in before.keys() - alive.keys():
            self._retire(before[pid])
        # A child that its parent never waits for takes its counters along: hold the last value.
        self._last = _at_least(self._last, _sum([self._retired, *alive.values()]))
        return self._last

    def _alive(self) -> dict[int, _Process]:
        listed = self._pids()
        self._strangers &= listed
        seen = {pid: _process(f"{self._proc}/{pid}") for pid in sorted(listed - self._strangers)}
        there = {pid: process for pid, process in seen.items() if process is not None}
        ours = {pid for pid in there if pid == self._pid or pid in self._members}
        while kin := {pid for pid, process in there.items() if process.parent_pid in ours} - ours:
            ours |= kin
        self._strangers |= there.keys() - ours
        return {pid: there[pid] for pid in ours}

    def _pids(self) -> set[int]:
        try:
            return {int(name) for name in os.listdir(self._proc) if name.isdecimal()}
        except OSError:
            return set()

    def _retire(self, process: _Process) -> None:
        if process.parent_pid in self._members:
            blank = _Process()
            process = replace(blank, **{name: getattr(process, name) for name in _SWITCHES})
        living = dict.fromkeys(_OF_THE_LIVING, 0)
        self._retired = replace(_sum([self._retired, process]), **living)


def _process(folder: str) -> _Process | None:
    values = _read(f"{folder}/stat").rpartition(") ")[2].split()
    if len(values) < 22:
        return None
    user, system, waited_user, waited_system = (int(value) for value in values[11:15])
    io = _pairs(_read(f"{folder}/io"))
    status = _read(f"{folder}/status")
    return _Process(
        parent_pid=int(values[1]),
        process_count=1,
        thread_count=int(values[17]),
        rss_bytes=int(values[21]) * _PAGE_BYTES,
        cpu_ns=(user + system + waited_user + waited_system) * _NS_PER_TICK,
        major_fault_count=int(values[9]) + int(values[10]),
        read_bytes=io.get("read_bytes"),
        write_bytes=io.get("write_bytes"),
        rchar_bytes=io.get("rchar"),
        wchar_bytes=io.get("wchar"),
        voluntary_switch_count=_number_after(status, "\nvoluntary_ctxt_switches:"),
        involuntary_switch_count=_number_after(status, "\nnonvoluntary_ctxt_switches:"),
    )


def _sum(processes: list[_Process]) -> _Process:
    sums: dict[str, Any] = {name: _sum_known([getattr(each, name) for each in processes]) for name in _NAMES}
    return _Process(**sums)


def _sum_known(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _at_least(floor: _Process, process: _Process) -> _Process:
    grown = {}
    for name in _NAMES:
        low, value = getattr(floor, name), getattr(process, name)
        is_counter = name not in _OF_THE_LIVING and low is not None
        grown[name] = max(low, value or 0) if is_counter else value
    return _Process(**grown)


# The machine


def _system(root: str) -> dict[str, int | None]:
    values = _read(f"{root}/proc/stat").partition("\n")[0].split()[1:9]
    if len(values) < 8:
        return dict.fromkeys(("system_busy_ns", "system_total_ns", "system_iowait_ns", "system_steal_ns"))
    user, nice, system, idle, iowait, irq, softirq, steal = (int(value) * _NS_PER_TICK for value in values)
    busy_ns = user + nice + system + irq + softirq
    return {
        "system_busy_ns": busy_ns,
        "system_total_ns": busy_ns + idle + iowait + steal,
        "system_iowait_ns": iowait,
        "system_steal_ns": steal,
    }


def _pressure(root: str) -> dict[str, int | None]:
    result: dict[str, int | None] = {}
    for resource in ("cpu", "io", "memory"):
        text = "\n" + _read(f"{root}/proc/pressure/{resource}")
        for share in ("some", "full"):
            line = text.partition(f"\n{share} ")[2].partition("\n")[0]
            total_us = _number_after(line, "total=")
            result[f"psi_{resource}_{share}_ns"] = None if total_us is None else total_us * _NS_PER_US
    return result


def _swap(root: str) -> dict[str, int | None]:
    text = _read(f"{root}/proc/vmstat")
    pages = {"swap_in_bytes": "\npswpin ", "swap_out_bytes": "\npswpout "}
    counts = {name: _number_after(text, key) for name, key in pages.items()}
    return {name: None if count is None else count * _PAGE_BYTES for name, count in counts.items()}


# Control groups, version 1 and 2


def _throttling(folder: str | None) -> dict[str, int | None]:
    stat = _pairs(_read(f"{folder}/cpu.stat")) if folder else {}
    throttled_ns = stat.get("throttled_time")
    if "throttled_usec" in stat:
        throttled_ns = stat["throttled_usec"] * _NS_PER_US
    return {
        "cgroup_period_count": stat.get("nr_periods"),
        "cgroup_throttled_count": stat.get("nr_throttled"),
        "cgroup_throttled_ns": throttled_ns,
    }


def _quotas(root: str, pid: int | str) -> Iterator[tuple[float, str]]:
    """(cores, folder) for each group above the process that limits CPU time."""
    for folder in _path_to_top(root, pid, "cpu"):
        cores = _quota(folder)
        if cores is not None:
            yield cores, folder


def _quota(folder: str) -> float | None:
    quota, _, period = _read(f"{folder}/cpu.max").strip().partition(" ")
    if not quota:
        quota = _read(f"{folder}/cpu.cfs_quota_us").strip()
        period = _read(f"{folder}/cpu.cfs_period_us").strip()
    # "max" and -1 mean no limit.
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def _leaf(root: str, pid: int | str) -> str | None:
    return next((folder for folder in _path_to_top(root, pid, "cpu") if _read(f"{folder}/cpu.stat")), None)


def _path_to_top(root: str, pid: int | str, controller: str) -> Iterator[str]:
    """The process's group folders, its own first, in each hierarchy that can hold `controller`."""
    groups = _group_paths(_read(f"{root}/proc/{pid}/cgroup"))
    for mount, shown_from, mounted in _group_mounts(_read(f"{root}/proc/self/mountinfo")):
        if not mounted & {controller, ""} or not mounted & groups.keys():
            continue
        path = next(groups[name] for name in mounted if name in groups)
        top = f"{root.rstrip('/')}{mount}"
        inside = os.path.relpath(path, shown_from)
        # A container may see its own group mounted as the top, under a path that only the host knows.
        folder = top if inside.startswith("..") else os.path.normpath(f"{top}/{inside}")
        if not os.path.isdir(folder):
            folder = top
        while True:
            yield folder
            if len(folder) <= len(top):
                break
            folder = os.path.dirname(folder)


def _group_paths(text: str) -> dict[str, str]:
    """Controller → path of the group; version 2 stands under the empty name."""
    paths = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _group_mounts(text: str) -> Iterator[tuple[str, str, set[str]]]:
    """(mount point, path shown there, controllers) for each mounted hierarchy."""
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        mount, kind = left.split(), right.split()
        if len(mount) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            yield mount[4], mount[3], {""}
        elif kind[0] == "cgroup":
            yield mount[4], mount[3], set(kind[2].split(","))


def _affinity_count(root: str, pid: int | str) -> int | None:
    cpus = _read(f"{root}/proc/{pid}/status").partition("\nCpus_allowed_list:")[2].partition("\n")[0]
    count = 0
    for part in cpus.strip().split(","):
        first, _, last = part.partition("-")
        if not first.isdigit():
            return None
        count += int(last or first) - int(first) + 1
    return count


# Reading


def _read(path: str) -> str:
    """The start of a kernel file; "" when it cannot be read. `open` would cost twice the time."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _pairs(text: str) -> dict[str, int]:
    """`name value` or `name: value` on each line."""
    pairs = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            pairs[name.rstrip(":")] = int(value)
    return pairs


def _number_after(text: str, key: str) -> int | None:
    found = text.partition(key)[2].split(None, 1)
    return int(found[0]) if found and found[0].isdigit() else None
