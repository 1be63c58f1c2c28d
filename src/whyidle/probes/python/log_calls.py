"""Times the handling of log records: formatting, handlers, files, consoles."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed


def attach(recorder: Recorder, logging: ModuleType) -> None:
    # Not `_log`: that one counts frames to find the line that logs.
    replace_timed(recorder, logging.Logger, "handle", "log")
