"""Streams and events in virtual time, by `torch.simgpu`'s names and by torch's generic ones."""

from __future__ import annotations

from typing import Any

import torch

from .clock import now_ns
from .device import Queue, device

_torch_event, _torch_stream = torch.Event, torch.Stream
_PRIVATE_USE = int(torch._C._autograd.DeviceType.PrivateUse1.value)


def _means_simgpu(wanted: Any) -> bool:
    return wanted is None or isinstance(wanted, int) or torch.device(wanted).type == "simgpu"


class GenericEvent(_torch_event):  # type: ignore[misc]
    """Stands in for `torch.Event`: on the accelerator an `Event` of this module, else torch's own."""

    def __new__(cls, device: Any = None, **options: Any) -> Any:
        if cls is GenericEvent:
            if not _means_simgpu(device):
                return _torch_event(device, **options)
            return Event(**options)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class GenericStream(_torch_stream):  # type: ignore[misc]
    """Stands in for `torch.Stream` likewise."""

    def __new__(cls, device: Any = None, **options: Any) -> Any:
        if cls is GenericStream:
            if not _means_simgpu(device):
                return _torch_stream(device, **options)
            return Stream(**options)
        return super().__new__(cls, **options)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class Stream(GenericStream):
    """An in-order queue of device work."""

    def __new__(cls, device: Any = None, priority: int = 0, queue: Queue | None = None) -> Stream:
        queue = queue or _new_queue(priority)
        stream = super().__new__(cls, stream_id=queue.stream_id, device_index=0, device_type=_PRIVATE_USE)
        stream._queue = queue
        stream._outer = []
        return stream

    def query(self) -> bool:
        return now_ns() >= self._queue.ready_ns

    def synchronize(self) -> None:
        device.wait_until(self._queue.ready_ns)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        self._queue.wait_until(stream._queue.ready_ns)

    def __enter__(self) -> Stream:
        self._outer.append(device.current_queue)
        device.set_queue(self._queue)
        return self

    def __exit__(self, *error: object) -> None:
        device.set_queue(self._outer.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._queue is self._queue

    def __hash__(self) -> int:
        return hash(self._queue)

    def __repr__(self) -> str:
        return f"<torch.simgpu.Stream id={self.stream_id}>"


class Event(GenericEvent):
    """A mark in a stream; its time is the moment at which the stream gets there."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Event:
        event = super().__new__(cls)
        event._has_timing = enable_timing
        event._reached_ns = None
        return event

    def record(self, stream: Stream | None = None) -> None:
        queue = stream._queue if stream is not None else device.current_queue
        self._reached_ns = max(now_ns(), queue.ready_ns)

    def query(self) -> bool:
        return self._reached_ns is None or now_ns() >= self._reached_ns

    def synchronize(self) -> None:
        if self._reached_ns is not None:
            device.wait_until(self._reached_ns)

    def wait(self, stream: Stream | None = None) -> None:
        """Later work of the stream starts after this event; the host goes on."""
        queue = stream._queue if stream is not None else device.current_queue
        if self._reached_ns is not None:
            queue.wait_until(self._reached_ns)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of device time from this event to the other one."""
        if not (self._has_timing and end_event._has_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._reached_ns is None or end_event._reached_ns is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("simgpu error: device not ready")
        return (end_event._reached_ns - self._reached_ns) / 1e6

    @property
    def reached_ns(self) -> int | None:
        """Host-clock moment at which the device reaches the event: for checks, no real device tells."""
        return self._reached_ns

    def __repr__(self) -> str:
        return f"<torch.simgpu.Event reached_ns={self._reached_ns}>"


def _new_queue(priority: int) -> Queue:
    return device.new_queue(priority)


def stream_of(queue: Queue) -> Stream:
    return Stream(queue=queue)


def current_stream(device_index: Any = None) -> Stream:
    return stream_of(device.current_queue)


def default_stream(device_index: Any = None) -> Stream:
    return stream_of(device.queues[0])


def set_stream(stream: Stream) -> None:
    device.set_queue(stream._queue)


class StreamContext:
    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Stream | None:
        return self.stream.__enter__() if self.stream is not None else None

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """Work inside the `with` goes to this stream."""
    return StreamContext(stream)
