"""Puts a timed function in the place of another, so that nobody but the record notices.

A wrapper takes its own frame out of tracebacks; keeps the name, signature and source file of what it
stands for, since programs that walk the stack (logging, for one) go by them; and steps aside while
torch.compile traces, for a clock inside a compiled region would break its graph.
"""

from __future__ import annotations

import functools
import sys
from _thread import get_ident
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from types import CodeType, FunctionType

from whyidle.probes.recorder import Recorder
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any


def _never() -> bool:
    return False


class _Compiling:
    """`is_compiling()` of torch once torch is there; cheap before."""

    check: Callable[[], bool] = staticmethod(_never)


class _StandIns:
    """The code of every wrapper, for torch.compile to step over."""

    codes: list[CodeType] = []  # noqa: RUF012
    skip: Callable[[CodeType], None] | None = None


class Marks:
    """Marks the edges of spans on the device's queue, once the job is known to train on a device."""

    mark: Callable[..., None] | None = None  # called with the name of the phase that begins, if it launches


def learn_compiling(check: Callable[[], bool]) -> None:
    _Compiling.check = staticmethod(check)


def learn_skip(skip: Callable[[CodeType], None]) -> None:
    """From now on `skip` is told of all code that is whyidle's and of none that it stands for."""
    _StandIns.skip = skip
    for code in [*_StandIns.codes, *_own_codes()]:
        skip(code)


def is_compiling() -> bool:
    return "torch" in sys.modules and _Compiling.check()


def without_own_frame(error: BaseException) -> None:
    """Drop the outermost traceback entry, which is the calling wrapper's.

    Python 3.10 keeps the entry nevertheless: its `raise` does not look at the exception again.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


def stand_in(wrapper: Any, original: Any) -> Any:
    """The wrapper, looking like the original to whoever inspects it or finds it on the stack."""
    functools.update_wrapper(wrapper, original)
    code = getattr(original, "__code__", None)
    if isinstance(code, CodeType):
        wrapper.__code__ = wrapper.__code__.replace(co_filename=code.co_filename, co_name=code.co_name)
    wrapper.whyidle_original = original
    _StandIns.codes.append(wrapper.__code__)
    if _StandIns.skip is not None:
        _StandIns.skip(wrapper.__code__)
    return wrapper


def timed(recorder: Recorder, kind: str, function: Callable[..., Any], a: int = 0, b: int = 0) -> Any:
    """The function, leaving one span of `kind` for each call."""
    append = recorder.spans.append
    number = KIND[kind]

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if _Compiling.check():
            return function(*args, **kwargs)
        if Marks.mark is not None:
            Marks.mark()
        t0_ns = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            append((number, get_ident(), t0_ns, perf_counter_ns(), a, b))
            if Marks.mark is not None:
                Marks.mark()

    return stand_in(wrapper, function)


def replace(owner: Any, attribute: str, wrap: Callable[[Any], Any]) -> None:
    """Put `wrap(original)` in the place of `owner.attribute`, if it is there and not yet replaced."""
    original = getattr(owner, attribute, None)
    if original is None or hasattr(original, "whyidle_original"):
        return
    setattr(owner, attribute, wrap(original))


def replace_timed(recorder: Recorder, owner: Any, attribute: str, kind: str, a: int = 0, b: int = 0) -> None:
    replace(owner, attribute, lambda original: timed(recorder, kind, original, a, b))


def _own_codes() -> Iterator[CodeType]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "whyidle" and module is not None:
            for value in list(vars(module).values()):
                yield from _codes_of(value, name)


def _codes_of(value: Any, module_name: str) -> Iterator[CodeType]:
    if getattr(value, "__module__", None) != module_name:
        return
    if isinstance(value, FunctionType):
        yield from _with_inner(value.__code__)
    elif isinstance(value, type):
        for member in vars(value).values():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType):
                yield from _with_inner(function.__code__)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
