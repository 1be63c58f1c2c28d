"""Times progress bars."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed


def attach_tqdm(recorder: Recorder, std: ModuleType) -> None:
    library = recorder.name("tqdm")
    for method in ("update", "refresh", "set_postfix", "set_postfix_str", "set_description", "close"):
        replace_timed(recorder, std.tqdm, method, "progress", library)


def attach_rich(recorder: Recorder, module: ModuleType) -> None:
    library = recorder.name("rich")
    for method in ("update", "advance", "refresh"):
        replace_timed(recorder, module.Progress, method, "progress", library)
