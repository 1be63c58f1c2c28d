"""Names the user's line that a thread stands on: samples the stack of one thread, about 50 times a second."""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

PAUSE_S = 0.02
WORKER_PAUSE_S = 0.04
OTHER_THREADS_EVERY = 5  # samples of the training thread
OTHER_THREADS_LIMIT = 16
FRAMES_KEPT = 4
DEPTH_LIMIT = 200
STACKS_LIMIT = 5000  # then all further stacks share one number: memory stays bounded
CODES_LIMIT = 20_000
ROWS_LIMIT = 100_000
COST_LIMIT_RATIO = 0.003

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_LIBRARY_FOLDERS = (os.path.dirname(os.path.abspath(os.__file__)) + os.sep,)
_PACKAGE_FOLDERS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SIMULATOR = f"{os.sep}simgpu{os.sep}"  # stands for a driver, wherever it lies


def is_user_file(filename: str) -> bool:
    """Whether the file is the user's own: not the standard library, an installed package or whyidle."""
    if filename.startswith("<"):
        return False
    path = os.path.abspath(filename)
    if (
        path.startswith(_OWN_FOLDER)
        or _SIMULATOR in path
        or any(folder in path for folder in _PACKAGE_FOLDERS)
    ):
        return False
    return not path.startswith(_LIBRARY_FOLDERS)


def package_of(filename: str) -> str:
    """The top-level package a library file belongs to; "" for files of no package."""
    for folder in _PACKAGE_FOLDERS:
        if folder in filename:
            return filename.rsplit(folder, 1)[1].split(os.sep, 1)[0].removesuffix(".py")
    for folder in _LIBRARY_FOLDERS:
        if filename.startswith(folder):
            return filename[len(folder) :].split(os.sep, 1)[0].removesuffix(".py")
    return filename.strip("<>").split(".", 1)[0] if filename.startswith("<frozen") else ""


class StackSampler:
    """Samples into `rows`: (t_ns, thread, stack, instruction) as the STACK table wants them."""

    def __init__(self, note: Callable[..., None], *, is_worker: bool = False) -> None:
        self.rows: deque[tuple[int, ...]] = deque(maxlen=ROWS_LIMIT)
        self.pause_s = self._least_pause_s = WORKER_PAUSE_S if is_worker else PAUSE_S
        self._count = 0
        self._note = note
        self._stacks: dict[Any, int] = {}
        self._files: dict[CodeType, tuple[bool, str, str]] = {}

    def sample(self, thread: int) -> None:
        """Sample the training thread, and every few times the others: they may hold the interpreter."""
        begin_ns = time.perf_counter_ns()
        frames = sys._current_frames()
        self._count += 1
        leaf = frames.pop(thread, None)
        if leaf is not None:
            self.rows.append((begin_ns, thread, *self._stack(leaf)))
        if len(frames) > 1 and self._count % OTHER_THREADS_EVERY == 0:
            frames.pop(get_ident(), None)
            for other in list(frames)[:OTHER_THREADS_LIMIT]:
                self.rows.append((begin_ns, other, *self._stack(frames[other])))
        del frames, leaf
        self._adapt(time.perf_counter_ns() - begin_ns)

    def _adapt(self, cost_ns: int) -> None:
        if cost_ns / (self.pause_s * 1e9) > COST_LIMIT_RATIO and self.pause_s < 0.2:
            self.pause_s *= 1.05
        elif self.pause_s > self._least_pause_s:
            self.pause_s *= 0.99

    def _stack(self, leaf: FrameType) -> tuple[int, int]:
        """The number of the stack and the instruction offset within its innermost user frame."""
        users: list[tuple[str, int, str]] = []
        libraries: list[str] = []
        leaf_function = ""
        instruction = -1
        frame: FrameType | None = leaf
        depth = 0
        while frame is not None and depth < DEPTH_LIMIT:
            code = frame.f_code
            is_user, filename, package = self._file(code)
            if is_user:
                if not users:
                    instruction = frame.f_lasti
                if len(users) < FRAMES_KEPT:
                    users.append((filename, frame.f_lineno or code.co_firstlineno, code.co_name))
            elif package != "whyidle":
                if not leaf_function and not users:
                    leaf_function = code.co_name
                if not users and package and package not in libraries:
                    libraries.append(package)
            frame = frame.f_back
            depth += 1
        return self._number(tuple(users), tuple(libraries), leaf_function), instruction

    def _file(self, code: CodeType) -> tuple[bool, str, str]:
        known = self._files.get(code)
        if known is None:
            filename = code.co_filename
            path = filename if filename.startswith("<") else os.path.abspath(filename)
            if len(self._files) >= CODES_LIMIT:  # a program that compiles code as it goes
                self._files.clear()
            package = "whyidle" if path.startswith(_OWN_FOLDER) else package_of(path)
            known = self._files[code] = (is_user_file(path), path, package)
        return known

    def _number(self, users: tuple[Any, ...], libraries: tuple[str, ...], leaf_function: str) -> int:
        key = (users, libraries, leaf_function)
        number = self._stacks.get(key)
        if number is None:
            if len(self._stacks) >= STACKS_LIMIT:
                return -1
            number = self._stacks[key] = len(self._stacks)
            self._note("stack", id=number, frames=users, libraries=libraries, leaf=leaf_function)
        return number
