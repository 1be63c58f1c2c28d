from __future__ import annotations

import re

import pytest
from wcwidth import wcswidth

from whyidle.cli.commands import explain
from whyidle.cli.main import main
from whyidle.reports import words as words_module
from whyidle.reports.words import cause_ids, parse_cause_text

PAGE = """---
name: checkpoints block the loop
headline: the loop waits
action: Save less often.
---
# Checkpoints block the loop

A paragraph that is **long** enough to need wrapping because it goes on and on, well
past the eightieth column of any terminal.

## What to do

- Save with `torch.save` in a thread, which is an item long enough to be wrapped onto a second line.
- Save less often.

```python
if step % 1000 == 0:
    save()
```
"""
CHINESE = (
    "---\nname: 存检查点阻塞训练\n---\n# 存检查点阻塞训练\n\n训练循环在等\n检查点写完，"
    + "GPU 空闲。" * 20
    + "\n"
)


@pytest.fixture(autouse=True)
def one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"en": PAGE, "zh": CHINESE}
    monkeypatch.setattr(
        words_module, "_cause_text", lambda language, cause: parse_cause_text(pages[language], cause)
    )
    monkeypatch.setattr(
        explain, "cause_ids", lambda: ["checkpoint_blocks", "copy_blocks_host", "not_grouped"]
    )
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LC_ALL", "C")


def test_a_page_is_wrapped_and_its_code_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "checkpoint_blocks"]) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "Checkpoints block the loop\n====" in text
    assert "**" not in text
    assert "    if step % 1000 == 0:\n        save()\n" in text
    assert re.search(r"\n- Save with .*\n  \S", text)
    assert "action:" not in text


def test_a_chinese_page_joins_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "checkpoint_blocks", "--lang", "zh"]) == 0
    text = capsys.readouterr().out
    assert "训练循环在等检查点写完，GPU" in text
    assert all(wcswidth(line) <= 80 for line in text.splitlines())


def test_a_name_may_be_written_with_dashes() -> None:
    assert main(["explain", "Checkpoint-Blocks"]) == 0


def test_the_list_is_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    text = capsys.readouterr().out
    assert text.index("Training loop") < text.index("  checkpoint_blocks") < text.index("Other")
    assert text.index("Other") < text.index("  not_grouped")
    assert "Input pipeline" not in text


@pytest.mark.parametrize("asked", ["checkpoint_block", "checkpoint", "../../etc/passwd", ""])
def test_an_unknown_cause_is_exit_2_with_what_is_near(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", asked]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 2
    if asked.startswith("checkpoint"):
        assert "checkpoint_blocks" in error


def test_every_grouped_cause_is_in_one_group_only() -> None:
    causes = [cause for group in explain.GROUPS.values() for cause in group]
    assert len(causes) == len(set(causes))
    assert cause_ids() == sorted(cause_ids())
