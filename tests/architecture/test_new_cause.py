"""`scripts/new_cause` writes a cause that fits into the house as it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name in ("scripts/new_cause", "src/whyidle"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    return tmp_path


def new_cause(house: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [house / "scripts" / "new_cause", *names], cwd="/", capture_output=True, text=True, check=False
    )


def test_it_writes_five_files_that_work(house: Path) -> None:
    done = new_cause(house, "optimizer_on_host")
    assert done.returncode == 0, done.stderr
    for place in (
        "src/whyidle/causes/optimizer_on_host.py",
        "src/whyidle/causes/text/en/optimizer_on_host.md",
        "src/whyidle/causes/text/zh/optimizer_on_host.md",
        "tests/causes/optimizer_on_host.yaml",
    ):
        assert (house / place).is_file()
        assert place in done.stdout
    code = (
        "from whyidle.analysis.facts import Facts\n"
        "from whyidle.causes.all_causes import CAUSES\n"
        "ids = [cause.ID for cause in CAUSES]\n"
        "assert ids == sorted(ids)\n"
        "print(CAUSES[ids.index('optimizer_on_host')].judge(Facts()))\n"
    )
    environ = {"PYTHONPATH": str(house / "src")}
    judged = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert judged.stdout == "RuledOut(cause='optimizer_on_host')\n", judged.stderr


@pytest.mark.parametrize("name", ["", "Optimizer_On_Host", "optimizer", "a-b", "loader_without_workers"])
def test_a_name_that_will_not_do_changes_nothing(house: Path, name: str) -> None:
    before = sorted(house.rglob("*"))
    done = new_cause(house, name)
    assert done.returncode != 0
    assert done.stderr
    assert sorted(house.rglob("*")) == before
