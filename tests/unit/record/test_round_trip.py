"""What the writer writes the reader reads, whole or cut, honest or damaged."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyidle.errors import UnreadableInput
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord, read_process, read_run
from whyidle.record.writer import Writer

INTEGERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.sampled_from(sorted(schema.TABLES)).flatmap(
    lambda table: st.tuples(
        st.just(table),
        st.lists(st.tuples(*[INTEGERS] * len(schema.TABLES[table])), max_size=20),
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NOTES = st.dictionaries(st.text(), JSON).map(lambda fields: {**fields, "type": "note"})


def write(path: Path, frames: list[Any], header: dict[str, Any] | None = None) -> None:
    path.unlink(missing_ok=True)
    writer = Writer(str(path), header or {"role": "main"})
    for frame in frames:
        if isinstance(frame, dict):
            writer.json(frame)
        else:
            writer.rows(*frame)
    assert writer.failure is None
    assert writer.written_bytes == path.stat().st_size
    writer.abandon()


def wanted(frames: list[Any]) -> tuple[dict[int, list[Any]], list[Any]]:
    tables: dict[int, list[Any]] = {}
    for table, rows in (frame for frame in frames if isinstance(frame, tuple)):
        if rows:
            tables.setdefault(table, []).extend(rows)
    return tables, [frame for frame in frames if isinstance(frame, dict)]


def contents(record: ProcessRecord) -> tuple[dict[int, list[Any]], list[Any]]:
    return record.tables, record.notes_of("note")


@given(frames=st.lists(ROWS | NOTES, max_size=12), header=st.dictionaries(st.text(), JSON))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, frames: list[Any], header: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.rec"
    write(path, frames, header)
    record = read_process(path)
    assert record.header == (header or {"role": "main"})
    assert contents(record) == wanted(frames)
    assert not record.is_truncated


SMALL = [
    (schema.SPAN, [(1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12)]),
    {"type": "note", "text": "名"},
    (schema.USAGE, [tuple(range(len(schema.TABLES[schema.USAGE])))]),
    {"type": "note", "text": "last"},
]


def test_a_file_cut_at_any_byte_reads_up_to_its_last_whole_frame(tmp_path: Path) -> None:
    path = tmp_path / "main-1-0.rec"
    sizes = []
    for count in range(len(SMALL) + 1):
        write(path, SMALL[:count])
        sizes.append(path.stat().st_size)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        if size < sizes[0]:
            with pytest.raises(UnreadableInput):
                read_process(path)
            continue
        whole = max(count for count, at in enumerate(sizes) if at <= size)
        record = read_process(path)
        assert contents(record) == wanted(SMALL[:whole])
        assert record.is_truncated == (size not in sizes)


def test_no_flipped_bit_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "main-1-0.rec"
    write(path, SMALL)
    data = path.read_bytes()
    write(path, [])
    frames_at = path.stat().st_size
    honest = wanted(SMALL)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            record = read_process(path)
        except UnreadableInput:
            assert bit // 8 < frames_at
            continue
        tables, notes = contents(record)
        assert record.is_truncated == (bit // 8 >= frames_at)
        assert all(tables[table] == honest[0][table] for table in tables)
        assert all(note in honest[1] for note in notes)


@given(data=st.binary(max_size=400))
def test_foreign_bytes_are_refused_or_read_as_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "foreign.rec"
    for start in (b"", schema.MAGIC, schema.MAGIC + b"\x01\0\0\0"):
        path.write_bytes(start + data)
        try:
            assert read_process(path).tables == {}
        except UnreadableInput:
            pass


def run_folder(path: Path, **info: Any) -> Path:
    path.mkdir(exist_ok=True)
    (path / "run.json").write_text(json.dumps({"command": ["python"], **info}))
    return path


def problems(path: Path) -> list[str]:
    return [problem["id"] for problem in read_run(path).problems]


def test_folders_that_hold_no_run(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (tmp_path / "missing", file, tmp_path):
        with pytest.raises(UnreadableInput) as caught:
            read_run(path)
        assert str(path) in caught.value.message
        assert caught.value.hint


def test_foreign_and_damaged_files_beside_a_good_one(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    write(folder / "main-1-0.rec", SMALL)
    assert problems(folder) == []
    (folder / "a-foreign.rec").write_bytes(b"PNG")
    (folder / "b-empty.rec").write_bytes(b"")
    (folder / "c-folder.rec").mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "host.jsonl").write_bytes(b'{"a": 1}\n[]\n\xff\xfe\n{"b": 2')
    write(folder / "worker-2-0.rec", SMALL)
    with (folder / "worker-2-0.rec").open("r+b") as file:
        file.truncate((folder / "worker-2-0.rec").stat().st_size - 1)
    (folder / "worker-3-0.rec.lost").write_bytes(b"")
    run = read_run(folder)
    assert [process.path.name for process in run.processes] == ["main-1-0.rec", "worker-2-0.rec"]
    assert run.host == [{"a": 1}]
    assert problems(folder) == [*["foreign_files"] * 3, "record_truncated", "record_lost"]


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", '{"command": '])
def test_an_unreadable_run_json_leaves_the_processes(tmp_path: Path, text: str) -> None:
    write(tmp_path / "main-1-0.rec", SMALL)
    (tmp_path / "run.json").write_text(text)
    run = read_run(tmp_path)
    assert run.run == {}
    assert len(run.processes) == 1
    assert problems(tmp_path) == ["foreign_files"]


def newer(path: Path) -> None:
    write(path, SMALL)
    data = bytearray(path.read_bytes())
    data[len(schema.MAGIC)] = schema.VERSION + 1
    path.write_bytes(data)


def test_newer_versions(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    newer(folder / "main-1-0.rec")
    with pytest.raises(UnreadableInput) as caught:
        read_run(folder)
    assert "version" in caught.value.message
    assert caught.value.hint is not None
    assert "upgrade" in caught.value.hint
    write(folder / "main-2-0.rec", SMALL)
    assert problems(folder) == ["other_process_newer"]


# -- a writer that cannot write -------------------------------------------------------------------


def test_a_writer_without_a_place_loses_its_rows_and_nothing_else(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "missing" / "main-1-0.rec"), {})
    writer.json({"type": "note"})
    writer.rows(schema.SPAN, [(1, 2, 3, 4, 5, 6)] * 3)
    assert isinstance(writer.failure, FileNotFoundError)
    assert writer.lost_rows == 3


LIMITED = """
import resource, sys
from whyidle.record import schema
from whyidle.record.writer import Writer
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
writer = Writer(sys.argv[1], {"role": "main"})
for number in range(200):
    writer.rows(schema.SPAN, [(number, 2, 3, 4, 5, 6)])
print(writer.failure is not None, writer.lost_rows)
"""


def test_a_full_disk_leaves_a_readable_file_and_a_mark(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "run") / "main-1-0.rec"
    ended = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True)
    failed, lost = ended.stdout.split()
    rows = read_process(path).rows(schema.SPAN)
    assert failed == "True"
    assert [row[0] for row in rows] == list(range(200 - int(lost)))
    assert "record_lost" in problems(tmp_path / "run")
    assert resource.getrlimit(resource.RLIMIT_FSIZE) != (4096, 4096)


def test_a_file_number_that_the_program_took_over_is_left_alone(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "main-1-0.rec"), {})
    number = writer._fd
    os.close(number)
    mine = os.open(tmp_path / "mine", os.O_RDWR | os.O_CREAT)
    assert mine == number
    try:
        writer.rows(schema.SPAN, [(1, 2, 3, 4, 5, 6)])
        writer.abandon()
        assert os.fstat(mine).st_size == 0
        assert writer.lost_rows == 1
    finally:
        os.close(mine)


def test_two_writers_never_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "main-1-0.rec")
    assert Writer(path, {}).failure is None
    assert isinstance(Writer(path, {}).failure, FileExistsError)


def test_a_cut_at_random_in_a_large_file_loses_at_most_one_frame(tmp_path: Path) -> None:
    path = tmp_path / "main-1-0.rec"
    write(path, [(schema.SPAN, [(0, 1, 2, 3, 4, number)] * 100) for number in range(50)])
    data = path.read_bytes()
    draw = random.Random(1)
    for _ in range(50):
        size = draw.randrange(200, len(data))
        path.write_bytes(data[:size])
        assert len(read_process(path).rows(schema.SPAN)) >= (size - 200) // 48 - 110
