"""Keeps a record file bounded however long the job runs.

A file holds every row until it reaches `full_bytes`; from then on whole stretches of 2 s are kept
one in 2, 4, 8, …: each further `level_bytes` doubles the distance. A stretch that is not kept leaves
its times, its number of optimizer steps and of rows; long runs join such stretches, so that these
lines grow with the logarithm of the time. After `LAST_LEVEL` levels (at 1 MB/s: over half a year)
nothing but those lines is added: a main process stays under 24 + 20 × 6 = 144 MiB and a loader worker
under 4 + 20 × 1 = 24 MiB, give or take one stretch and the notes.
"""

from __future__ import annotations

from whyidle.record import schema

WINDOW_NS = 2_000_000_000
LAST_LEVEL = 20
JOINED_PER_RUN = 1000  # dropped stretches are joined up to this part of the run so far
MIB = 1 << 20
OPTIMIZER_KIND = schema.KIND["optimizer"]

Rows = list[tuple[int, ...]]


class Thinning:
    def __init__(self, *, is_worker: bool) -> None:
        self.full_bytes = 4 * MIB if is_worker else 24 * MIB
        self.level_bytes = MIB if is_worker else 6 * MIB
        self.keeps = True
        self._start_ns: int | None = None
        self._since_ns = 0
        self._steps = 0
        self._dropped = 0

    def level(self, written_bytes: int) -> int:
        return max(0, 1 + (written_bytes - self.full_bytes) // self.level_bytes)

    def apply(
        self, now_ns: int, written_bytes: int, rows: dict[int, Rows], *, is_last: bool = False
    ) -> dict[int, Rows]:
        """The rows to write, by table; dropped stretches leave a line in the THINNED table.

        The decision whether the coming stretch is kept is made here, once a flush, so that a kept
        stretch begins and ends at flushes.
        """
        was_kept = self.keeps
        self.keeps = self._keeps_window(now_ns, self.level(written_bytes))
        if self._start_ns is None:
            self._start_ns = now_ns
        if was_kept:
            self._since_ns, self._steps, self._dropped = now_ns, 0, 0
            return rows
        self._steps += sum(1 for row in rows[schema.SPAN] if row[0] == OPTIMIZER_KIND)
        self._dropped += sum(map(len, rows.values()))
        # Spans that began while all was kept would leave a hole at its end.
        kept = {
            schema.SPAN: [row for row in rows[schema.SPAN] if row[2] < self._since_ns],
            schema.NEXT: [row for row in rows[schema.NEXT] if row[1] < self._since_ns],
        }
        longest_ns = max(WINDOW_NS, (now_ns - self._start_ns) // JOINED_PER_RUN)
        if self.keeps or is_last or now_ns - self._since_ns >= longest_ns:
            kept[schema.THINNED] = [(self._since_ns, now_ns, self._steps, self._dropped)]
            kept[schema.USAGE] = rows.get(schema.USAGE, [])
            self._since_ns, self._steps, self._dropped = now_ns, 0, 0
        return kept

    def _keeps_window(self, now_ns: int, level: int) -> bool:
        if level == 0:
            return True
        return level <= LAST_LEVEL and (now_ns // WINDOW_NS) % (1 << level) == 0
