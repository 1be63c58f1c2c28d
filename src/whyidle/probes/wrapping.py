"""Puts a timed function in the place of another, so that nobody but the record notices.

A wrapper takes its own frame out of tracebacks, keeps the name and signature of what it stands for,
and steps aside while torch.compile traces (a clock inside a compiled region would break its graph).
"""

from __future__ import annotations

import functools
import sys
from _thread import get_ident
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from whyidle.probes.recorder import Recorder
from whyidle.record.schema import KIND


def _never() -> bool:
    return False


class _Compiling:
    """`is_compiling()` of torch once torch is there; cheap before."""

    check: Callable[[], bool] = staticmethod(_never)


def learn_compiling(check: Callable[[], bool]) -> None:
    _Compiling.check = staticmethod(check)


def is_compiling() -> bool:
    return "torch" in sys.modules and _Compiling.check()


def without_own_frame(error: BaseException) -> None:
    """Drop the innermost-but-one traceback entry, which is the calling wrapper's."""
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


def timed(recorder: Recorder, kind: str, function: Callable[..., Any], a: int = 0, b: int = 0) -> Any:
    """The function, leaving one span of `kind` for each call."""
    append = recorder.spans.append
    number = KIND[kind]

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if _Compiling.check():
            return function(*args, **kwargs)
        t0_ns = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            append((number, get_ident(), t0_ns, perf_counter_ns(), a, b))

    wrapper.whyidle_original = function  # type: ignore[attr-defined]
    return wrapper


def replace(owner: Any, attribute: str, wrap: Callable[[Any], Any]) -> None:
    """Put `wrap(original)` in the place of `owner.attribute`, if it is there and not yet replaced."""
    original = getattr(owner, attribute, None)
    if original is None or hasattr(original, "whyidle_original"):
        return
    setattr(owner, attribute, wrap(original))


def replace_timed(recorder: Recorder, owner: Any, attribute: str, kind: str, a: int = 0, b: int = 0) -> None:
    replace(owner, attribute, lambda original: timed(recorder, kind, original, a, b))
