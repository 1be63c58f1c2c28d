"""Marks the edges of spans on the device's queue, to learn what the device did between them.

A marker is a timing event recorded on the current stream, taken from a pool and read by whyidle's own
thread once the device has passed it: no synchronisation, ever. The same code serves every device whose
torch module has `Event`: CUDA, ROCm, XPU, NPU and the simulated accelerator.

Nothing is recorded or queried while a CUDA graph is being captured: an event would become part of the
graph, and a query from another thread would break the capture.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, get_ident
from collections import deque
from functools import partial
from time import perf_counter_ns

from whyidle.probes.recorder import Recorder
from whyidle.probes.torch.backlog import Backlog
from whyidle.probes.wrapping import Marks, replace_timed

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

PENDING_LIMIT = 8192  # a device that far behind is not waiting for anybody
BUDGET_RATIO = 0.005  # of the time, for setting markers
CLOSE_NS = 20_000  # edges closer than that share a marker
WINDOW_STEPS = 4  # steps marked in a row; then some are left out if the budget says so


class DeviceMarkers:
    def __init__(self, recorder: Recorder) -> None:
        self.is_active = False
        self._recorder = recorder
        self._pool: list[Any] = []
        self._pending: deque[tuple[int, Any, int]] = deque()
        self._previous: Any = None
        self._device_ns = 0
        self._capture = allocate_lock()
        self._guards = False
        self._is_on = True
        self._is_first = 1
        self._last_ns = 0
        self._steps = 0
        self._cost_ns = 0
        self._since_ns = 0
        self._pause_until_step = 0

    def activate(self, device_type: str) -> None:
        """Begin to mark; does nothing for a device that has no timing events."""
        torch = sys.modules["torch"]
        module = getattr(torch, device_type, None)
        event_class = getattr(module, "Event", None)
        if self.is_active or event_class is None:
            return
        self._new_event = partial(event_class, enable_timing=True)
        self._is_capturing = getattr(module, "is_current_stream_capturing", None)
        self._guard_captures(module)
        replace_timed(self._recorder, module, "synchronize", "sync", self._recorder.name("synchronize"))
        self._since_ns = perf_counter_ns()
        self._backlog = Backlog(device_type, self._since_ns)
        self.is_active = True
        self._recorder.read_marks = self.read
        Marks.mark = self.mark

    def deactivate(self) -> None:
        """A forked child must not touch its parent's device."""
        if self.is_active:
            self.is_active = False
            Marks.mark = None
            self._recorder.read_marks = None
            self._pool.clear()
            self._pending.clear()

    def mark(self, begins: str = "") -> None:
        """Set a marker for this moment, on the training thread's current stream.

        `begins` names the phase that starts here, if it is one that launches kernels.
        """
        now_ns = perf_counter_ns()
        if not self._is_on or (now_ns - self._last_ns < CLOSE_NS and not begins):
            return
        if get_ident() != self._recorder.training_thread:
            return
        if self._capture.locked() or len(self._pending) >= PENDING_LIMIT:
            self._is_first = 1
            return
        try:
            if self._is_capturing is not None and self._is_capturing():
                self._is_first = 1
                return
            self._record(now_ns)
            if begins and self._backlog.at(begins, now_ns):
                self._is_first = 1  # what was queued just now belongs to no stretch
                self._record(perf_counter_ns())
        except Exception:
            self.deactivate()
            return
        self._last_ns = perf_counter_ns()
        self._cost_ns += self._last_ns - now_ns

    def _record(self, now_ns: int) -> None:
        event = self._pool.pop() if self._pool else self._new_event()
        event.record()
        self._pending.append((now_ns, event, self._is_first))
        self._is_first = 0

    def end_step(self) -> None:
        """Keep the cost of marking within its budget by leaving steps out."""
        self._steps += 1
        self._backlog.end_step()
        if not self._is_on:
            if self._steps >= self._pause_until_step:
                self._is_on = True
                self._is_first = 1
            return
        if self._steps % WINDOW_STEPS:
            return
        elapsed_ns = max(1, perf_counter_ns() - self._since_ns)
        excess = self._cost_ns / elapsed_ns / BUDGET_RATIO
        if excess > 1:
            self._is_on = False
            self._pause_until_step = self._steps + min(200, round(WINDOW_STEPS * excess))
        if elapsed_ns > 10_000_000_000:  # forget old costs
            self._cost_ns //= 2
            self._since_ns += elapsed_ns // 2

    def read(self) -> list[tuple[int, ...]]:
        """Rows for the markers that the device has passed; runs on whyidle's own thread."""
        rows: list[tuple[int, ...]] = []
        if not self._capture.acquire(False):
            return rows
        try:
            while self._pending and self._pending[0][1].query():
                host_ns, event, is_first = self._pending.popleft()
                if self._previous is not None:
                    self._device_ns += round(self._previous.elapsed_time(event) * 1e6)
                    self._pool.append(self._previous)
                self._previous = event
                rows.append((host_ns, self._device_ns, is_first))
                self._backlog.saw(host_ns, self._device_ns)
        except Exception:
            self.deactivate()
        finally:
            self._capture.release()
        return rows

    def _guard_captures(self, module: Any) -> None:
        """Hold the lock while a graph is captured, so that no query falls into it."""
        graph = getattr(module, "CUDAGraph", None)
        if graph is None or self._guards:
            return
        self._guards = True  # put on twice it would wait for itself
        begin, end, lock = graph.capture_begin, graph.capture_end, self._capture

        def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
            lock.acquire()
            try:
                return begin(self, *args, **kwargs)
            except BaseException:
                lock.release()
                raise

        def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return end(self, *args, **kwargs)
            finally:
                if lock.locked():
                    lock.release()

        try:
            graph.capture_begin, graph.capture_end = capture_begin, capture_end
        except (AttributeError, TypeError):
            pass
