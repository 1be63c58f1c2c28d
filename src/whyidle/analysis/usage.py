"""Rates and growth of what the process used, from its USAGE rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from whyidle.record import schema
from whyidle.record.reader import ProcessRecord

PROCESS_CPU, INVOLUNTARY, MAIN_CPU, PROBE = (
    schema.TABLES[schema.USAGE].index(name)
    for name in ("cpu_ns", "involuntary_switches", "main_cpu_ns", "probe_ns")
)


def cpu_in(process: ProcessRecord, window: tuple[int, int]) -> int | None:
    """On-CPU time of the process over the window."""
    return rate_in(process, window, PROCESS_CPU)


def rate_in(process: ProcessRecord, window: tuple[int, int], column: int) -> int | None:
    """Growth of a USAGE column over the window, from the samples in it; None with fewer than two."""
    rows = [
        row for row in process.rows(schema.USAGE) if window[0] <= row[0] <= window[1] and row[column] >= 0
    ]
    if len(rows) < 2 or rows[-1][0] == rows[0][0]:
        return None
    rate = (rows[-1][column] - rows[0][column]) / (rows[-1][0] - rows[0][0])
    return round(rate * (window[1] - window[0]))


def switches(process: ProcessRecord, window: tuple[int, int]) -> float | None:
    switches = rate_in(process, window, INVOLUNTARY)
    return switches / (window[1] - window[0]) * 1e9 if switches is not None else None


def overhead(process: ProcessRecord, window: tuple[int, int]) -> float | None:
    """What whyidle's thread took of one core; the probes' own calls are measured by benchmarks/overhead."""
    spent_ns = rate_in(process, window, PROBE)
    return spent_ns / (window[1] - window[0]) if spent_ns is not None else None


def cpu_growth(process: ProcessRecord, ends: Sequence[int]) -> float | None:
    """On-CPU time a step in the last third of the steps against the first: a busy neighbour on the
    machine stretches steps without it."""
    third = len(ends) // 3
    first = cpu_in(process, (ends[0], ends[third]))
    last = cpu_in(process, (ends[-third - 1], ends[-1]))
    return last / first if first and last is not None else None


def memory_growth(process: ProcessRecord, window: tuple[int, int]) -> int | None:
    sizes = [row[2] for row in process.rows(schema.USAGE) if window[0] <= row[0] <= window[1] and row[2] >= 0]
    if len(sizes) < 5:
        return None
    fifth = max(1, len(sizes) // 5)
    return round(fmean(sizes[-fifth:]) - fmean(sizes[:fifth]))
