"""Times the outermost module call of the training thread: forward passes, losses and metrics."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.torch.call_counter import CallCounter
from whyidle.probes.wrapping import Marks, is_compiling, replace, stand_in, without_own_frame
from whyidle.record.schema import FORWARD_GRAD, FORWARD_TRAINING, KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

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
    kinds: dict[int, tuple[int, int]] = {}  # by the class's id: to hold a class is to hold its whole module
    watched: dict[int, weakref.ref[type]] = {}
    grad_enabled: list[Any] = []

    def learn_kind(class_: type) -> tuple[int, int]:
        if not grad_enabled:
            grad_enabled.append(sys.modules["torch"].is_grad_enabled)
        key = id(class_)

        def forget_class(reference: Any) -> None:
            kinds.pop(key, None)
            watched.pop(key, None)

        watched[key] = weakref.ref(class_, forget_class)
        known = kinds[key] = (_kind(class_), recorder.name(class_.__name__))
        return known

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if Call.is_open or is_compiling() or get_ident() != recorder.training_thread:
                try:
                    return original(self, *args, **kwargs)
                except BaseException as error:
                    without_own_frame(error)
                    raise
            class_ = type(self)
            kind, name = kinds.get(id(class_)) or learn_kind(class_)
            Call.is_open = True
            if Call.counter.is_counting:
                Call.counter.stop()
            if Marks.mark is not None:
                Marks.mark("forward" if kind == FORWARD else "")
            t0_ns = perf_counter_ns()
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                t1_ns = perf_counter_ns()
                Call.is_open = False
                # Not `self.training`: a module whose __init__ never ran has none and fails in its own way.
                bits = FORWARD_TRAINING if self.__dict__.get("training", True) is not False else 0
                if grad_enabled[0]():
                    bits |= FORWARD_GRAD
                append((kind, recorder.training_thread, t0_ns, t1_ns, name, bits))
                if Marks.mark is not None:
                    Marks.mark()
            if Call.wants_output and kind == FORWARD:
                Call.output = _weak(result)
                Call.counter.start()
            return result

        return stand_in(__call__, original)

    def forget() -> None:
        Call.is_open = False

    recorder.after_fork.append(forget)
    replace(module.Module, "__call__", wrap)


def _weak(result: Any) -> Any:
    """A weak reference to the first tensor of a module's output; None where there is none."""
    if type(result) in (tuple, list) and result:
        result = result[0]
    return weakref.ref(result) if isinstance(result, sys.modules["torch"].Tensor) else None


def _kind(class_: type) -> int:
    losses = sys.modules.get("torch.nn.modules.loss")
    name = class_.__name__.lower()
    if str(class_.__module__).partition(".")[0] in METRIC_PACKAGES:
        return METRICS
    if losses is not None and issubclass(class_, losses._Loss):
        return LOSS
    return LOSS if "loss" in name or "criterion" in name else FORWARD
