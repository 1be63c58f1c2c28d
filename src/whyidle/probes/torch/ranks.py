"""Times collectives that the training thread calls itself."""

from __future__ import annotations

from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
)


def attach(recorder: Recorder, module: ModuleType) -> None:
    for name in COLLECTIVES:
        replace_timed(recorder, module, name, "communication", recorder.name(name))
