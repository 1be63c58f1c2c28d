"""Builds what tests of the analysis need: facts from plain dicts, records from a tape of calls.

A tape is one thread's day, written down in order:

    tape = Tape()
    tape.loop(100, data=20 * MS, forward=10 * MS, backward=20 * MS, optimizer=2 * MS)
    find_steps(tape.spans(), tape.ended_nexts())
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from whyidle.analysis.facts import Facts
from whyidle.analysis.stacks import Frame, Sample, Stack
from whyidle.analysis.steps import Steps, find_steps
from whyidle.analysis.timeline import Span, thread_spans
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord, Row, RunRecord

US, MS, S = 1_000, 1_000_000, 1_000_000_000
THREAD = 7
TRAINING_FORWARD = schema.FORWARD_TRAINING | schema.FORWARD_GRAD

T = TypeVar("T")

# -- facts from plain dicts -----------------------------------------------------------------------

DURATION = re.compile(r"(-?\d+(?:\.\d+)?) (s|ms|us|ns)")
UNITS_NS = {"s": S, "ms": MS, "us": US, "ns": 1}


def build(kind: type[T], data: Mapping[str, Any]) -> T:
    """A dataclass from a dict, recursively; unknown keys and wrong types fail.

    Numbers may be written as durations: "12 s", "0.4 ms". None stands for the field's default.
    """
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = set(data) - set(known)
    if unknown:
        raise KeyError(f"{kind.__name__} has no {sorted(unknown)}")
    required = {
        name for name, field in known.items() if field.default is MISSING and field.default_factory is MISSING
    }
    if required - set(data):
        raise KeyError(f"{kind.__name__} needs {sorted(required - set(data))}")
    given = {name: value for name, value in data.items() if value is not None or name in required}
    return kind(**{name: _value(hints[name], value, name) for name, value in given.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        (hint,) = (choice for choice in get_args(hint) if choice is not NoneType)
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value)
    if origin is not None and issubclass(origin, Mapping):
        known = {key: item for key, item in value.items() if item is not None}
        return {key: _value(inner[1], item, f"{name}.{key}") for key, item in known.items()}
    if origin is tuple:
        return tuple(_value(inner[0], item, name) for item in value)
    if hint in (int, float):
        value = _duration_ns(value)
        if hint is int and isinstance(value, float) and value.is_integer():
            value = int(value)
        elif hint is float and type(value) is int:
            value = float(value)
    if type(value) is not hint:
        raise TypeError(f"{name} is {value!r}, not a {hint.__name__}")
    return value


def _duration_ns(value: Any) -> Any:
    match = DURATION.fullmatch(value) if isinstance(value, str) else None
    return round(float(match[1]) * UNITS_NS[match[2]]) if match else value


def merge(base: Any, change: Any) -> Any:
    """`base` with `change` laid over it, dict by dict."""
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        return change
    return {**base, **{key: merge(base.get(key), value) for key, value in change.items()}}


def facts(**data: Any) -> Facts:
    return build(Facts, data)


# -- records from a tape --------------------------------------------------------------------------


class Tape:
    """Writes down what happens on one thread, one thing after another."""

    def __init__(self, start_ns: int = 1 * S, thread: int = THREAD) -> None:
        self.start_ns = self.now = start_ns
        self.thread = thread
        self.tables: dict[int, list[Row]] = {table: [] for table in schema.TABLES}
        self.notes: dict[str, list[dict[str, Any]]] = {}
        self._names: dict[str, int] = {}
        self._iterators = 0
        self._stacks: dict[Stack, int] = {}

    # things that happen

    def wait(self, duration_ns: int) -> None:
        """Time that no probe names."""
        self.now += duration_ns

    def call(self, kind: str, duration_ns: int, a: int = 0, b: int = 0) -> None:
        with self.inside(kind, a, b):
            self.now += duration_ns

    @contextmanager
    def inside(self, kind: str, a: int = 0, b: int = 0) -> Iterator[None]:
        """A call around what is written down within."""
        t0_ns = self.now
        yield
        self.tables[schema.SPAN].append((schema.KIND[kind], self.thread, t0_ns, self.now, a, b))

    def iterate(self, loader: int = 0, duration_ns: int = 100 * US, seed: int | None = None) -> int:
        """`iter(loader)`; the number of the new iterator."""
        self._iterators += 1
        number = self._iterators
        self.note("iterator", id=number, loader=loader, seed=seed, t_ns=self.now)
        self.call("iter", duration_ns, loader, number)
        return number

    def next(
        self,
        iterator: int,
        duration_ns: int = 1 * MS,
        *,
        ready: int = -1,
        behind: int = -1,
        cpu_ns: int = 0,
        has_ended: bool = False,
        fetch: Mapping[str, int] | None = None,
    ) -> None:
        """A batch asked of an iterator; `fetch`: made in the loop itself, with these columns."""
        t0_ns = self.now
        self.now += duration_ns
        row = (self.thread, t0_ns, self.now, iterator, ready, behind, cpu_ns, int(has_ended))
        self.tables[schema.NEXT].append(row)
        if fetch is not None:
            self.fetch(t0_ns + 10, self.now - 10, **fetch)

    def fetch(self, t0_ns: int, t1_ns: int, **columns: int) -> None:
        """A batch made; columns not given are those of ten samples that compute all the time."""
        duration_ns = t1_ns - t0_ns
        usual = {
            "cpu_ns": duration_ns,
            "run_delay_ns": 0,
            "samples": 10,
            "collate_ns": duration_ns // 100,
            "max_sample_ns": duration_ns // 10,
            "opens": 0,
            "read_bytes": 0,
        }
        row = {"thread": self.thread, "t0_ns": t0_ns, "t1_ns": t1_ns, **usual, **columns}
        self.tables[schema.FETCH].append(tuple(row[name] for name in schema.TABLES[schema.FETCH]))

    def forward(self, duration_ns: int = 10 * MS, name: str = "Net", b: int = TRAINING_FORWARD) -> None:
        self.call("forward", duration_ns, self.name(name), b)

    def evaluate(self, duration_ns: int = 10 * MS, name: str = "Net", *, trains: bool = False) -> None:
        """A forward pass under no_grad; `trains`: the module was left in training mode."""
        self.forward(duration_ns, name, schema.FORWARD_TRAINING if trains else 0)

    def train(
        self,
        forward: int = 10 * MS,
        backward: int = 20 * MS,
        optimizer: int = 2 * MS,
        number: int = 0,
        name: str = "Net",
    ) -> None:
        self.forward(forward, name)
        self.call("backward", backward)
        self.call("optimizer", optimizer, number)

    def epoch(self, steps: int, data: int = 1 * MS, loader: int = 0, gap: int = 0, **step: int) -> int:
        """An iteration over a loader with a training step for each batch."""
        iterator = self.iterate(loader)
        for _ in range(steps):
            self.next(iterator, data)
            self.train(**step)  # type: ignore[arg-type]
            self.wait(gap)
        self.next(iterator, 10 * US, has_ended=True)
        return iterator

    def validate(self, batches: int, data: int = 1 * MS, loader: int = 1, forward: int = 10 * MS) -> int:
        iterator = self.iterate(loader)
        for _ in range(batches):
            self.next(iterator, data)
            self.evaluate(forward)
        self.next(iterator, 10 * US, has_ended=True)
        return iterator

    def usage(self, **columns: int) -> None:
        row = dict.fromkeys(schema.TABLES[schema.USAGE], 0) | {"t_ns": self.now} | columns
        self.tables[schema.USAGE].append(tuple(row.values()))

    def sample(self, *frames: Frame, libraries: tuple[str, ...] = (), t_ns: int | None = None) -> None:
        """A stack sample of this thread, innermost user frame first."""
        stack = Stack(frames, libraries, "")
        number = self._stacks.setdefault(stack, len(self._stacks))
        if number == len(self.notes.get("stack", [])):
            lines = [[frame.file, frame.line, frame.function] for frame in frames]
            self.note("stack", id=number, frames=lines, libraries=list(libraries), leaf="")
        at_ns = self.now if t_ns is None else t_ns
        self.tables[schema.STACK].append((at_ns, self.thread, number, 0))

    def name(self, text: str) -> int:
        number = self._names.setdefault(text, len(self._names))
        if number == len(self.notes.get("name", [])):
            self.note("name", id=number, text=text)
        return number

    def note(self, kind: str, **values: Any) -> None:
        self.notes.setdefault(kind, []).append({"type": kind, **values})

    # what comes of it

    def record(self, role: str = "main", **header: Any) -> ProcessRecord:
        whole = {
            "role": role,
            "pid": 100,
            "main_thread": self.thread,
            "perf_counter_ns": self.start_ns,
            "torch": "2.13.0",
            "rank": None,
            **header,
        }
        return ProcessRecord(Path(f"{role}-100-0.rec"), whole, self.tables, self.notes)

    def spans(self) -> list[Span]:
        return thread_spans(self.record(), self.thread)

    def ended_nexts(self) -> frozenset[int]:
        return frozenset(row[1] for row in self.tables[schema.NEXT] if row[7])

    def steps(self) -> Steps:
        steps = find_steps(self.spans(), self.ended_nexts())
        assert steps is not None
        return steps


def run_of(*processes: ProcessRecord, **run: Any) -> RunRecord:
    """A run folder as the reader gives it."""
    return RunRecord(Path("whyidle-runs/train-1"), run, list(processes), [], [])


def sample_at(t_ns: int, *functions: str, libraries: tuple[str, ...] = ()) -> Sample:
    """A stack sample whose user frames are these functions, innermost first."""
    frames = tuple(Frame("/home/me/train.py", 10 + at, name) for at, name in enumerate(functions))
    return Sample(t_ns, THREAD, Stack(frames, libraries, ""), 0)
