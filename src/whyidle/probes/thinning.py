"""Keeps a record file bounded however long the job runs.

A file holds every row until it reaches `FULL_BYTES`; from then on whole stretches of 2 s are kept
one in 2, 4, 8, …: each further `LEVEL_BYTES` doubles the distance. A stretch that is not kept leaves
its times, its number of optimizer steps and of rows. After `LAST_LEVEL` levels (at 1 MB/s: over half
a year) nothing but those lines is added, so that a main process stays under 24 + 20 × 6 = 144 MiB and
a loader worker under 4 + 20 × 1 = 24 MiB, give or take one flush.
"""

from __future__ import annotations

from whyidle.record import schema

WINDOW_NS = 2_000_000_000
LAST_LEVEL = 20
MIB = 1 << 20
OPTIMIZER_KIND = schema.KIND["optimizer"]

Rows = list[tuple[int, ...]]


class Thinning:
    def __init__(self, *, is_worker: bool) -> None:
        self.full_bytes = 4 * MIB if is_worker else 24 * MIB
        self.level_bytes = MIB if is_worker else 6 * MIB
        self.keeps = True
        self._since_ns: int | None = None

    def level(self, written_bytes: int) -> int:
        return max(0, 1 + (written_bytes - self.full_bytes) // self.level_bytes)

    def apply(self, now_ns: int, written_bytes: int, rows: dict[int, Rows]) -> dict[int, Rows]:
        """The rows to write, by table; a dropped stretch leaves its line in the THINNED table.

        The decision whether the coming stretch is kept is made here, once a flush, so that a kept
        stretch begins and ends at flushes.
        """
        kept, since_ns = self.keeps, self._since_ns
        self._since_ns = now_ns
        self.keeps = self._keeps_window(now_ns, self.level(written_bytes))
        if kept or since_ns is None:
            return rows
        spans = rows[schema.SPAN]
        steps = sum(1 for row in spans if row[0] == OPTIMIZER_KIND)
        dropped = sum(len(table) for table in rows.values())
        # Spans that began while all was kept would leave a hole at its end.
        return {
            schema.SPAN: [row for row in spans if row[2] < since_ns],
            schema.NEXT: [row for row in rows[schema.NEXT] if row[1] < since_ns],
            schema.THINNED: [(since_ns, now_ns, steps, dropped)],
        }

    def _keeps_window(self, now_ns: int, level: int) -> bool:
        if level == 0:
            return True
        return level <= LAST_LEVEL and (now_ns // WINDOW_NS) % (1 << level) == 0
