"""Times `os.fsync`, and counts the files that samples open, path by path."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

PATHS_LIMIT = 4096


def attach(recorder: Recorder, os: ModuleType) -> None:
    replace_timed(recorder, os, "fsync", "fsync")
    replace_timed(recorder, os, "fdatasync", "fsync")


class OpenCounter:
    """Counts files opened while a fetch runs. An audit hook cannot be removed, so it is added once,
    with the first fetch, and looks at a flag."""

    def __init__(self) -> None:
        self.is_counting = False
        self.thread = 0
        self.opens = 0
        self.fetches = 0
        self.by_path: dict[str, int] = {}
        self._is_hooked = False

    def begin(self) -> None:
        if not self._is_hooked:
            self._is_hooked = True
            sys.addaudithook(self._hook())
        self.opens = 0
        self.fetches += 1
        self.thread = get_ident()
        self.is_counting = True

    def stop(self) -> int:
        self.is_counting = False
        return self.opens

    def forget(self) -> None:
        self.by_path.clear()
        self.fetches = 0

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        by_path = self.by_path

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event != "open" or not self.is_counting or get_ident() != self.thread:
                return
            self.opens += 1
            path = args[0]
            if isinstance(path, str):
                if path in by_path:
                    by_path[path] += 1
                elif len(by_path) < PATHS_LIMIT:
                    by_path[path] = 1

        return hook
