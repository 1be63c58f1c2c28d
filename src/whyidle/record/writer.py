"""Appends frames to one process's record file. Runs in the user's process: never raises."""

from __future__ import annotations

import errno
import json
import os
import struct
import sys
from array import array
from collections.abc import Iterable
from itertools import chain

from whyidle.record import schema

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any


class Writer:
    """One append-only `.rec` file.

    The first write that fails (disk full, folder gone, read-only) ends the record: the file stays
    readable up to there, `lost_rows` counts what followed, and a `.lost` file marks the loss.
    """

    def __init__(self, path: str, header: dict[str, Any]) -> None:
        self.path = path
        self.written_bytes = 0
        self.lost_rows = 0
        self.failure: OSError | None = None
        self._fd = -1
        self._identity = (0, 0)
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._identity = _identity(self._fd)
        except OSError as error:
            self._fail(error)
            return
        text = json.dumps(header).encode()
        self._put(struct.pack(schema.FILE_HEAD, schema.MAGIC, schema.VERSION, len(text)) + text)

    def rows(self, table: int, rows: Iterable[tuple[int, ...]]) -> None:
        flat = array("q", chain.from_iterable(rows))
        if sys.byteorder == "big":
            flat.byteswap()
        count = len(flat) // len(schema.TABLES[table])
        if count and not self._frame(schema.ROWS_FRAME, table, flat.tobytes()):
            self.lost_rows += count

    def json(self, value: dict[str, Any]) -> None:
        self._frame(schema.JSON_FRAME, 0, json.dumps(value).encode())

    def abandon(self) -> None:
        """Close without a word: for a forked child that inherited the parent's file."""
        fd, self._fd = self._fd, -1
        try:
            if fd >= 0 and _identity(fd) == self._identity:
                os.close(fd)
        except OSError:
            pass

    def _frame(self, frame_type: int, table: int, payload: bytes) -> bool:
        head = schema.frame_head(frame_type, table, payload)
        return self._put(head + payload)

    def _put(self, data: bytes) -> bool:
        if self._fd < 0:
            return False
        try:
            # A program that closes all files it does not know gives our number to one of its own.
            if _identity(self._fd) != self._identity:
                raise OSError(errno.EBADF, "closed by the program")
            written = os.write(self._fd, data)
            if written != len(data):
                raise OSError(errno.ENOSPC, "short write")
        except OSError as error:
            self._fail(error)
            return False
        self.written_bytes += written
        return True

    def _fail(self, error: OSError) -> None:
        self.failure = error
        self.abandon()
        try:
            os.close(os.open(self.path + ".lost", os.O_WRONLY | os.O_CREAT, 0o644))
        except OSError:
            pass


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
