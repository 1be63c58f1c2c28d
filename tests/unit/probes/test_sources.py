"""The user's lines as they were when the job ran, and the loops inside the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyidle.probes import sources
from whyidle.probes.sources import collect, inner_loops

SOURCE = """\
for epoch in range(3):
    for x in loader:
        loss = model(x)
        for row in loss:
            total += row
        loss.backward()
        optimizer.step()
names = [clean(name)
         for name in files]
"""


def test_loops_that_train_are_not_inner_loops() -> None:
    assert inner_loops(SOURCE) == {4: 4, 5: 4, 8: 8, 9: 8}


@pytest.mark.parametrize("text", ["def (", "\x00", "(" * 2000])
def test_what_does_not_parse_has_no_loops(text: str) -> None:
    assert inner_loops(text) == {}


def test_lines_are_kept_with_their_loop(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    entries = collect([(str(file), 5), (str(file), 3), (str(file), 99), (str(file), 0), (str(file), 5)])
    assert [(entry["line"], entry["text"], entry["inner_loop_line"]) for entry in entries] == [
        (3, "loss = model(x)", None),
        (5, "total += row", 4),
    ]


def test_unreadable_files_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "large.py"
    large.write_text("x = 1\n")
    monkeypatch.setattr(sources, "FILE_LIMIT_BYTES", 3)
    places = [
        (str(large), 1),
        (str(tmp_path), 1),
        (str(tmp_path / "missing.py"), 1),
        ("\x00", 1),
        ("<string>", 1),
    ]
    assert collect(places) == []


def test_long_lines_and_odd_bytes(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_bytes(b"# \xff\n" + b"x = '" + b"y" * 500 + b"'\n")
    entries = collect([(str(file), 1), (str(file), 2)])
    assert entries[0]["text"] == "# \ufffd"
    assert len(entries[1]["text"]) == sources.TEXT_LIMIT
