"""A thread of whyidle's own inside the user's process, kept out of the user's way.

It does not appear among `threading`'s threads (the program may count or trace those), and takes no
signal (the program may wait for one that the kernel would else hand to this thread). It rests while
the process forks: Python warns about forks beside threads, and with reason.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import os
import time
from collections.abc import Callable

STOP_WAIT_S = 0.2
_ALL_SIGNALS = _signal.valid_signals()


class BackgroundThread:
    def __init__(self, work: Callable[[], float | None]) -> None:
        """`work` is called again and again; it returns the seconds to rest, None to end."""
        self._work = work
        self._stop: _thread.LockType | None = None
        self._done: _thread.LockType | None = None
        self._ident = self._native_id = 0
        self._past_ns = 0

    @property
    def is_running(self) -> bool:
        return self._done is not None and self._done.locked()

    @property
    def is_current(self) -> bool:
        return self._ident == _thread.get_ident()

    def used_ns(self) -> int:
        """CPU time so far; only the thread itself can tell."""
        return self._past_ns + time.thread_time_ns()

    def start(self) -> None:
        """Does nothing where there can be no more threads."""
        stop, done = _thread.allocate_lock(), _thread.allocate_lock()
        stop.acquire()
        done.acquire()
        self._stop, self._done = stop, done
        signals = _signal.pthread_sigmask(_signal.SIG_BLOCK, _ALL_SIGNALS)
        try:
            _thread.start_new_thread(self._run, (stop, done))
        except RuntimeError:
            done.release()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, signals)

    def stop(self) -> None:
        """End the thread and wait until it is gone, but not for long."""
        stop, done = self._stop, self._done
        if stop is None or done is None or not stop.locked():
            return
        stop.release()
        if done.acquire(timeout=STOP_WAIT_S):
            done.release()
            _wait_until_gone(self._native_id)

    def _run(self, stop: _thread.LockType, done: _thread.LockType) -> None:
        self._ident, self._native_id = _thread.get_ident(), _thread.get_native_id()
        try:
            rest_s = self._work()
            while rest_s is not None and not stop.acquire(timeout=rest_s):
                rest_s = self._work()
        finally:
            self._past_ns += time.thread_time_ns()
            self._ident = 0
            done.release()


def _wait_until_gone(native_id: int) -> None:
    """The kernel still counts a thread for some microseconds after its last Python instruction."""
    for _ in range(50):
        if not os.path.exists(f"/proc/self/task/{native_id}"):
            return
        time.sleep(0.0001)
