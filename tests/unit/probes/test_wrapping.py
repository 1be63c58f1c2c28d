"""A wrapper is its original to whoever looks: name, signature, traceback, stack, result, error."""

from __future__ import annotations

import functools
import inspect
import logging
import pickle
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from whyidle.probes import wrapping
from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace, replace_timed, timed
from whyidle.record.schema import KIND


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(str(tmp_path))


def double(number: int, *, twice: bool = False) -> int:
    """Double it."""
    return number * (4 if twice else 2)


def fail(number: int) -> int:
    return number // 0


def test_it_gives_what_the_original_gives_and_leaves_a_span(recorder: Recorder) -> None:
    wrapped = timed(recorder, "sync", double, 7, 8)
    assert wrapped(3, twice=True) == 12
    ((kind, _, t0_ns, t1_ns, a, b),) = recorder.spans
    assert (kind, a, b) == (KIND["sync"], 7, 8)
    assert t1_ns >= t0_ns


def test_it_looks_like_the_original(recorder: Recorder) -> None:
    wrapped = timed(recorder, "sync", double)
    assert inspect.signature(wrapped) == inspect.signature(double)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(wrapped, name) == getattr(double, name)
    assert wrapped.__code__.co_filename == double.__code__.co_filename
    assert wrapped.__code__.co_name == "double"


def test_it_is_pickled_by_name(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "double", timed(recorder, "sync", double))
    assert pickle.loads(pickle.dumps(module.double)) is module.double


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="3.10 cannot take a frame out of a traceback that is raised on"
)
@pytest.mark.parametrize("depth", [1, 3])
def test_errors_carry_no_frame_of_ours(recorder: Recorder, depth: int) -> None:
    wrapped: Any = fail
    for _ in range(depth):
        wrapped = timed(recorder, "sync", wrapped)
    with pytest.raises(ZeroDivisionError) as caught:
        wrapped(1)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_errors_carry_no_frame_of_ours", "fail"]
    assert len(recorder.spans) == depth


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit])
def test_every_kind_of_error_passes(recorder: Recorder, error: type[BaseException]) -> None:
    def raises() -> None:
        raise error

    with pytest.raises(error):
        timed(recorder, "sync", raises)()
    assert len(recorder.spans) == 1


def test_a_tracing_compiler_sees_the_original_only(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrapping._Compiling, "check", staticmethod(lambda: True))
    assert timed(recorder, "sync", double)(1) == 2
    assert not recorder.spans


def test_builtins_and_methods_can_be_wrapped(recorder: Recorder) -> None:
    wrapped = timed(recorder, "print", len)
    assert wrapped([1, 2]) == 2
    assert inspect.signature(wrapped) == inspect.signature(len)

    class Owner:
        def method(self) -> Any:
            return self

    replace_timed(recorder, Owner, "method", "sync")
    owner = Owner()
    assert owner.method() is owner


def test_replace_is_done_once_and_only_where_there_is_something(recorder: Recorder) -> None:
    owner = SimpleNamespace(function=double)
    replace_timed(recorder, owner, "function", "sync")
    first = owner.function
    replace_timed(recorder, owner, "function", "sync")
    replace(owner, "missing", lambda original: pytest.fail("called"))
    assert owner.function is first
    assert first.whyidle_original is double
    assert not hasattr(owner, "missing")


def test_logging_finds_the_line_that_logs(recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("test-wrapping")

    class Logger(type(logger)):  # type: ignore[misc]
        handle = timed(recorder, "log", logging.Logger.handle)

    Logger("mine").warning("here", stacklevel=1)
    watched = Logger("mine")
    watched.addHandler(caplog.handler)
    watched.warning("there")
    assert caplog.records[-1].funcName == "test_logging_finds_the_line_that_logs"


def test_a_compiler_learns_all_code_of_ours_and_none_of_theirs(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrapping._StandIns, "skip", None)
    before = timed(recorder, "sync", double)
    skipped: list[Any] = []
    wrapping.learn_skip(skipped.append)
    after = timed(recorder, "sync", functools.partial(double))
    assert {before.__code__, after.__code__, Recorder.name.__code__, wrapping.is_compiling.__code__} <= set(
        skipped
    )
    assert double.__code__ not in skipped
    foreign = {code.co_filename for code in skipped} - {__file__}
    assert not any("tests" in name for name in foreign)
