"""A folder whose opens and reads are as slow as you say: far storage on a laptop.

    with storage_rig.slow_storage("data", open_ms=20, read_ms=2, mb_per_s=50, iops=200):
        train()

    python simulator/storage_rig.py --folder data --open-ms 20 --mb-per-s 50 train.py --epochs 2

In-process shim: Python's own ways to files (`open`, `io.open`, `os.open`, `os.read`, `os.stat`, `os.listdir`,
`os.scandir`, and so pathlib, PIL, numpy.load, torch.load) pay; C code that opens files by itself does not.
Opening still raises the usual audit events. Forked loader workers inherit the rig and share its one device:
bandwidth and IOPS are counted over all of them. Spawned workers start without it.
"""

from __future__ import annotations

import argparse
import builtins
import io
import mmap
import multiprocessing
import os
import runpy
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MOMENT = struct.Struct("<Q")
_DEFAULT_BUFFER_BYTES = 128 * 1024  # what a kernel reads ahead for a sequential reader


@dataclass(frozen=True)
class Speed:
    open_ms: float = 0.0
    read_ms: float = 0.0  # latency of one read, on top of its transfer
    mb_per_s: float | None = None
    iops: float | None = None


class Disk:
    """One storage device in virtual time, shared by this process and all that it forks."""

    def __init__(self, speed: Speed) -> None:
        self.speed = speed
        self._free_at = mmap.mmap(-1, mmap.PAGESIZE)
        self._lock = multiprocessing.get_context("fork").Lock()

    def open(self) -> None:
        self._wait(0, self.speed.open_ms)

    def read(self, byte_count: int) -> None:
        self._wait(byte_count, self.speed.read_ms)

    def _wait(self, byte_count: int, latency_ms: float) -> None:
        done_ns = self._reserve(byte_count) + int(latency_ms * 1e6)
        left_ns = done_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)

    def _reserve(self, byte_count: int) -> int:
        speed = self.speed
        transfer_s = byte_count / (speed.mb_per_s * 1e6) if speed.mb_per_s else 0.0
        request_s = 1 / speed.iops if speed.iops else 0.0
        with self._lock:
            start_ns = max(time.monotonic_ns(), _MOMENT.unpack_from(self._free_at)[0])
            end_ns = start_ns + int(max(transfer_s, request_s) * 1e9)
            _MOMENT.pack_into(self._free_at, 0, end_ns)
        return end_ns


class _SlowFile(io.FileIO):
    def __init__(self, disk: Disk, path: Any, mode: str, opener: Any) -> None:
        self._disk = disk
        disk.open()
        super().__init__(path, mode, opener=opener)

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._disk.read(count or 0)
        return count

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self._disk.read(len(data))
        return data

    def readall(self) -> bytes:
        data = super().readall()
        self._disk.read(len(data))
        return data


class _Shim:
    """Replaces the functions through which Python meets files; `restore` puts them back."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = str(folder.resolve())
        self._descriptors: set[int] = set()
        self._originals: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        real_open = builtins.open
        for owner, name, make in (
            (builtins, "open", self._open),
            (io, "open", self._open),
            (os, "open", self._os_open),
            (os, "close", self._os_close),
            (os, "read", self._os_read),
            (os, "stat", self._lookup),
            (os, "listdir", self._lookup),
            (os, "scandir", self._lookup),
        ):
            original = real_open if name == "open" and owner is not os else getattr(owner, name)
            self._originals.append((owner, name, original))
            setattr(owner, name, make(original))

    def restore(self) -> None:
        for owner, name, original in self._originals:
            setattr(owner, name, original)

    def _is_inside(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        try:
            full = os.path.realpath(os.fsdecode(path))
        except (TypeError, ValueError):
            return False
        return full == self._folder or full.startswith(self._folder + os.sep)

    def _open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def open(  # noqa: A001
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            if set(mode) - set("rbt") or not self._is_inside(file):
                return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = _SlowFile(self._disk, file, "r", opener)
            if buffering == 0:
                return raw
            reader = io.BufferedReader(raw, buffering if buffering > 1 else _DEFAULT_BUFFER_BYTES)
            return reader if "b" in mode else io.TextIOWrapper(reader, encoding, errors, newline)

        return open

    def _os_open(self, real: Callable[..., int]) -> Callable[..., int]:
        def os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            inside = self._is_inside(path)
            if inside:
                self._disk.open()
            descriptor = real(path, flags, mode, dir_fd=dir_fd)
            if inside:
                self._descriptors.add(descriptor)
            return descriptor

        return os_open

    def _os_close(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def os_close(fd: int) -> None:
            self._descriptors.discard(fd)
            real(fd)

        return os_close

    def _os_read(self, real: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
        def os_read(fd: int, length: int, /) -> bytes:
            data = real(fd, length)
            if fd in self._descriptors:
                self._disk.read(len(data))
            return data

        return os_read

    def _lookup(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def lookup(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            if self._is_inside(path):
                self._disk.open()
            return real(path, *args, **kwargs)

        return lookup


@contextmanager
def slow_storage(folder: str | os.PathLike[str], **speed: float | None) -> Iterator[Disk]:
    """Everything below the folder is slow inside the `with`; see `Speed` for the settings."""
    disk = Disk(Speed(**speed))  # type: ignore[arg-type]
    shim = _Shim(disk, Path(folder))
    shim.install()
    try:
        yield disk
    finally:
        shim.restore()


def add_speed_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--open-ms", type=float, default=0.0, help="time that opening a file takes")
    parser.add_argument("--read-ms", type=float, default=0.0, help="time of one read, besides its transfer")
    parser.add_argument("--mb-per-s", type=float, help="transfer rate of the whole device")
    parser.add_argument("--iops", type=float, help="opens and reads a second of the whole device")


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Run a script with a slow data folder.")
    parser.add_argument("--folder", required=True)
    add_speed_options(parser)
    parser.add_argument("script", nargs=argparse.REMAINDER, help="script.py and its arguments")
    options = vars(parser.parse_args(arguments))
    folder, script = options.pop("folder"), options.pop("script")
    if not script:
        parser.error("name the script to run")
    sys.argv = script
    sys.path[0] = str(Path(script[0]).resolve().parent)
    with slow_storage(folder, **options):
        runpy.run_path(script[0], run_name="__main__")


if __name__ == "__main__":
    _main(sys.argv[1:])
