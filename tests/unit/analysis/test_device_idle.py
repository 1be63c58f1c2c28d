"""Idle time by phase, from a tape of calls on a host and a queue in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from factory import MS, US, Tape

from whyidle.analysis.device_idle import DeviceIdle, device_idle
from whyidle.analysis.step_phases import Piece, split
from whyidle.analysis.timeline import partition
from whyidle.record import schema


class Marked(Tape):
    """A tape whose calls set markers at their edges, as the probes do."""

    def __init__(self) -> None:
        super().__init__()
        self.ready_ns = 0

    def kernel(self, duration_ns: int) -> None:
        self.ready_ns = max(self.ready_ns, self.now) + duration_ns

    def mark(self, is_first: bool = False) -> None:
        device_ns = max(self.now, self.ready_ns) + 5_000 * MS
        self.tables[schema.MARK].append((self.now, device_ns, int(is_first)))

    @contextmanager
    def marked(self, kind: str, a: int = 0, b: int = 0) -> Iterator[None]:
        self.mark()
        with self.inside(kind, a, b):
            yield
        self.mark()

    def take(self, kind: str, duration_ns: int, kernel_ns: int = 0, a: int = 0, b: int = 0) -> None:
        with self.marked(kind, a, b):
            self.now += duration_ns // 2
            if kernel_ns:
                self.kernel(kernel_ns)
            self.now += duration_ns - duration_ns // 2

    def catch_up(self, kind: str = "sync") -> None:
        """A call that waits for the queue."""
        with self.marked(kind):
            self.now = max(self.now + 50 * US, self.ready_ns)

    def step(self, backward_kernel_ns: int = 0) -> None:
        self.take("forward", 1 * MS, kernel_ns=2 * MS, b=schema.FORWARD_TRAINING | schema.FORWARD_GRAD)
        self.take("backward", 2 * MS, kernel_ns=backward_kernel_ns)
        self.take("optimizer", 1 * MS)

    def pieces(self) -> list[Piece]:
        segments = partition(self.spans(), (self.start_ns, self.now))
        none = split(segments, (), [], lambda sample, after: None, lambda sample: None, lambda name: "other")
        return none.pieces

    def measured(self) -> DeviceIdle:
        found = device_idle(self.record(), self.pieces(), (self.start_ns, self.now))
        assert found is not None
        return found


def test_without_markers_nothing_is_known() -> None:
    tape = Marked()
    for _ in range(4):
        tape.take("print", 1 * MS)
    tape.tables[schema.MARK].clear()
    assert device_idle(tape.record(), tape.pieces(), (tape.start_ns, tape.now)) is None


def test_logging_behind_a_backlog_is_free_and_after_a_read_costs_all_of_itself() -> None:
    hidden, bare = Marked(), Marked()
    for _ in range(20):
        hidden.step(backward_kernel_ns=20 * MS)
        hidden.take("print", 5 * MS)
        bare.step(backward_kernel_ns=20 * MS)
        bare.catch_up()
        bare.take("print", 5 * MS)
    assert hidden.measured().ratio_by_phase["logging"] == pytest.approx(0, abs=0.01)
    assert bare.measured().ratio_by_phase["logging"] == pytest.approx(1, abs=0.01)
    assert bare.measured().ratio_by_phase["sync"] == pytest.approx(0, abs=0.01)


def test_a_wait_answers_for_the_idle_time_that_follows_it() -> None:
    """Without the wait of 17 ms the host would have been ahead by more than the 5 ms of printing."""
    tape = Marked()
    for _ in range(20):
        tape.step(backward_kernel_ns=20 * MS)
        tape.catch_up()
        tape.take("print", 5 * MS)
    found = tape.measured()
    logging_ratio = 20 * 5 * MS / (tape.now - tape.start_ns)
    assert logging_ratio <= found.after_sync_ratio <= logging_ratio + 20 * 2 * MS / (tape.now - tape.start_ns)
    assert found.after_copy_ratio == 0


def test_a_wait_answers_for_no_more_than_it_waited() -> None:
    tape = Marked()
    for _ in range(20):
        tape.step(backward_kernel_ns=3 * MS)
        lag_ns = tape.ready_ns - tape.now
        assert 0 < lag_ns < 3 * MS
        tape.catch_up()
        tape.take("print", 20 * MS)
    found = tape.measured()
    assert 0 < found.after_sync_ratio * (tape.now - tape.start_ns) <= 20 * 3 * MS


def test_a_wait_on_an_empty_queue_answers_for_nothing() -> None:
    tape = Marked()
    for _ in range(20):
        tape.step()
        tape.take("print", 5 * MS)
        tape.catch_up()
        tape.take("print", 5 * MS)
    assert tape.measured().after_sync_ratio == 0


def test_a_second_read_right_after_the_first_changes_nothing() -> None:
    once, twice = Marked(), Marked()
    for tape, reads in ((once, 1), (twice, 2)):
        for _ in range(20):
            tape.step(backward_kernel_ns=20 * MS)
            for _ in range(reads):
                tape.catch_up()
            tape.take("print", 5 * MS)
    assert twice.measured().after_sync_ratio == pytest.approx(once.measured().after_sync_ratio, rel=0.05)


def test_copies_own_what_follows_them_and_reads_do_not() -> None:
    tape = Marked()
    for _ in range(20):
        tape.step(backward_kernel_ns=20 * MS)
        with tape.marked("copy", a=1_000_000):
            tape.now = max(tape.now, tape.ready_ns)
            tape.kernel(200 * US)
            tape.now = tape.ready_ns
        tape.wait(5 * MS)
    found = tape.measured()
    assert found.after_sync_ratio == 0
    assert found.after_copy_ratio == pytest.approx(20 * 5 * MS / (tape.now - tape.start_ns), rel=0.4)


def test_kernels_that_were_never_seen_behind_are_unknown() -> None:
    tape = Marked()
    for _ in range(20):
        tape.take("forward", 10 * MS, kernel_ns=1 * MS)
        tape.take("print", 10 * MS)
    found = tape.measured()
    assert found.unknown_ratio == pytest.approx(0.5, abs=0.02)
    assert found.ratio_by_phase["logging"] == pytest.approx(0.95, abs=0.06)
    assert found.ratio_by_phase.get("forward", 0) == 0


def test_the_share_of_drained_ends_of_launching_phases() -> None:
    fed, starved = Marked(), Marked()
    for _ in range(20):
        fed.step(backward_kernel_ns=20 * MS)
        starved.take("forward", 2 * MS, kernel_ns=100 * US)
        starved.take("backward", 2 * MS, kernel_ns=100 * US)
    assert starved.measured().drained_ratio_by_phase == {"forward": 1.0, "backward": 1.0}
    assert max(fed.measured().drained_ratio_by_phase.values()) <= 0.1


def test_a_marker_that_is_the_first_after_a_gap_ends_no_stretch() -> None:
    """Steps left out to save cost: what happened between them is not looked at."""
    tape = Marked()
    for _ in range(10):
        tape.take("print", 5 * MS)
        tape.call("log", 500 * MS)
        tape.mark(is_first=True)
    found = tape.measured()
    assert found.ratio_by_phase["logging"] == pytest.approx(1, abs=0.01)
    assert sum(found.ratio_by_phase.values()) == pytest.approx(1, abs=0.01)


def test_ratios_lie_between_0_and_1() -> None:
    tape = Marked()
    for turn in range(60):
        tape.step(backward_kernel_ns=(turn * 7919 % 31) * MS)
        tape.take("copy", 300 * US, kernel_ns=10 * US, a=100_000)
        if turn % 3 == 0:
            tape.catch_up()
        tape.wait((turn * 104_729 % 13) * MS)
    found = tape.measured()
    for ratio in (*found.ratio_by_phase.values(), *found.drained_ratio_by_phase.values()):
        assert 0 <= ratio <= 1
    assert 0 <= found.unknown_ratio <= 1
    assert 0 <= found.after_sync_ratio <= 1
