"""Opens a run folder: validates, upgrades, and says in one line what is wrong."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whyidle.errors import UnreadableInput
from whyidle.record import schema
from whyidle.record.upgrade import upgrade

Row = tuple[int, ...]


@dataclass
class ProcessRecord:
    """One process's file: its header, its tables as rows of integers, its JSON notes by type."""

    path: Path
    header: dict[str, Any]
    tables: dict[int, list[Row]] = field(default_factory=dict)
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    is_truncated: bool = False

    def rows(self, table: int) -> list[Row]:
        return self.tables.get(table, [])

    def notes_of(self, kind: str) -> list[dict[str, Any]]:
        return self.notes.get(kind, [])

    @property
    def has_ended(self) -> bool:
        return "end" in self.notes


@dataclass
class RunRecord:
    """A whole run. `problems` are ids with a detail, for the report to put into words."""

    folder: Path
    run: dict[str, Any]
    processes: list[ProcessRecord]
    host: list[dict[str, Any]]
    problems: list[dict[str, str]]


def read_process(path: Path) -> ProcessRecord:
    """Read one `.rec` file as far as it is whole.

    Raises:
        UnreadableInput: not a record file, or one of a newer version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be read: {error.strerror}") from None
    head_size = struct.calcsize(schema.FILE_HEAD)
    if len(data) < head_size or data[: len(schema.MAGIC)] != schema.MAGIC:
        raise UnreadableInput(f"{path} is not a whyidle record file")
    _, version, header_size = struct.unpack_from(schema.FILE_HEAD, data)
    if version > schema.VERSION:
        raise UnreadableInput(
            f"{path} is of record version {version}; this whyidle reads up to {schema.VERSION}",
            "pip install --upgrade whyidle",
        )
    try:
        header = json.loads(data[head_size : head_size + header_size])
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise UnreadableInput(f"{path} ends within its header")
    record = ProcessRecord(path, header)
    _read_frames(data, head_size + header_size, record)
    return upgrade(record, version)


def _read_frames(data: bytes, offset: int, record: ProcessRecord) -> None:
    head_size = struct.calcsize(schema.FRAME_HEAD)
    while offset < len(data):
        record.is_truncated = True
        if offset + head_size > len(data):
            return
        _, frame_type, table, size, _ = struct.unpack_from(schema.FRAME_HEAD, data, offset)
        payload = data[offset + head_size : offset + head_size + size]
        if data[offset : offset + head_size] != schema.frame_head(frame_type, table, payload):
            return
        offset += head_size + size
        record.is_truncated = False
        if frame_type == schema.ROWS_FRAME and table in schema.TABLES:
            record.tables.setdefault(table, []).extend(_rows(payload, len(schema.TABLES[table])))
        elif frame_type == schema.JSON_FRAME:
            note = json.loads(payload)
            record.notes.setdefault(note.get("type", ""), []).append(note)


def _rows(payload: bytes, columns: int) -> list[Row]:
    flat = array("q")
    flat.frombytes(payload[: len(payload) // (8 * columns) * 8 * columns])
    if sys.byteorder == "big":
        flat.byteswap()
    columns_iterator = iter(flat)
    return list(zip(*[columns_iterator] * columns, strict=True))


def read_run(folder: Path) -> RunRecord:
    """Read a run folder.

    Raises:
        UnreadableInput: no such folder, or nothing in it that whyidle wrote.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UnreadableInput(f"{folder} {what}", "whyidle report whyidle-runs/<run>")
    run = _read_json(folder / "run.json")
    paths = sorted(folder.glob("*.rec"))
    if run is None and not paths:
        raise UnreadableInput(f"{folder} holds no whyidle run", "whyidle run -- python train.py")
    problems: list[dict[str, str]] = []
    if run is None:
        problems.append({"id": "foreign_files", "detail": "run.json"})
    processes = []
    for path in paths:
        try:
            record = read_process(path)
        except UnreadableInput as error:
            newer = "newer" if error.hint else "foreign"
            name = "other_process_newer" if newer == "newer" else "foreign_files"
            problems.append({"id": name, "detail": error.message})
            continue
        if record.is_truncated:
            problems.append({"id": "record_truncated", "detail": path.name})
        processes.append(record)
    problems += [{"id": "record_lost", "detail": path.name} for path in sorted(folder.glob("*.lost"))]
    if not processes and problems and any(problem["id"] == "other_process_newer" for problem in problems):
        raise UnreadableInput(problems[-1]["detail"], "pip install --upgrade whyidle")
    return RunRecord(folder, run or {}, processes, _read_lines(folder / "host.jsonl"), problems)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    values = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue  # the last line of a launcher that was killed
        if isinstance(value, dict):
            values.append(value)
    return values
