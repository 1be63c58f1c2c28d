"""Enters a process: installs the import hooks that attach each probe when its library is imported."""

from __future__ import annotations

import atexit
import gc  # noqa: F401 - so that its probe can be attached at once
import os
import sys

from whyidle.probes.all_probes import PROBES
from whyidle.probes.import_hooks import ImportHooks
from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import stand_in, without_own_frame

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

_recorder: Recorder | None = None


def enter(run_folder: str) -> Recorder:
    """Start observing this process into `run_folder`; a second call changes nothing."""
    global _recorder
    if _recorder is not None:
        return _recorder
    _recorder = recorder = Recorder(run_folder)
    _leave_a_mark(run_folder)
    hooks = ImportHooks(recorder)
    for module_name, attach in PROBES.items():
        hooks.add(module_name, attach)
    hooks.install()
    _watch_exits(recorder)
    return recorder


def current() -> Recorder | None:
    return _recorder


def _leave_a_mark(run_folder: str) -> None:
    """One line a process, so that the report can tell "never entered" from "no torch"."""
    try:
        fd = os.open(f"{run_folder}/entered", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.write(fd, f"{os.getpid()} {sys.version_info[0]}.{sys.version_info[1]}\n".encode())
        os.close(fd)
    except OSError:
        pass


def _watch_exits(recorder: Recorder) -> None:
    atexit.register(recorder.end)
    exit_now = os._exit

    def _exit(*args: Any, **kwargs: Any) -> None:
        recorder.end()
        try:
            exit_now(*args, **kwargs)
        except BaseException as error:
            without_own_frame(error)
            raise

    os._exit = stand_in(_exit, exit_now)
