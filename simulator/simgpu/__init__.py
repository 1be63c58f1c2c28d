"""A simulated GPU for PyTorch: `import simgpu` gives `torch.device("simgpu")`, on any CPU build of torch.

Values are the CPU's; time is virtual, on the host's clock. See simulator/README.md for the model.
"""

from __future__ import annotations

from . import backend
from .clock import now_ns
from .device import Counters, Kernel, device
from .intervals import Interval, clip, gaps, total_ns, union
from .publish import publish
from .streams import Event, Stream, stream

__all__ = [
    "Counters",
    "Event",
    "Interval",
    "Kernel",
    "Stream",
    "bubbles",
    "busy",
    "busy_ns",
    "configure",
    "counters",
    "forget",
    "idle_ns",
    "kernels",
    "now_ns",
    "publish",
    "stream",
    "synchronize",
    "truth",
]

backend.register()


def configure(*, keep_kernels: bool | None = None, **rates: float) -> None:
    """Set rates of the cost model (`CostModel` has them all); `keep_kernels` keeps a list of every kernel."""
    for name, value in rates.items():
        if not hasattr(device.cost, name):
            known = ", ".join(vars(device.cost))
            raise TypeError(f"simgpu.configure() got an unexpected rate '{name}'; known: {known}")
        setattr(device.cost, name, int(value) if name == "memory_bytes" else value)
    if keep_kernels is not None:
        device.kernels = [] if keep_kernels else None


def busy(ms: float, name: str = "busy") -> None:
    """Enqueue a kernel of this device time on the current stream; returns at once."""
    device.counters.kernels_count += 1
    device.enqueue(name, round(ms * 1e6))


def synchronize() -> None:
    device.synchronize()


def truth(start_ns: int = 0, end_ns: int | None = None) -> list[Interval]:
    """Intervals in which any stream was busy, up to now (or `end_ns`): host-clock ns, sorted, disjoint."""
    return clip(union(device.busy_since(start_ns)), start_ns, now_ns() if end_ns is None else end_ns)


def bubbles(start_ns: int, end_ns: int) -> list[Interval]:
    """Intervals of the window in which the whole device stood idle."""
    return gaps(union(device.busy_since(start_ns)), start_ns, end_ns)


def busy_ns(start_ns: int, end_ns: int) -> int:
    return total_ns(truth(start_ns, end_ns))


def idle_ns(start_ns: int, end_ns: int) -> int:
    return end_ns - start_ns - busy_ns(start_ns, end_ns)


def counters() -> Counters:
    """Launches, copies and waits since the last `forget`; a live object."""
    return device.counters


def kernels() -> list[Kernel]:
    """Every kernel since `configure(keep_kernels=True)` or the last `forget`."""
    return list(device.kernels or [])


def forget() -> None:
    """Start new books: truth, kernels, counters, memory peaks."""
    device.forget()
