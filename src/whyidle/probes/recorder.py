"""Holds what the probes of one process saw until a background thread writes it down.

Probes append tuples to plain lists, which costs tens of nanoseconds and no lock. The thread samples
stacks, writes the lists out twice a second and measures what it costs. Nothing here raises into the
user's program.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from whyidle.probes import process_usage
from whyidle.probes.stacks import StackSampler
from whyidle.probes.thinning import Thinning
from whyidle.record import schema
from whyidle.record.writer import Writer

FLUSH_NS = 500_000_000
USAGE_EVERY_FLUSHES = 2


class Recorder:
    """One a process. `spans` and `fetches` are appended to by probes; the rest belongs to the thread."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.role = "main"
        self.spans: list[tuple[int, ...]] = []
        self.fetches: list[tuple[int, ...]] = []
        self.nexts: list[tuple[int, ...]] = []
        self.training_thread = threading.main_thread().ident or 0
        self.at_end: list[Callable[[], None]] = []
        self.after_fork: list[Callable[[], None]] = []
        self._notes: list[dict[str, Any]] = []
        self._names: dict[str, int] = {}
        self._reset()
        os.register_at_fork(after_in_child=self._after_fork)

    def _reset(self) -> None:
        self._writer: Writer | None = None
        self._thread: threading.Thread | None = None
        self._flush_lock = threading.Lock()
        self._thinning = Thinning(is_worker=self.role == "worker")
        self._stacks = StackSampler(self.note, is_worker=self.role == "worker")
        self._probe_ns = 0
        self._flushes = 0
        self._has_ended = False
        self._is_wanted = False
        for text, number in self._names.items():  # a new file knows no names yet
            self.note("name", id=number, text=text)

    # -- for probes ---------------------------------------------------------------------------

    def note(self, kind: str, **fields: Any) -> None:
        self._notes.append({"type": kind, **fields})

    def name(self, text: str) -> int:
        """Intern a string; the same text always gives the same number within a process."""
        number = self._names.get(text)
        if number is None:
            number = self._names[text] = len(self._names)
            self.note("name", id=number, text=text)
        return number

    def become_worker(self) -> None:
        """This process is a loader worker: it records less, and under that role."""
        if self._thread is not None:  # a spawned worker has recorded its own start-up
            self.flush()
        self.role = "worker"
        self._reset()
        self.start()

    def start(self) -> None:
        """Begin to sample and write from now on; a second call does nothing."""
        self._is_wanted = True
        if self._thread is None and not self._has_ended:
            self._thread = threading.Thread(target=self._run, name="whyidle", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no more threads, or the interpreter is on its way out
                self._thread = None

    def end(self) -> None:
        """Write all that is left; called at the end of the process, from any thread."""
        if self._has_ended or not (self._is_wanted or self.spans or self.fetches):
            return
        self._has_ended = True
        self.flush(is_last=True)

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        next_flush_ns = time.perf_counter_ns() + FLUSH_NS
        while not self._has_ended and self._thread is threading.current_thread():
            try:
                time.sleep(self._stacks.pause_s)
                if self._thinning.keeps:
                    self._stacks.sample(self.training_thread)
                if time.perf_counter_ns() >= next_flush_ns:
                    next_flush_ns = time.perf_counter_ns() + FLUSH_NS
                    self.flush()
            except Exception as error:
                self.note("problem", id="probe_failed", detail=repr(error))
                return

    def flush(self, *, is_last: bool = False) -> None:
        if not self._flush_lock.acquire(timeout=1.0):
            return
        try:
            self._flush(is_last)
        except Exception:  # a record that cannot be written must not end the user's run
            pass
        finally:
            self._flush_lock.release()

    def _flush(self, is_last: bool) -> None:
        writer = self._open()
        self._flushes += 1
        for call in self.at_end if is_last else ():
            call()
        rows = {
            schema.SPAN: take(self.spans),
            schema.NEXT: take(self.nexts),
            schema.FETCH: take(self.fetches),
            schema.STACK: take(self._stacks.rows),
        }
        notes = take(self._notes)
        for note in notes:
            writer.json(note)
        now_ns = time.perf_counter_ns()
        rows = self._thinning.apply(now_ns, writer.written_bytes, rows)
        for table, kept in rows.items():
            writer.rows(table, kept)
        if is_last or self._flushes % USAGE_EVERY_FLUSHES == 1:
            # Right for the thread itself; at the end the caller is another thread, so keep the last figure.
            if threading.current_thread() is self._thread:
                self._probe_ns = time.thread_time_ns()
            writer.rows(schema.USAGE, [process_usage.read(self._probe_ns)])
        if is_last:
            writer.json({"type": "end", "t_ns": now_ns, "lost_rows": writer.lost_rows})

    def _open(self) -> Writer:
        if self._writer is None:
            path = f"{self.folder}/{self.role}-{os.getpid()}"
            serial = 0
            while os.path.exists(f"{path}-{serial}.rec"):
                serial += 1
            self._writer = Writer(f"{path}-{serial}.rec", self._header())
        return self._writer

    def _header(self) -> dict[str, Any]:
        now_ns, unix_ns = time.perf_counter_ns(), time.time_ns()
        return {
            "role": self.role,
            "pid": os.getpid(),
            "parent_pid": os.getppid(),
            "main_thread": self.training_thread,
            "perf_counter_ns": now_ns,
            "unix_ns": unix_ns,
            "python": sys.version.split()[0],
            "torch": getattr(sys.modules.get("torch"), "__version__", None),
            "argv": [str(argument) for argument in getattr(sys, "argv", [])][:20],
            "rank": _integer(os.environ.get("RANK")),
            "local_rank": _integer(os.environ.get("LOCAL_RANK")),
            "world_size": _integer(os.environ.get("WORLD_SIZE")),
        }

    # -- fork ---------------------------------------------------------------------------------

    def _after_fork(self) -> None:
        """A forked child starts with an empty record and no thread; it records once a probe asks."""
        if self._writer is not None:
            self._writer.abandon()
        del self.spans[:], self.nexts[:], self.fetches[:], self._notes[:]
        self.role = "child"
        self.training_thread = threading.get_ident()
        self._reset()
        for forget in self.after_fork:
            forget()


def take(rows: list[Any]) -> list[Any]:
    """Empty a list that other threads append to, without losing what they add meanwhile."""
    count = len(rows)
    taken = rows[:count]
    del rows[:count]
    return taken


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
