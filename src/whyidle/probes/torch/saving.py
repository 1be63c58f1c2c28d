"""Times checkpoints: torch.save, torch.distributed.checkpoint, safetensors."""

from __future__ import annotations

import io
import os
from _thread import get_ident
from functools import partial
from time import perf_counter_ns
from types import ModuleType

from whyidle.probes.recorder import Recorder
from whyidle.probes.wrapping import Marks, replace, stand_in, without_own_frame
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

CHECKPOINT = KIND["checkpoint"]


def attach(recorder: Recorder, module: ModuleType) -> None:
    replace(module, "save", partial(_saving, recorder, name="torch.save", target_position=1))


def attach_safetensors(recorder: Recorder, module: ModuleType) -> None:
    replace(module, "save_file", partial(_saving, recorder, name="safetensors.save_file", target_position=1))


def attach_distributed(recorder: Recorder, module: ModuleType) -> None:
    for function in ("save", "async_save"):
        name = f"torch.distributed.checkpoint.{function}"
        replace(module, function, partial(_saving, recorder, name=name, target_position=-1))


def _saving(recorder: Recorder, original: Any, name: str, target_position: int) -> Any:
    """`target_position`: where among the arguments the file or path stands; -1 when it is not one file."""
    append = recorder.spans.append
    number = recorder.name(name)

    def save(*args: Any, **kwargs: Any) -> Any:
        target = args[target_position] if 0 <= target_position < len(args) else None
        start = _position(target)
        if Marks.mark is not None:
            Marks.mark()
        t0_ns = perf_counter_ns()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            t1_ns = perf_counter_ns()
            append((CHECKPOINT, get_ident(), t0_ns, t1_ns, _written_bytes(target, start), number))
            if Marks.mark is not None:
                Marks.mark()

    return stand_in(save, original)


def _position(target: Any) -> int:
    try:
        return int(target.tell()) if isinstance(target, io.IOBase) else 0
    except Exception:
        return 0


def _written_bytes(target: Any, start: int) -> int:
    """Bytes written to a path or an open file; 0 when it cannot be known."""
    try:
        if isinstance(target, (str, os.PathLike)):
            return os.path.getsize(target)
        return max(0, _position(target) - start)
    except Exception:
        return 0
