from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import slow_mount

pytestmark = pytest.mark.skipif(slow_mount.unavailable() is not None, reason=str(slow_mount.unavailable()))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "small.txt").write_text("small")
    (tmp_path / "large.bin").write_bytes(os.urandom(300_000))
    return tmp_path


def test_every_program_sees_the_same_files_later(source: Path) -> None:
    with slow_mount.mounted(source, open_ms=20, mb_per_s=10) as far:
        assert sorted(os.listdir(far)) == ["deep", "large.bin"]  # noqa: PTH208
        start = time.perf_counter()
        read = subprocess.run(["cat", far / "large.bin"], capture_output=True, check=True).stdout
        assert time.perf_counter() - start >= 0.02 + 0.03
        assert read == (source / "large.bin").read_bytes()
        assert (far / "deep" / "small.txt").stat().st_size == 5
        with pytest.raises(FileNotFoundError):
            (far / "absent").read_bytes()
        with pytest.raises(OSError, match="Read-only"):
            (far / "new").write_text("no")
    assert not far.exists()


def test_latencies_overlap_between_readers(source: Path) -> None:
    with slow_mount.mounted(source, open_ms=500) as far, ThreadPoolExecutor(4) as pool:
        start = time.perf_counter()
        assert set(pool.map(lambda _: (far / "deep" / "small.txt").read_text(), range(4))) == {"small"}
        assert 0.5 <= time.perf_counter() - start < 1.9
