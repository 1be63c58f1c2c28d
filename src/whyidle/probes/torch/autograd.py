"""Times backward passes and reads the debug switches that are on during them."""

from __future__ import annotations

import sys
from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from whyidle.probes.recorder import Recorder
from whyidle.probes.torch import flags
from whyidle.probes.wrapping import is_compiling, replace, without_own_frame
from whyidle.record.schema import KIND

BACKWARD = KIND["backward"]


def attach(recorder: Recorder, module: ModuleType) -> None:
    append = recorder.spans.append
    read_flags: list[Any] = []

    def wrap(original: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            if not read_flags:
                read_flags.append(flags.reader(sys.modules["torch"]))
            on = read_flags[0]()
            t0_ns = perf_counter_ns()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                append((BACKWARD, get_ident(), t0_ns, perf_counter_ns(), 0, on))

        backward.__name__ = original.__name__
        backward.__qualname__ = original.__qualname__
        backward.__module__ = original.__module__
        backward.__doc__ = original.__doc__
        backward.__wrapped__ = original  # type: ignore[attr-defined]
        backward.whyidle_original = original  # type: ignore[attr-defined]
        return backward

    replace(module, "backward", wrap)
    replace(module, "grad", wrap)
