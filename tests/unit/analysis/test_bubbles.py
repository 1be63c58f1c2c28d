"""The device's idle time from markers, on days of a device whose idle time is known."""

from __future__ import annotations

from collections import Counter

import pytest
from factory import MS, US
from hypothesis import given
from hypothesis import strategies as st

from whyidle.analysis.bubbles import CLOCK_STRETCH, Idle, Mark, Stretch, idle, lags_ns

PARTS = 10  # kernels of a launching stretch, launched one after another


class Day:
    """A host and a queue in virtual time; every stretch begins and ends with a marker."""

    def __init__(self, offset_ns: int = 0) -> None:
        self.offset_ns = offset_ns
        self.host_ns = self.ready_ns = 0
        self.marks: list[Mark] = []
        self.stretches: list[Stretch] = []
        self.true_ns: Counter[str] = Counter()
        self._mark()

    def _mark(self) -> None:
        self.marks.append(Mark(self.host_ns, max(self.host_ns, self.ready_ns) + self.offset_ns))

    def wait(self, phase: str, duration_ns: int) -> None:
        self.launch(phase, duration_ns, 0, key="")

    def launch(self, phase: str, duration_ns: int, kernels_ns: int, key: str | None = None) -> None:
        """Kernels spread over the stretch; a queue in order runs each when it can."""
        for _ in range(PARTS):
            if kernels_ns:
                self.ready_ns = max(self.ready_ns, self.host_ns) + kernels_ns // PARTS
            self.host_ns += duration_ns // PARTS
        self._end(phase, duration_ns, kernels_ns, phase if key is None else key)

    def catch_up(self, phase: str = "sync") -> None:
        """The host waits until the queue is empty."""
        duration_ns = max(0, self.ready_ns - self.host_ns)
        self.host_ns += duration_ns
        self._end(phase, duration_ns, 0, "")

    def _end(self, phase: str, duration_ns: int, kernels_ns: int, key: str) -> None:
        index = len(self.marks) - 1
        self._mark()
        elapsed_ns = self.marks[-1].device_ns - self.marks[-2].device_ns
        self.true_ns[phase] += elapsed_ns - kernels_ns
        self.stretches.append(Stretch(index, key, {phase: duration_ns}))

    def idle(self) -> Idle:
        return idle(self.marks, self.stretches)


def test_a_stretch_behind_a_backlog_is_free() -> None:
    day = Day()
    day.wait("other", 1 * MS)
    day.launch("backward", 1 * MS, 60 * MS)
    day.wait("checkpoint", 50 * MS)
    assert day.idle().by_phase["checkpoint"] == 0


def test_the_same_stretch_on_a_drained_queue_costs_all_of_itself() -> None:
    day = Day()
    day.launch("backward", 1 * MS, 60 * MS)
    day.catch_up()
    day.wait("checkpoint", 50 * MS)
    found = day.idle().by_phase
    assert found["checkpoint"] == 50 * MS
    assert found["sync"] == 0


def test_a_backlog_that_runs_out_within_a_stretch_hides_the_first_part_of_it() -> None:
    day = Day()
    day.wait("other", 1 * MS)
    day.launch("backward", 1 * MS, 20 * MS)
    lag_ns = day.ready_ns - day.host_ns
    day.wait("data", 50 * MS)
    assert day.idle().by_phase["data"] == 50 * MS - lag_ns


@pytest.mark.parametrize("offset_ns", [0, 7_000 * MS, -7_000 * MS])
def test_a_launching_stretch_idles_for_what_its_kernels_leave(offset_ns: int) -> None:
    """Seen once behind a backlog, its kernels' time is known; the clocks may differ by anything."""
    day = Day(offset_ns)
    day.wait("other", 1 * MS)
    for _ in range(20):
        day.launch("forward", 10 * MS, 4 * MS)
    day.launch("optimizer", 1 * MS, 50 * MS)
    day.launch("forward", 10 * MS, 4 * MS)
    found = day.idle()
    assert found.unknown_ns == day.marks[-2].device_ns - day.marks[-3].device_ns  # the one optimizer step
    assert found.by_phase["forward"] == pytest.approx(day.true_ns["forward"], rel=0.01)
    assert found.by_phase["forward"] == pytest.approx(20 * 6 * MS, rel=0.05)


def test_kernels_never_seen_back_to_back_are_not_guessed() -> None:
    day = Day()
    for _ in range(20):
        day.launch("forward", 10 * MS, 4 * MS)
        day.wait("data", 5 * MS)
    found = day.idle()
    assert found.unknown_ns > 20 * 9 * MS
    assert "forward" not in found.by_phase
    assert found.by_phase["data"] == pytest.approx(20 * 5 * MS, rel=0.2)


def test_the_median_of_what_was_seen_counts() -> None:
    day = Day()
    day.wait("other", 1 * MS)
    day.launch("optimizer", 1 * MS, 50 * MS)
    for kernels_ns in (4 * MS, 4 * MS, 4 * MS, 40 * MS):  # one step in which it computed ten times as much
        day.launch("forward", 1 * MS, kernels_ns)
    day.catch_up()
    for _ in range(3):
        day.launch("forward", 10 * MS, 4 * MS)
    assert day.idle().by_phase["forward"] == pytest.approx(3 * 6 * MS, rel=0.05)


def test_a_long_last_kernel_does_not_hide_the_gaps_before_it() -> None:
    """The host takes 1 ms to launch a kernel of 0.4 ms; the last one is still running at each marker."""
    day = Day()
    day.wait("other", 1 * MS)
    for _ in range(20):
        day.host_ns += 9 * MS
        day.ready_ns = day.host_ns + 4 * MS // PARTS
        day._end("forward", 9 * MS, 4 * MS, "forward")
    day.launch("optimizer", 1 * MS, 50 * MS)
    day.launch("forward", 9 * MS, 4 * MS)
    assert day.idle().by_phase["forward"] == pytest.approx(20 * 5 * MS, rel=0.1)


def test_what_lies_outside_every_call_is_taken_to_launch_nothing() -> None:
    day = Day()
    day.wait("data", 5 * MS)
    day.launch("other", 5 * MS, 0, key="gap:backward>optimizer")
    assert day.idle().by_phase["other"] == 5 * MS


def test_a_copy_takes_at_least_its_bytes_over_the_bus() -> None:
    marks = [Mark(0, 0), Mark(5 * MS, 5 * MS)]
    found = idle(marks, [Stretch(0, "copy", {"copy": 5 * MS}, least_kernel_ns=2.0 * MS)])
    assert found.by_phase == {"copy": 3 * MS}


def test_idle_time_is_shared_by_the_phases_of_its_stretch() -> None:
    marks = [Mark(0, 0), Mark(10 * MS, 10 * MS)]
    found = idle(marks, [Stretch(0, "", {"data": 8 * MS, "other": 2 * MS})])
    assert found.by_phase == {"data": 8 * MS, "other": 2 * MS}
    assert found.total_ns == found.by_stretch[0] == found.device_ns == 10 * MS


def test_the_clock_is_set_anew_now_and_then() -> None:
    """A device clock that gains 50 µs over the run would seem ever further behind."""
    drift = 50 * US / (4 * CLOCK_STRETCH)
    marks = [Mark(at * MS, round(at * MS + at * drift)) for at in range(4 * CLOCK_STRETCH)]
    assert max(lags_ns(marks)) < 50 * US / 4 + 1
    assert min(lags_ns(marks)) == 0


PHASES = st.sampled_from(("data", "forward", "backward", "logging"))
TURNS = st.lists(
    st.tuples(
        st.sampled_from(("wait", "launch", "catch_up")), PHASES, st.integers(0, 20), st.integers(0, 40)
    ),
    max_size=40,
)


def day_of(turns: list[tuple[str, str, int, int]]) -> Day:
    day = Day()
    for turn, phase, duration, kernels in turns:
        if turn == "catch_up":
            day.catch_up()
        elif turn == "wait":
            day.wait(phase, duration * MS)
        else:
            day.launch(phase, duration * MS, kernels * MS)
    return day


@given(TURNS)
def test_idle_time_lies_between_nothing_and_all_that_elapsed(turns: list[tuple[str, str, int, int]]) -> None:
    day = day_of(turns)
    found = day.idle()
    for stretch in day.stretches:
        elapsed_ns = day.marks[stretch.start + 1].device_ns - day.marks[stretch.start].device_ns
        assert 0 <= found.by_stretch.get(stretch.start, 0) <= elapsed_ns
    assert found.total_ns + found.unknown_ns <= found.device_ns
    assert found.device_ns == day.marks[-1].device_ns - day.marks[0].device_ns


@given(TURNS)
def test_what_launches_nothing_is_measured_exactly(turns: list[tuple[str, str, int, int]]) -> None:
    day = day_of([("wait" if turn == "launch" else turn, *rest) for turn, *rest in turns])
    assert {name: ns for name, ns in day.idle().by_phase.items() if ns} == {
        name: ns for name, ns in day.true_ns.items() if ns
    }


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(-1000, 1000)), min_size=2, max_size=30),
    st.sampled_from(("", "forward", "copy", "gap:a>b")),
    st.floats(0, 100),
)
def test_clocks_that_run_backwards_give_no_negative_time(
    rows: list[tuple[int, int]], key: str, least_kernel_ns: float
) -> None:
    marks = [Mark(*row) for row in rows]
    stretches = [Stretch(at, key, {"other": 1}, least_kernel_ns) for at in range(len(marks) - 1)]
    found = idle(marks, stretches)
    assert 0 <= found.total_ns <= found.device_ns
    assert all(ns >= 0 for ns in found.by_stretch.values())
