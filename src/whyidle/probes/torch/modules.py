"""Times the outermost module call of the training thread: forward passes, losses and metrics."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from whyidle.probes.recorder import Recorder
from whyidle.probes.torch.call_counter import CallCounter
from whyidle.probes.wrapping import is_compiling, replace, without_own_frame
from whyidle.record import schema
from whyidle.record.schema import KIND

FORWARD, LOSS, METRICS = KIND["forward"], KIND["loss"], KIND["metrics"]
METRIC_PACKAGES = ("torchmetrics", "torcheval")


class Call:
    """The outermost call now running: read by other probes to know that a model is at work."""

    is_open = False
    wants_output = False  # the next outermost forward leaves a weak reference to what it returned
    output: Any = None
    counter = CallCounter()  # of calls between that forward and its backward


def attach(recorder: Recorder, module: ModuleType) -> None:
    append = recorder.spans.append
    kinds: dict[type, tuple[int, int]] = {}
    grad_enabled: list[Any] = []

    def kind_of(class_: type) -> tuple[int, int]:
        torch = sys.modules["torch"]
        if not grad_enabled:
            grad_enabled.append(torch.is_grad_enabled)
        losses = sys.modules.get("torch.nn.modules.loss")
        kind = FORWARD
        if class_.__module__.split(".")[0] in METRIC_PACKAGES:
            kind = METRICS
        elif (losses is not None and issubclass(class_, losses._Loss)) or "loss" in class_.__name__.lower() or "criterion" in class_.__name__.lower():
            kind = LOSS
        known = kinds[class_] = (kind, recorder.name(class_.__name__))
        return known

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if Call.is_open or is_compiling() or get_ident() != recorder.training_thread:
                return original(self, *args, **kwargs)
            class_ = type(self)
            kind, name = kinds.get(class_) or kind_of(class_)
            Call.is_open = True
            if Call.counter.is_counting:
                Call.counter.stop()
            t0_ns = perf_counter_ns()
            try:
                result = original(self, *args, **kwargs)
                if Call.wants_output and kind == FORWARD:
                    Call.output = _weak(result)
                return result
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                t1_ns = perf_counter_ns()
                Call.is_open = False
                bits = schema.FORWARD_TRAINING if self.training else 0
                if grad_enabled[0]():
                    bits |= schema.FORWARD_GRAD
                append((kind, recorder.training_thread, t0_ns, t1_ns, name, bits))
                if Call.wants_output and kind == FORWARD:
                    Call.counter.start()

        __call__.whyidle_original = original  # type: ignore[attr-defined]
        return __call__

    def forget() -> None:
        Call.is_open = False

    recorder.after_fork.append(forget)
    replace(module.Module, "__call__", wrap)


def _weak(result: Any) -> Any:
    """A weak reference to the first tensor of a module's output; None where there is none."""
    if isinstance(result, (tuple, list)) and result:
        result = result[0]
    return weakref.ref(result) if hasattr(result, "grad_fn") else None
