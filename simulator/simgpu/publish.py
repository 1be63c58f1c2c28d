"""Publishes utilisation and memory to a small file that other processes read (see simulator/nvml_stub)."""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from pathlib import Path

from .clock import now_ns
from .device import device
from .intervals import clip, total_ns, union

_HEADER = struct.Struct("<8sIII4x")  # magic, sequence, pid, device count
_BODY = struct.Struct("<QQQQQQ")  # wall clock ns, busy ns, window ns, memory used, memory total, kernels
_MAGIC = b"SIMGPU01"
FILE_BYTES = _HEADER.size + _BODY.size
WINDOW_NS = 200_000_000


class _Publisher(threading.Thread):
    def __init__(self, path: Path, period_s: float) -> None:
        super().__init__(name="simgpu-publish", daemon=True)
        self.path = path
        self._period_s = period_s
        self._sequence = 0
        self._halt = threading.Event()
        with path.open("wb") as file:
            file.write(bytes(FILE_BYTES))
        handle = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(handle, FILE_BYTES)
        os.close(handle)
        self.write()

    def run(self) -> None:
        while not self._halt.wait(self._period_s):
            self.write()

    def stop(self) -> None:
        self._halt.set()
        self.join()
        self.write()

    def write(self) -> None:
        end_ns = now_ns()
        start_ns = end_ns - WINDOW_NS
        busy_ns = total_ns(clip(union(device.busy_since(start_ns)), start_ns, end_ns))
        body = _BODY.pack(
            time.time_ns(),
            busy_ns,
            WINDOW_NS,
            device.reserved_bytes,
            device.cost.memory_bytes,
            device.counters.kernels_count,
        )
        self._write_header(odd=True)  # an odd sequence tells readers that the body is being written
        self._map[_HEADER.size :] = body
        self._write_header(odd=False)

    def _write_header(self, *, odd: bool) -> None:
        self._sequence += 1
        assert self._sequence % 2 == odd
        self._map[: _HEADER.size] = _HEADER.pack(_MAGIC, self._sequence, os.getpid(), 1)


def publish(path: str | os.PathLike[str], period_s: float = 0.05) -> _Publisher:
    """Keep the file up to date from a thread of this process; `.stop()` ends it."""
    publisher = _Publisher(Path(path), period_s)
    publisher.start()
    return publisher
