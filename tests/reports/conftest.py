from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from whyidle.reports import words as words_module
from whyidle.reports.words import CauseText, Words

CAUSES = {
    "en": {
        "loader_without_workers": CauseText(
            "loading in the main process",
            "your main process loads the data ({line})",
            "Set num_workers={num_workers} in your DataLoader ({line}).",
            "# Loading in the main process",
        ),
        "checkpoint_blocks": CauseText(
            "checkpoints block the loop",
            "the loop waits for checkpoints ({line})",
            "Save in the background.",
            "",
        ),
    },
    "zh": {
        "loader_without_workers": CauseText(
            "主进程加载数据",
            "主进程自己在加载数据（{line}）",
            "把 DataLoader 的 num_workers 设为 {num_workers}（{line}）。",
            "",
        ),
        "checkpoint_blocks": CauseText(
            "存检查点阻塞训练", "训练循环在等检查点写完（{line}）", "改为后台保存。", ""
        ),
        **{
            name: CauseText("工作进程太多而互相争抢处理器", "", "", "")
            for name in ("too_many_workers", "copy_blocks_host")
        },
    },
}


@pytest.fixture
def words_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Words]:
    """Words whose cause texts are ours, so that editing a real text breaks no test of the layout."""
    monkeypatch.setattr(words_module, "_cause_text", lambda language, cause: CAUSES[language].get(cause))
    return Words  # type: ignore[return-value]
