"""Brings records of older versions to the present one; no old record is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyidle.record.reader import ProcessRecord

# UPGRADES[n] turns a record of version n into one of version n + 1.
UPGRADES: dict[int, Callable[[ProcessRecord], ProcessRecord]] = {}


def upgrade(record: ProcessRecord, version: int) -> ProcessRecord:
    for step in sorted(UPGRADES):
        if step >= version:
            record = UPGRADES[step](record)
    return record
