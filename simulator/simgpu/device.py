"""The simulated device: queues in virtual time, memory, and the books that tests read.

Model. Every stream is a queue in order; streams never slow each other down. Work enqueued at host time t
starts at max(t, end of the stream's earlier work, events the stream waits for) and ends after its cost. So
the end of all work is known the moment it is enqueued: nothing runs in the background, waiting is sleeping.
"""

from __future__ import annotations

import threading
from bisect import bisect
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch

from .clock import now_ns, sleep_until_ns
from .cost import CostModel
from .intervals import Interval


@dataclass
class Counters:
    """What the host asked of the device since the last reset."""

    kernels_count: int = 0
    h2d_count: int = 0
    h2d_bytes: int = 0
    h2d_pageable_count: int = 0
    d2h_count: int = 0
    d2h_bytes: int = 0
    syncs_count: int = 0  # every call that waits for the device, needed or not
    host_blocked_ns: int = 0


class Kernel(NamedTuple):
    name: str
    stream_id: int
    start_ns: int
    end_ns: int


class Queue:
    """One stream's work: when it is free again, and when it was busy."""

    __slots__ = ("busy", "priority", "ready_ns", "stream_id")

    def __init__(self, stream_id: int, priority: int = 0) -> None:
        self.stream_id = stream_id
        self.priority = priority
        self.ready_ns = 0
        self.busy: list[Interval] = []

    def wait_until(self, moment_ns: int) -> None:
        """Everything enqueued from here on starts at that moment or later."""
        self.ready_ns = max(self.ready_ns, moment_ns)


class _PerThread(threading.local):
    queue: Queue | None = None


class Device:
    def __init__(self) -> None:
        self.cost = CostModel()
        self.counters = Counters()
        self.queues = [Queue(0)]
        self.allocated_bytes = 0
        self.peak_bytes = 0
        self.reserved_bytes = 0
        self.peak_reserved_bytes = 0
        self.kernels: list[Kernel] | None = None
        self.in_use = False
        self.in_forked_child = False
        self._lock = threading.Lock()
        self._per_thread = _PerThread()
        self._main_queue = self.queues[0]

    def _enter(self) -> None:
        if self.in_forked_child:
            raise RuntimeError("Cannot re-initialize simgpu in forked subprocess; use the spawn method")
        self.in_use = True

    # streams

    def new_queue(self, priority: int = 0) -> Queue:
        with self._lock:
            queue = Queue(len(self.queues), priority)
            self.queues.append(queue)
        return queue

    @property
    def current_queue(self) -> Queue:
        return self._per_thread.queue or self._queue_of_new_thread()

    def _queue_of_new_thread(self) -> Queue:
        """Autograd's threads are unknown to `threading`: they follow the thread that trains."""
        if threading.get_ident() in threading._active:  # type: ignore[attr-defined]
            self._per_thread.queue = self.queues[0]
            return self.queues[0]
        return self._main_queue

    def set_queue(self, queue: Queue) -> None:
        self._per_thread.queue = queue
        if threading.current_thread() is threading.main_thread():
            self._main_queue = queue

    # time

    def enqueue(self, name: str, duration_ns: int, queue: Queue | None = None) -> int:
        """Queue work and return when it will end."""
        self._enter()
        queue = queue or self.current_queue
        with self._lock:
            start_ns = max(now_ns(), queue.ready_ns)
            end_ns = queue.ready_ns = start_ns + duration_ns
            busy = queue.busy
            if busy and busy[-1][1] == start_ns:
                busy[-1] = (busy[-1][0], end_ns)
            else:
                busy.append((start_ns, end_ns))
            if self.kernels is not None:
                self.kernels.append(Kernel(name, queue.stream_id, start_ns, end_ns))
        return end_ns

    def launch(self, name: str, flops: float, byte_count: int) -> None:
        self.counters.kernels_count += 1
        self.enqueue(name, self.cost.kernel_ns(flops, byte_count))

    def wait_until(self, moment_ns: int) -> None:
        """Block the host until the device has reached that moment."""
        began_ns = now_ns()
        self.counters.syncs_count += 1
        if moment_ns > began_ns:
            sleep_until_ns(moment_ns)
            self.counters.host_blocked_ns += now_ns() - began_ns

    def synchronize_queue(self, queue: Queue | None = None) -> None:
        self.wait_until((queue or self.current_queue).ready_ns)

    def synchronize(self) -> None:
        self.wait_until(max(queue.ready_ns for queue in self.queues))

    # memory

    def allocate(self, byte_count: int) -> None:
        self._enter()
        with self._lock:
            if self.allocated_bytes + byte_count > self.cost.memory_bytes:
                raise torch.OutOfMemoryError(self._out_of_memory(byte_count))
            self.allocated_bytes += byte_count
            self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
            self.reserved_bytes = max(self.reserved_bytes, self.allocated_bytes)
            self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def free(self, byte_count: int) -> None:
        self.allocated_bytes -= byte_count  # called by the garbage collector, perhaps inside the lock

    def empty_cache(self) -> None:
        if self.reserved_bytes > self.allocated_bytes:
            self.synchronize()  # returning memory to the driver waits for the device
            self.reserved_bytes = self.allocated_bytes

    def _out_of_memory(self, byte_count: int) -> str:
        gib = 1024**3
        free_bytes = max(self.cost.memory_bytes - self.allocated_bytes, 0)
        return (
            f"simgpu out of memory. Tried to allocate {byte_count / gib:.2f} GiB. "
            f"simgpu:0 has a total capacity of {self.cost.memory_bytes / gib:.2f} GiB "
            f"of which {free_bytes / gib:.2f} GiB is free."
        )

    # books

    def forget(self) -> None:
        """Start new books: intervals, kernels, counters and peaks; queued work stays queued."""
        with self._lock:
            for queue in self.queues:
                queue.busy = []
            if self.kernels is not None:
                self.kernels = []
        for field in fields(Counters):
            setattr(self.counters, field.name, 0)
        self.peak_bytes = self.allocated_bytes
        self.peak_reserved_bytes = self.reserved_bytes

    def busy_since(self, moment_ns: int) -> list[list[Interval]]:
        """Each stream's intervals from the one before that moment on."""
        with self._lock:
            return [q.busy[max(bisect(q.busy, (moment_ns,)) - 1, 0) :] for q in self.queues]


device = Device()


def after_fork() -> None:
    device._lock = threading.Lock()
    device.in_forked_child = device.in_use
