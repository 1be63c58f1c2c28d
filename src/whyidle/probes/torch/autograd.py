"""Times backward passes and reads the debug switches that are on during them."""

from __future__ import annotations

import sys
from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.torch import flags
from whyidle.probes.torch.modules import Call
from whyidle.probes.wrapping import Marks, is_compiling, replace, stand_in, without_own_frame
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

BACKWARD = KIND["backward"]
GRAPHS_COUNTED_AT = frozenset((4, 40, 400))  # which backward passes have their graph counted
NODES_LIMIT = 20_000  # about 20 ms


def attach(recorder: Recorder, module: ModuleType) -> None:
    append = recorder.spans.append
    read_flags: list[Any] = []
    calls = [0, 0]  # how many so far; the debug switches, read every eighth time

    def now_and_then(number: int, args: Any) -> None:
        counted = Call.counter.stop() if Call.counter.is_counting else None
        if number in GRAPHS_COUNTED_AT:
            note_graph(recorder, args, counted)
        Call.wants_output = number + 1 in GRAPHS_COUNTED_AT
        if not read_flags:
            read_flags.append(flags.reader(sys.modules["torch"]))
        calls[1] = read_flags[0]()

    def wrap(original: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            number = calls[0] = calls[0] + 1
            if number & 7 == 1 or Call.wants_output or number + 1 in GRAPHS_COUNTED_AT:
                now_and_then(number, args)
            on = calls[1]
            if Marks.mark is not None:
                Marks.mark("backward")
            t0_ns = perf_counter_ns()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                append((BACKWARD, get_ident(), t0_ns, perf_counter_ns(), 0, on))
                if Marks.mark is not None:
                    Marks.mark()

        return stand_in(backward, original)

    replace(module, "backward", wrap)
    replace(module, "grad", wrap)


def note_graph(recorder: Recorder, args: Any, loss_calls: int | None) -> None:
    """How many nodes the backward pass will visit, how many of them lie past the model's output, and
    how many calls made the loss."""
    try:
        output = Call.output() if Call.output is not None else None
        Call.output = None
        tensors = args[0] if args else None
        root = tensors[0] if isinstance(tensors, (tuple, list)) else tensors
        nodes = _count_nodes(getattr(root, "grad_fn", None))
        model = _count_nodes(getattr(output, "grad_fn", None))
        past = nodes - model if nodes is not None and model is not None else None
        recorder.note("graph", nodes=nodes, loss_nodes=past, loss_calls=loss_calls)
    except Exception as error:
        recorder.note("problem", id="probe_failed", detail=f"graph: {error!r}")


def _count_nodes(root: Any) -> int | None:
    if root is None:
        return None
    seen = {root}
    waiting = [root]
    while waiting and len(seen) < NODES_LIMIT:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return len(seen)
