"""Times copies to the device and reads back from it. Tensors that live on the host pass straight through.

The methods are intercepted where they are looked up, not where they are called: torch's warnings and
traces name the frame that calls into it, and `torch.Tensor.to` itself must stay the function that
tensor subclasses compare theirs with.
"""

from __future__ import annotations

import functools
from _thread import get_ident
from collections.abc import Callable
from time import perf_counter_ns
from types import MethodType, ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import (
    Marks,
    is_compiling,
    learn_compiling,
    replace_timed,
    stand_in,
    without_own_frame,
)
from whyidle.record import schema
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

COPY, SYNC = KIND["copy"], KIND["sync"]
READS = ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__", "__index__")


def attach(recorder: Recorder, torch: ModuleType) -> None:
    learn_compiling(torch.compiler.is_compiling)
    for method in ("to", "cuda"):
        _intercept(torch.Tensor, method, Copying(recorder, torch, getattr(torch.Tensor, method)))
    for method in READS:
        _intercept(torch.Tensor, method, Reading(recorder, torch, getattr(torch.Tensor, method)))
    replace_timed(recorder, torch.cuda, "synchronize", "sync", recorder.name("synchronize"))
    replace_timed(recorder, torch.cuda, "empty_cache", "empty_cache")
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        replace_timed(recorder, accelerator, "synchronize", "sync", recorder.name("synchronize"))
        replace_timed(recorder, accelerator, "empty_cache", "empty_cache")


def _intercept(class_: Any, method: str, interceptor: Any) -> None:
    setattr(class_, method, interceptor)


class Reading:
    """Stands for a method of Tensor that brings a value to the host."""

    def __init__(self, recorder: Recorder, torch: ModuleType, original: Any) -> None:
        self.whyidle_original = original
        self._bind = original.__get__
        self._is_overridden = torch.overrides.has_torch_function_unary
        self._append = recorder.spans.append
        self._name = recorder.name(original.__name__)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        call = self._bind(tensor, owner)
        if tensor is None or self._is_overridden(tensor) or tensor.is_cpu or is_compiling():
            return call
        timed_call = _TimedCall(call)
        timed_call.begin(self._append, self._name)
        return timed_call


class _TimedCall(functools.partial):  # type: ignore[type-arg]
    """A bound method whose span ends when the caller lets go of it: right after the call."""

    def begin(self, append: Callable[[tuple[int, ...]], None], name: int) -> None:
        self._append = append
        self._name = name
        if Marks.mark is not None:
            Marks.mark()
        self._t0_ns = perf_counter_ns()

    def __del__(self) -> None:
        self._append((SYNC, get_ident(), self._t0_ns, perf_counter_ns(), self._name, 0))
        if Marks.mark is not None:
            Marks.mark()


class Copying:
    """Stands for a method of Tensor that may bring it to the device."""

    def __init__(self, recorder: Recorder, torch: ModuleType, original: Any) -> None:
        self.whyidle_original = original
        self._bind = original.__get__
        self._is_overridden = torch.overrides.has_torch_function_unary
        self._is_possible = _device_check(torch)
        self._timed = _copy(recorder, original)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if (
            tensor is None
            or not self._is_possible()
            or self._is_overridden(tensor)
            or not tensor.is_cpu
            or tensor.is_complex()  # torch warns about lost imaginary parts, and names the calling frame
            or is_compiling()
        ):
            return self._bind(tensor, owner)
        return MethodType(self._timed, tensor)


def _device_check(torch: ModuleType) -> Callable[[], bool]:
    """Whether there can be a device at all; asking torch for one would initialise it."""
    version = torch.version
    if any(getattr(version, backend, None) for backend in ("cuda", "hip", "xpu")):
        return lambda: True
    if torch.backends.mps.is_built():
        return lambda: True
    backend_name = torch._C._get_privateuse1_backend_name
    return lambda: bool(backend_name() != "privateuseone")


def _copy(recorder: Recorder, original: Any) -> Any:
    append = recorder.spans.append

    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if Marks.mark is not None:
            Marks.mark()
        t0_ns = perf_counter_ns()
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            without_own_frame(error)
            raise
        if not result.is_cpu:
            bits = schema.COPY_PINNED if self.is_pinned() else 0
            if kwargs.get("non_blocking") or any(argument is True for argument in args):
                bits |= schema.COPY_NON_BLOCKING
            append((COPY, get_ident(), t0_ns, perf_counter_ns(), self.nbytes, bits))
            if Marks.mark is not None:
                Marks.mark()
        return result

    return stand_in(copy, original)
