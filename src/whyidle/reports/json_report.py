"""The report as JSON, for programs: the keys in the order of the schema, unknown numbers as null."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whyidle.errors import UsageError

KEY_ORDER = (
    "schema",
    "whyidle",
    "command",
    "run",
    "exit_code",
    "signal",
    "wall_s",
    "start_s",
    "window_s",
    "end_s",
    "device",
    "machine",
    "steps",
    "idle_ratio",
    "gpu",
    "phases",
    "overhead_ratio",
    "findings",
    "notes",
    "ruled_out",
    "cannot_tell",
    "ranks",
    "lines",
    "problems",
)


def dumps(report: Mapping[str, Any]) -> str:
    known = [key for key in KEY_ORDER if key in report]
    unknown = sorted(key for key in report if key not in KEY_ORDER)
    ordered = {key: _finite(report[key]) for key in [*known, *unknown]}
    # Escaped to ASCII, it can be written to any terminal and holds file names that are not valid UTF-8.
    return json.dumps(ordered, indent=2, allow_nan=False) + "\n"


def write(report: Mapping[str, Any], target: str) -> None:
    """Write to the path `target`, whole or not at all; `-` is standard output."""
    text = dumps(report)
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        _write_file(Path(target), text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot write the report to {target}: {reason}", "name a file in a folder you can write to, or -"
        ) from error


def _write_file(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="ascii")  # a pipe or a device cannot be replaced
        return
    path = path.resolve()  # keep a symbolic link a link
    draft = path.with_name(f".whyidle-{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="ascii")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
