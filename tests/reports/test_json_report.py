from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import samples

from whyidle.errors import UsageError, WhyidleError
from whyidle.reports import json_report


def test_keys_come_in_the_order_of_the_schema() -> None:
    report = samples.starved()
    shuffled = {"zebra": 1, **dict(reversed(report.items()))}
    text = json_report.dumps(shuffled)
    assert list(json.loads(text)) == [*json_report.KEY_ORDER, "zebra"]
    assert json.loads(text) == shuffled


def test_what_json_cannot_hold_becomes_null_or_an_escape() -> None:
    text = json_report.dumps(
        {"wall_s": float("inf"), "command": ["训练.py", "\udcff"], "ranks": ({"x": float("nan")},)}
    )
    assert text.isascii()
    assert json.loads(text) == {"wall_s": None, "command": ["训练.py", "\udcff"], "ranks": [{"x": None}]}


def test_a_dash_is_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    json_report.write({"schema": 1}, "-")
    assert json.loads(capsys.readouterr().out) == {"schema": 1}


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    json_report.write({"schema": 1}, str(target))
    assert json.loads(target.read_text()) == {"schema": 1}
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "latest.json"
    link.symlink_to(tmp_path / "real.json")
    json_report.write({"schema": 1}, str(link))
    assert link.is_symlink()
    assert (tmp_path / "real.json").exists()


def test_a_device_is_written_to_not_replaced() -> None:
    json_report.write({"schema": 1}, os.devnull)
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("target", ["missing/report.json", ".", "file/report.json", "bad\0name"])
def test_a_place_that_cannot_be_written_is_one_line(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    with pytest.raises(WhyidleError) as caught:
        json_report.write({}, target)
    assert isinstance(caught.value, UsageError)
    assert "\n" not in caught.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
