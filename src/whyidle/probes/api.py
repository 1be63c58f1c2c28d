"""For those who would rather change their code: `whyidle.watch()` and `with whyidle.phase("metrics"):`."""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

from whyidle.probes import bootstrap
from whyidle.record.schema import KIND


def watch(folder: str | None = None) -> str:
    """Observe this process from now on, without the launcher.

    Call it before the training loop, best before `import torch`. Under `whyidle run` it does nothing.

    Args:
        folder: where the record goes; by default `whyidle-runs/<time>-<script>`.

    Returns:
        The run's folder, for `whyidle report`. It never raises: where the folder cannot be made,
        nothing is recorded and a warning says so.
    """
    recorder = bootstrap.current()
    if recorder is not None:
        return recorder.folder
    folder = folder or default_folder(os.path.basename(sys.argv[0] or "python"))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        import warnings

        warnings.warn(f"whyidle records nothing: {error}", stacklevel=2)
        return folder
    bootstrap.enter(os.path.abspath(folder)).start()
    return folder


def default_folder(name: str) -> str:
    stem = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in os.path.splitext(name)[0]
    )
    return os.path.join("whyidle-runs", f"{time.strftime('%Y%m%d-%H%M%S')}-{stem or 'run'}")


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Name a stretch of the loop. Unobserved, it costs nothing and does nothing.

    Args:
        name: one of whyidle's phases ("metrics", "logging", "checkpoint", …) or any other word,
            which the report then shows as it is.
    """
    recorder = bootstrap.current()
    t0_ns = perf_counter_ns()
    try:
        yield
    finally:
        if recorder is not None:
            recorder.spans.append(
                (KIND["phase"], get_ident(), t0_ns, perf_counter_ns(), recorder.name(name), 0)
            )
