"""Times garbage collections, those that Python starts and those that the program asks for."""

from __future__ import annotations

from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import replace_timed
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

GC = KIND["gc"]
OLDEST_GENERATION = 2
YOUNG_NS = 200_000


def attach(recorder: Recorder, gc: ModuleType) -> None:
    replace_timed(recorder, gc, "collect", "gc_collect")
    append = recorder.spans.append
    begun: dict[int, int] = {}

    def on_collection(phase: str, info: dict[str, Any]) -> None:
        thread = get_ident()
        if phase == "start":
            begun[thread] = perf_counter_ns()
            return
        t0_ns = begun.pop(thread, None)
        if t0_ns is None:
            return
        now_ns = perf_counter_ns()
        generation = info.get("generation", -1)
        # Young collections are many, short and part of any Python program.
        if generation == OLDEST_GENERATION or now_ns - t0_ns > YOUNG_NS:
            append((GC, thread, t0_ns, now_ns, generation, info.get("collected", 0)))

    gc.callbacks.append(on_collection)
