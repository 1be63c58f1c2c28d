"""Holds what the probes of one process saw until a background thread writes it down.

Probes append tuples to plain queues, which costs tens of nanoseconds and no lock. The thread samples
stacks, writes the queues out twice a second and measures what it costs. Nothing here raises into the
user's program.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from whyidle.probes import process_usage
from whyidle.probes.background import BackgroundThread
from whyidle.probes.stacks import StackSampler
from whyidle.probes.thinning import Thinning
from whyidle.record import schema
from whyidle.record.writer import Writer

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

FLUSH_NS = 500_000_000
USAGE_EVERY_FLUSHES = 2
ROWS_LIMIT = 200_000  # rows that wait for a flush; beyond, the oldest go: memory stays bounded
NOTES_LIMIT = 10_000  # notes of one kind in a file
NAMES_LIMIT = 5_000
OTHER_NAME = "other"  # stands for all names past the limit

Rows = deque[tuple[int, ...]]


class Recorder:
    """One a process. Probes append to `spans`, `nexts` and `fetches`; the rest belongs to the thread."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.role = "main"
        self.spans: Rows = deque(maxlen=ROWS_LIMIT)
        self.fetches: Rows = deque(maxlen=ROWS_LIMIT)
        self.nexts: Rows = deque(maxlen=ROWS_LIMIT)
        self.read_marks: Callable[[], list[tuple[int, ...]]] | None = None
        self.training_thread = threading.main_thread().ident or 0
        self.at_end: list[Callable[[], None]] = []
        self.after_fork: list[Callable[[], None]] = []
        self._notes: deque[dict[str, Any]] = deque(maxlen=ROWS_LIMIT)
        self._names: dict[str, int] = {}
        self._reset()
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )

    def _reset(self) -> None:
        self._writer: Writer | None = None
        self._thread = BackgroundThread(self._work)
        self._flush_lock = threading.Lock()
        self._thinning = Thinning(is_worker=self.role == "worker")
        self._stacks = StackSampler(self.note, is_worker=self.role == "worker")
        self._noted: Counter[str] = Counter()
        self._next_flush_ns = 0
        self._probe_ns = 0
        self._flushes = 0
        self._has_ended = False
        self._has_started = False
        self._rests_for_fork = False
        for text, number in list(self._names.items()):  # a new file knows no names yet
            self.note("name", id=number, text=text)

    # -- for probes ---------------------------------------------------------------------------

    def note(self, kind: str, **fields: Any) -> None:
        self._noted[kind] += 1
        if self._noted[kind] <= NOTES_LIMIT:
            self._notes.append({"type": kind, **fields})

    def name(self, text: str) -> int:
        """Intern a string; the same text always gives the same number within a process."""
        number = self._names.get(text)
        if number is None:
            if len(self._names) >= NAMES_LIMIT and text != OTHER_NAME:
                return self.name(OTHER_NAME)
            number = self._names[text] = len(self._names)
            self.note("name", id=number, text=text)
        return number

    def become_worker(self) -> None:
        """This process is a loader worker: it records less, and under that role."""
        if self._has_started:  # a spawned worker has recorded its own start-up
            self._thread.stop()
            self.flush()
            self._abandon()
        self.role = "worker"
        self._reset()
        self.start()

    def start(self) -> None:
        """Begin to sample and write from now on; a second call does nothing."""
        if self._has_started or self._has_ended:
            return
        self._has_started = True
        self._next_flush_ns = time.perf_counter_ns() + FLUSH_NS
        self._thread.start()

    def end(self) -> None:
        """Write all that is left; called at the end of the process, from any thread."""
        if self._has_ended or not self._has_started:
            return
        self._has_ended = True
        if not self._thread.is_current:
            self._thread.stop()
        self.flush(is_last=True)

    # -- the thread ---------------------------------------------------------------------------

    def _work(self) -> float | None:
        if self._has_ended:
            return None
        try:
            if self._thinning.keeps:
                self._stacks.sample(self.training_thread)
            now_ns = time.perf_counter_ns()
            if now_ns >= self._next_flush_ns:
                self._next_flush_ns = now_ns + FLUSH_NS
                self.flush()
        except Exception as error:
            self.note("problem", id="probe_failed", detail=repr(error))
            return None
        return self._stacks.pause_s

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
            schema.SPAN: self._take_rows(self.spans),
            schema.NEXT: self._take_rows(self.nexts),
            schema.FETCH: self._take_rows(self.fetches),
            schema.MARK: self._marks(),
            schema.STACK: take(self._stacks.rows),
        }
        now_ns = time.perf_counter_ns()
        if is_last or self._flushes % USAGE_EVERY_FLUSHES == 1:
            if self._thread.is_current:  # at the end the caller is another thread: keep the last figure
                self._probe_ns = self._thread.used_ns()
            rows[schema.USAGE] = [process_usage.read(self._probe_ns)]
        for note in take(self._notes):
            writer.json(note)
        for table, kept in self._thinning.apply(now_ns, writer.written_bytes, rows, is_last=is_last).items():
            writer.rows(table, kept)
        if is_last:
            writer.json({"type": "end", "t_ns": now_ns, "lost_rows": writer.lost_rows})

    def _marks(self) -> list[tuple[int, ...]]:
        return self.read_marks() if self.read_marks is not None else []

    def _take_rows(self, rows: Rows) -> list[tuple[int, ...]]:
        taken = take(rows)
        if len(taken) >= ROWS_LIMIT and not self._noted["record_lost"]:
            self._noted["record_lost"] = 1
            self.note("problem", id="record_lost", detail=f"{self.role}-{os.getpid()}")
        return taken

    def _open(self) -> Writer:
        if self._writer is None:
            path = f"{self.folder}/{self.role}-{os.getpid()}"
            serial = 0
            while os.path.exists(f"{path}-{serial}.rec"):
                serial += 1
            self._writer = Writer(f"{path}-{serial}.rec", self._header())
        return self._writer

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def _header(self) -> dict[str, Any]:
        now_ns, unix_ns = time.perf_counter_ns(), time.time_ns()
        torch = sys.modules.get("torch")
        return {
            "role": self.role,
            "pid": os.getpid(),
            "parent_pid": os.getppid(),
            "main_thread": self.training_thread,
            "perf_counter_ns": now_ns,
            "unix_ns": unix_ns,
            "python": sys.version.split()[0],
            # A first import that takes long has not come to its version yet.
            "torch": None if torch is None else str(getattr(torch, "__version__", "?")),
            "argv": [str(argument) for argument in getattr(sys, "argv", [])][:20],
            "rank": _integer(os.environ.get("RANK")),
            "local_rank": _integer(os.environ.get("LOCAL_RANK")),
            "world_size": _integer(os.environ.get("WORLD_SIZE")),
        }

    # -- fork ---------------------------------------------------------------------------------

    def _before_fork(self) -> None:
        self._rests_for_fork = self._thread.is_running and not self._thread.is_current
        if self._rests_for_fork:
            self._thread.stop()

    def _after_fork_in_parent(self) -> None:
        if self._rests_for_fork and not self._has_ended:
            self._thread.start()
        self._rests_for_fork = False

    def _after_fork_in_child(self) -> None:
        """A forked child starts with an empty record and no thread; it records once a probe asks."""
        self._abandon()
        for rows in (self.spans, self.nexts, self.fetches, self._notes):
            rows.clear()
        self.role = "child"
        self.training_thread = threading.get_ident()
        self._reset()
        for forget in self.after_fork:
            forget()


def take(rows: deque[Any]) -> list[Any]:
    """Empty a queue that other threads append to, without losing what they add meanwhile."""
    return [rows.popleft() for _ in range(len(rows))]


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
