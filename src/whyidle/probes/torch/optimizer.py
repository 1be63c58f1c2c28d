"""Marks optimizer steps, through torch's own global step hooks, and `zero_grad`."""

from __future__ import annotations

from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType

from whyidle.probes.numbering import Numbering
from whyidle.probes.recorder import Recorder
from whyidle.probes.torch.device_markers import DeviceMarkers
from whyidle.probes.wrapping import Marks, is_compiling, replace_timed
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

OPTIMIZER = KIND["optimizer"]


def attach(recorder: Recorder, module: ModuleType) -> None:
    append = recorder.spans.append
    begun: dict[int, list[int]] = {}
    numbers = Numbering()
    markers = DeviceMarkers(recorder)

    def number_of(optimizer: Any) -> int:
        number, is_new = numbers.number(optimizer)
        if is_new:
            device = _device_of(optimizer)
            recorder.note("optimizer", id=number, device=device, **{"class": type(optimizer).__name__})
            if device not in (None, "cpu"):
                markers.activate(device)
            recorder.start()
        return number

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            if Marks.mark is not None:
                Marks.mark("optimizer")
            begun.setdefault(get_ident(), []).append(perf_counter_ns())

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        thread = get_ident()
        open_steps = begun.get(thread)
        if not open_steps:
            return
        t0_ns = open_steps[-1]
        del open_steps[:]  # a step that raised left its start behind
        t1_ns = perf_counter_ns()
        number = number_of(optimizer)
        recorder.training_thread = thread
        append((OPTIMIZER, thread, t0_ns, t1_ns, number, 0))
        if markers.is_active:
            markers.end_step()

    def forget() -> None:
        begun.clear()
        numbers.clear()
        markers.deactivate()

    recorder.after_fork.append(forget)
    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)
    replace_timed(recorder, module.Optimizer, "zero_grad", "zero_grad")


def _device_of(optimizer: Any) -> str | None:
    try:
        return str(optimizer.param_groups[0]["params"][0].device.type)
    except Exception:
        return None
