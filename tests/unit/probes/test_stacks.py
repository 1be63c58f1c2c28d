"""The sampler names the user's line, and keeps nothing alive."""

from __future__ import annotations

import json
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whyidle.probes import stacks
from whyidle.probes.stacks import StackSampler, is_user_file, package_of

SITE = str(Path(json.__file__).parent.parent / "site-packages")


@pytest.mark.parametrize(
    ("filename", "is_user", "package"),
    [
        ("/home/me/train.py", True, ""),
        (json.__file__, False, "json"),
        (threading.__file__, False, "threading"),
        (f"{SITE}/torch/nn/modules/module.py", False, "torch"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False, "numpy"),
        (f"{SITE}/six.py", False, "six"),
        ("<frozen importlib._bootstrap>", False, "frozen importlib"),
        ("<string>", False, ""),
        (stacks.__file__, False, ""),
    ],
)
def test_whose_file(filename: str, is_user: bool, package: str) -> None:
    assert is_user_file(filename) is is_user
    assert package_of(filename) == package


class Sampled:
    """Samples this thread from another while `function` waits."""

    def __init__(self, function: Callable[[threading.Event], Any]) -> None:
        self.notes: list[dict[str, Any]] = []
        self.sampler = StackSampler(lambda kind, **fields: self.notes.append({"type": kind, **fields}))
        ready, done = threading.Event(), threading.Event()

        def sample() -> None:
            ready.wait(5)
            for _ in range(3):
                self.sampler.sample(thread)
            done.set()

        thread = threading.get_ident()
        other = threading.Thread(target=sample)
        other.start()
        ready.set()
        function(done)
        other.join()


def wait_inside(done: threading.Event) -> None:
    done.wait(5)


def test_it_names_the_innermost_line_of_the_user() -> None:
    sampled = Sampled(wait_inside)
    threads = {row[1] for row in sampled.sampler.rows}
    assert threads == {threading.get_ident()}
    note = sampled.notes[-1]
    (file, line, function), *outer = note["frames"]
    assert (Path(file), function) == (Path(__file__), "wait_inside")
    assert line == wait_inside.__code__.co_firstlineno + 1
    assert outer[0][2] == "__init__"
    assert note["libraries"] == ("threading",)
    assert note["leaf"] == "wait"


def test_the_same_stack_is_noted_once() -> None:
    sampled = Sampled(wait_inside)
    keys = [json.dumps(note["frames"]) + note["leaf"] + str(note["libraries"]) for note in sampled.notes]
    assert len(keys) == len(set(keys))
    assert {row[2] for row in sampled.sampler.rows} == {note["id"] for note in sampled.notes}


def test_locals_of_sampled_frames_are_released() -> None:
    class Thing:
        pass

    references = []

    def hold(done: threading.Event) -> None:
        thing = Thing()
        references.append(weakref.ref(thing))
        done.wait(5)

    sampled = Sampled(hold)
    assert references[0]() is None
    assert sampled.sampler.rows


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "STACKS_LIMIT", 3)
    monkeypatch.setattr(stacks, "CODES_LIMIT", 5)
    sampler = StackSampler(lambda kind, **fields: None)
    frame = sys._getframe()
    numbers = set()
    for number in range(40):
        space: dict[str, Any] = {"sys": sys}
        exec(compile("def f(): return sys._getframe()", f"/home/me/made_{number}.py", "exec"), space)
        numbers.add(sampler._stack(space["f"]())[0])
    assert frame is not None
    assert numbers == {0, 1, 2, -1}
    assert len(sampler._files) <= 5


def test_it_samples_less_often_where_it_costs_much() -> None:
    sampler = StackSampler(lambda kind, **fields: None)
    usual_s = sampler.pause_s
    for _ in range(200):
        sampler._adapt(10_000_000)
    assert 0.15 < sampler.pause_s < 0.25
    for _ in range(500):
        sampler._adapt(10_000)
    assert sampler.pause_s == pytest.approx(usual_s, rel=0.02)
