"""Keeps the user's source lines that samples fell on, as they were when the job ran.

Runs in the launcher, after the job. The record then explains itself on a machine without the source,
and knows which lines stand in a Python loop inside the step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILE_LIMIT_BYTES = 4_000_000
TEXT_LIMIT = 200
# A loop that contains one of these calls is the training loop itself, not a loop inside the step.
STEP_CALLS = frozenset(
    ("backward", "step", "manual_backward", "optimizer_step", "training_step", "fit", "train")
)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def collect(places: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """For each (file, line): its text, function and inner loop. Unreadable files are left out."""
    by_file: dict[str, set[int]] = {}
    for file, line in places:
        by_file.setdefault(file, set()).add(line)
    entries = []
    for file, lines in sorted(by_file.items()):
        source = _read(file)
        if source is None:
            continue
        texts = source.splitlines()
        loops = inner_loops(source)
        for line in sorted(lines):
            if 0 < line <= len(texts):
                text = texts[line - 1].strip()[:TEXT_LIMIT]
                entries.append(
                    {
                        "file": file,
                        "line": line,
                        "text": text,
                        "function": "",
                        "inner_loop_line": loops.get(line),
                    }
                )
    return entries


def inner_loops(source: str) -> dict[int, int]:
    """Line → head of the innermost loop around it that trains nothing; only lines that are in one."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    loops: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, LOOPS) or _trains(node):
            continue
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            size = (node.end_lineno or node.lineno) - node.lineno
            if line not in loops or size < sizes[line]:
                loops[line], sizes[line] = node.lineno, size
    return loops


def _trains(loop: ast.AST) -> bool:
    for node in ast.walk(loop):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in STEP_CALLS or name.startswith("train"):
                return True
    return False


def _read(file: str) -> str | None:
    path = Path(file)
    try:
        if path.stat().st_size > FILE_LIMIT_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return None
