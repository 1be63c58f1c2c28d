"""Times copies to the device and reads back from it. Tensors that live on the host pass straight through."""

from __future__ import annotations

import functools
from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import (
    is_compiling,
    learn_compiling,
    replace,
    replace_timed,
    without_own_frame,
)
from whyidle.record import schema
from whyidle.record.schema import KIND

COPY, SYNC = KIND["copy"], KIND["sync"]
READS = ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__", "__index__")


def attach(recorder: Recorder, torch: ModuleType) -> None:
    learn_compiling(torch.compiler.is_compiling)
    tensor = torch.Tensor
    for method in ("to", "cuda"):
        replace(tensor, method, lambda original: _copy(recorder, original))
    for method in READS:
        replace(tensor, method, lambda original: _read(recorder, original))
    replace_timed(recorder, torch.cuda, "synchronize", "sync", recorder.name("synchronize"))
    replace_timed(recorder, torch.cuda, "empty_cache", "empty_cache")
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        replace_timed(recorder, accelerator, "synchronize", "sync", recorder.name("synchronize"))
        replace_timed(recorder, accelerator, "empty_cache", "empty_cache")


def _copy(recorder: Recorder, original: Any) -> Any:
    append = recorder.spans.append

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not self.is_cpu:
            return original(self, *args, **kwargs)
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
        return result

    copy.whyidle_original = original  # type: ignore[attr-defined]
    return copy


def _read(recorder: Recorder, original: Any) -> Any:
    append = recorder.spans.append
    name = recorder.name(original.__name__)

    @functools.wraps(original)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or self.is_cpu:
            return original(self, *args, **kwargs)
        t0_ns = perf_counter_ns()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            append((SYNC, get_ident(), t0_ns, perf_counter_ns(), name, 0))

    read.whyidle_original = original  # type: ignore[attr-defined]
    return read
