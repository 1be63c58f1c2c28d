"""One live line about a running job, in the terminal's title: the screen below belongs to the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from whyidle.units import ns_to_s

PUSH_TITLE, POP_TITLE = "\033[22;0t", "\033[23;0t"


class LiveStatus:
    """Writes only where `stream` is a terminal; the title it found comes back at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_live = stream.isatty()
        self._first: Mapping[str, Any] | None = None
        self._last: Mapping[str, Any] | None = None

    def show(self, sample: Mapping[str, Any]) -> None:
        """`sample` is a line of host.jsonl."""
        if not self._is_live:
            return
        start = PUSH_TITLE if self._first is None else ""
        self._first = self._first or sample
        self._write(f"{start}\033]0;{status(self._first, self._last or sample, sample)}\007")
        self._last = sample

    def clear(self) -> None:
        if self._first is not None:
            self._write(POP_TITLE)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_live = False


def status(first: Mapping[str, Any], last: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Elapsed time, cores in use by the job's processes, memory, and the GPUs' busy share where known."""
    elapsed_s = int(ns_to_s(now["time_ns"] - first["time_ns"]))
    passed_ns = now["time_ns"] - last["time_ns"]
    parts = [f"whyidle {elapsed_s // 60}:{elapsed_s % 60:02d}"]
    if passed_ns > 0:
        parts.append(f"CPU {(now['tree_cpu_ns'] - last['tree_cpu_ns']) / passed_ns:.0%}")
    parts.append(f"{now['tree_rss_bytes'] / 1e9:.1f} GB")
    busy = [gpu["busy_ratio"] for gpu in now.get("gpus", []) if gpu.get("busy_ratio") is not None]
    if busy:
        parts.append(f"GPU {sum(busy) / len(busy):.0%}")
    return " · ".join(parts)
