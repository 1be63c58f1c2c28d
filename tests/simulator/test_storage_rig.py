from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest
import storage_rig


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"{number}.bin").write_bytes(bytes([number]) * 100_000)
    return tmp_path


def took_s(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@pytest.mark.parametrize(
    "read",
    [
        lambda p: p.read_bytes(),
        lambda p: open(p, "rb").read(),  # noqa: PTH123, SIM115
        lambda p: io.open(p, encoding="latin-1").read().encode("latin-1"),  # noqa: SIM115, UP020
        lambda p: os.read(os.open(p, os.O_RDONLY), 200_000),
    ],
)
def test_reading_pays_and_gives_the_same_bytes(folder: Path, read) -> None:
    expected = bytes([2]) * 100_000
    with storage_rig.slow_storage(folder, open_ms=20, mb_per_s=2):
        start = time.perf_counter()
        assert read(folder / "2.bin") == expected
        assert time.perf_counter() - start >= 0.02 + 0.05


def test_files_elsewhere_are_untouched(folder: Path, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other") / "file"
    with storage_rig.slow_storage(folder, open_ms=60_000):
        other.write_text("fast")
        assert took_s(other.read_text) < 30


def test_writing_and_missing_files_work_as_ever(folder: Path) -> None:
    with storage_rig.slow_storage(folder):
        (folder / "new.txt").write_text("hello")
        assert (folder / "new.txt").read_text() == "hello"
        with pytest.raises(FileNotFoundError):
            (folder / "absent").read_bytes()


def test_everything_is_restored(folder: Path) -> None:
    before = open, io.open, os.open, os.read, os.stat
    with storage_rig.slow_storage(folder):
        assert open is not before[0]
    assert (open, io.open, os.open, os.read, os.stat) == before


def test_operations_per_second_hold_over_forked_workers(folder: Path) -> None:
    torch_data = pytest.importorskip("torch").utils.data

    class Files(torch_data.Dataset):
        def __len__(self) -> int:
            return 16

        def __getitem__(self, index: int) -> int:
            with open(folder / f"{index % 4}.bin", "rb", buffering=0) as file:  # noqa: PTH123
                return file.read(1)[0]

    with storage_rig.slow_storage(folder, iops=100):
        loader = torch_data.DataLoader(Files(), batch_size=4, num_workers=2)
        start = time.perf_counter()
        values = [int(v) for batch in loader for v in batch]
        # 16 opens and 16 reads at 100 a second, whatever the number of workers
        assert time.perf_counter() - start >= 0.31
    assert values == [0, 1, 2, 3] * 4
