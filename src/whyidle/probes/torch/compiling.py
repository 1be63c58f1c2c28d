"""Has torch.compile step over whyidle's own code, so that it compiles what it would compile alone."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import learn_skip


def attach(recorder: Recorder, module: ModuleType) -> None:
    skip = getattr(module, "skip_code", None)
    if skip is not None:
        learn_skip(skip)
