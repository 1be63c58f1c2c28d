"""The demos: every script is in the table, needs little, and shows what it promises."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from published_schema import complaints

from whyidle.causes.all_causes import CAUSES
from whyidle.cli.commands import demo
from whyidle.cli.main import main

SCRIPTS = sorted(demo.FOLDER.glob("*.py"))


def test_the_table_names_every_script_and_its_cause() -> None:
    assert sorted(demo.DEMOS) == [script.stem for script in SCRIPTS]
    assert {each.cause for each in demo.DEMOS.values()} <= {None, *(cause.ID for cause in CAUSES)}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_needs_what_the_table_says(script: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
    assert imported - sys.stdlib_module_names == {"torch", *demo.DEMOS[script.stem].needs}


def test_list_names_every_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--list"]) == 0
    listing = capsys.readouterr().out
    assert all(name in listing for name in demo.DEMOS)
    assert max(map(len, listing.splitlines()[:-1])) <= 80


def test_an_unknown_demo_is_named_with_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "helthy"]) == 2
    assert "'healthy'" in capsys.readouterr().err


@pytest.mark.parametrize(("gone", "hint"), [("torch", '"whyidle[demo]"'), ("PIL", "pip install pillow")])
def test_what_is_missing_is_said_with_the_command_that_brings_it(
    gone: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == gone else name)
    assert main(["demo"]) == 5
    complaint = capsys.readouterr().err
    assert hint in complaint
    assert len(complaint.splitlines()) <= 3


@pytest.mark.torch
def test_the_demo_finds_what_is_planted_with_its_line(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    target = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "whyidle", "demo", "--json", str(target), "--out", str(tmp_path / "run")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(target.read_text())
    first = report["findings"][0]
    assert first["cause"] == "loader_without_workers"
    assert any(
        fact["fact"] == "hot_line" and fact["value"].startswith("photos.py:") for fact in first["evidence"]
    )
    assert "photos.py:" in done.stderr
    assert complaints(report) == []
