"""Times `print`."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed


def attach(recorder: Recorder, builtins: ModuleType) -> None:
    replace_timed(recorder, builtins, "print", "print")
