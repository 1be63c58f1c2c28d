"""The recorder: what outlives a kill, how little it holds in memory, and that nobody sees it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from whyidle.probes import recorder as recorder_module
from whyidle.probes.recorder import Recorder
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord, read_process

KILLS = 20
BUSY = """
import sys, time
from whyidle.probes.recorder import Recorder
recorder = Recorder(sys.argv[1])
recorder.start()
name = recorder.name("busy")
while True:
    now = time.perf_counter_ns()
    recorder.spans.append((0, recorder.training_thread, now, time.perf_counter_ns(), name, 0))
    time.sleep(0.001)
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(str(tmp_path))
    yield made
    made.end()


def records(folder: Path) -> list[ProcessRecord]:
    return [read_process(path) for path in sorted(folder.glob("*.rec"))]


def test_a_process_killed_at_any_moment_loses_less_than_a_second(tmp_path: Path) -> None:
    draw = random.Random(7)
    for _ in range(KILLS // 10):
        jobs = [subprocess.Popen([sys.executable, "-c", BUSY, tmp_path]) for _ in range(10)]
        time.sleep(1.5)
        for job in jobs:
            time.sleep(draw.random() * 0.15)
            job.send_signal(signal.SIGKILL)
            killed_ns = time.perf_counter_ns()
            job.wait()
            (path,) = tmp_path.glob(f"main-{job.pid}-*.rec")
            record = read_process(path)
            assert killed_ns - record.rows(schema.SPAN)[-1][3] < 1_000_000_000
            assert record.notes_of("name")[0]["text"] == "busy"
            assert not record.has_ended


def test_nothing_is_written_before_it_is_wanted(recorder: Recorder, tmp_path: Path) -> None:
    recorder.spans.append((0, 1, 2, 3, 4, 5))
    recorder.end()
    assert list(tmp_path.iterdir()) == []


def test_rows_and_notes_reach_the_file(recorder: Recorder, tmp_path: Path) -> None:
    recorder.start()
    number = recorder.name("tqdm")
    assert recorder.name("tqdm") == number
    recorder.spans.append((3, 1, 2, 3, number, 5))
    recorder.nexts.append((1, 2, 3, 4, 5, 6, 7, 0))
    recorder.fetches.append(tuple(range(10)))
    recorder.end()
    recorder.end()
    (record,) = records(tmp_path)
    assert record.rows(schema.SPAN) == [(3, 1, 2, 3, number, 5)]
    assert record.rows(schema.NEXT) == [(1, 2, 3, 4, 5, 6, 7, 0)]
    assert record.rows(schema.FETCH) == [tuple(range(10))]
    assert record.notes_of("name") == [{"type": "name", "id": number, "text": "tqdm"}]
    assert len(record.notes_of("end")) == 1
    assert record.header["pid"] == os.getpid()


def test_memory_is_bounded_when_nothing_is_flushed(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(recorder_module.ROWS_LIMIT + 1000):
        recorder.spans.append((0, 1, number, number, 0, 0))
    for number in range(recorder_module.NOTES_LIMIT + 1000):
        recorder.note("loader", id=number)
    for number in range(recorder_module.NAMES_LIMIT + 1000):
        recorder.name(f"phase {number}")
    recorder.start()
    recorder.end()
    (record,) = records(tmp_path)
    assert len(record.rows(schema.SPAN)) == recorder_module.ROWS_LIMIT
    assert record.rows(schema.SPAN)[-1][2] == recorder_module.ROWS_LIMIT + 999
    assert len(record.notes_of("loader")) == recorder_module.NOTES_LIMIT
    names = {note["id"]: note["text"] for note in record.notes_of("name")}
    assert len(names) == recorder_module.NAMES_LIMIT + 1
    assert names[recorder.name("one more")] == recorder_module.OTHER_NAME


def test_its_thread_is_not_among_the_programs(recorder: Recorder) -> None:
    before = threading.enumerate()
    recorder.start()
    time.sleep(0.05)
    assert threading.enumerate() == before
    blocked = [
        int(line.split()[1], 16)
        for task in Path("/proc/self/task").iterdir()
        for line in (task / "status").read_text().splitlines()
        if line.startswith("SigBlk")
    ]
    assert any(mask & (1 << (signal.SIGTERM - 1)) for mask in blocked)


RESTS = """
import os, sys, time
from whyidle.probes.recorder import Recorder
threads = lambda: len(os.listdir("/proc/self/task"))
def wait_for(count):
    for _ in range(200):
        if threads() == count:
            return
        time.sleep(0.01)
    sys.exit(f"{threads()} threads, not {count}")
recorder = Recorder(sys.argv[1])
recorder.start()
wait_for(2)
child = os.fork()
if child == 0:
    os._exit(threads())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
wait_for(2)
recorder.end()
wait_for(1)
"""


def test_it_rests_while_the_process_forks(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", RESTS, tmp_path], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [record.header["role"] for record in records(tmp_path)] == ["main"]


FORKS = """
import os, sys, time, warnings
from whyidle.probes.recorder import Recorder
warnings.simplefilter("error")
recorder = Recorder(sys.argv[1])
recorder.start()
for _ in range(20):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
recorder.spans.append((0, 1, 2, 3, 4, 5))
recorder.end()
"""


def test_forks_draw_no_warning(tmp_path: Path) -> None:
    """Python 3.12 and later warn where a process with threads forks."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKS, tmp_path], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(records(tmp_path)[0].rows(schema.SPAN)) == 1


def test_a_fork_that_trains_writes_its_own_file(recorder: Recorder, tmp_path: Path) -> None:
    recorder.start()
    recorder.name("inherited")
    recorder.spans.append((0, 1, 2, 3, 4, 5))
    child = os.fork()
    if child == 0:
        recorder.start()
        recorder.spans.append((1, 1, 2, 3, 4, 5))
        recorder.end()
        os._exit(0)
    os.waitpid(child, 0)
    recorder.end()
    by_role = {record.header["role"]: record for record in records(tmp_path)}
    assert by_role["main"].rows(schema.SPAN) == [(0, 1, 2, 3, 4, 5)]
    assert by_role["child"].rows(schema.SPAN) == [(1, 1, 2, 3, 4, 5)]
    assert by_role["child"].header["parent_pid"] == os.getpid()
    assert by_role["child"].notes_of("name")[0]["text"] == "inherited"


def test_a_worker_records_under_that_role(recorder: Recorder, tmp_path: Path) -> None:
    recorder.start()
    recorder.become_worker()
    recorder.fetches.append(tuple(range(10)))
    recorder.end()
    assert [record.header["role"] for record in records(tmp_path)] == ["main", "worker"]


def test_a_folder_that_is_gone_costs_only_the_record(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "gone"))
    recorder.start()
    recorder.spans.append((0, 1, 2, 3, 4, 5))
    recorder.end()
    assert list(tmp_path.iterdir()) == []


def test_the_hot_path_is_an_append(recorder: Recorder) -> None:
    """No lock, no file, no system call: a million rows a second at the very least."""
    append = recorder.spans.append
    begin_s = time.thread_time()
    for number in range(100_000):
        append((0, 1, number, number, 0, 0))
    assert time.thread_time() - begin_s < 0.1
