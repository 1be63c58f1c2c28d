from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import samples
from wcwidth import wcswidth

from whyidle.reports.columns import clip, display_width, pad, wrap
from whyidle.reports.terminal import render
from whyidle.reports.words import Words

WordsIn = Callable[[str], Words]


def text_of(report: dict[str, Any], words: Words, width: int = 80, colour: bool = False) -> str:
    return render(report, words=words, width=width, colour=colour)


def headline(report: dict[str, Any], words: Words) -> str:
    return text_of(report, words, width=160).split("\n\n")[0].replace("\n", " ")


def test_the_headline_names_share_cause_and_line(words_in: WordsIn) -> None:
    expected = "GPU idle 71 % of the time: your main process loads the data (data.py:41)"
    assert headline(samples.starved(), words_in("en")) == expected
    assert (
        headline(samples.starved(), words_in("zh"))
        == "GPU 有 71% 的时间空闲：主进程自己在加载数据（data.py:41）"
    )


def test_a_headline_without_a_line_drops_the_parenthesis(words_in: WordsIn) -> None:
    report = samples.starved()
    report["findings"][0]["evidence"] = []
    assert headline(report, words_in("en")).endswith("loads the data")
    assert headline(report, words_in("zh")).endswith("加载数据")


def test_a_cpu_run_speaks_of_compute(words_in: WordsIn) -> None:
    report = samples.starved()
    report["device"] = {"kind": "cpu", "name": "", "count": 1}
    text = text_of(report, words_in("en"))
    assert text.startswith("71 % of the time no compute ran: your main process")
    assert "GPU idle" not in text


def test_a_healthy_run_is_told_calmly_with_its_rate(words_in: WordsIn) -> None:
    text = text_of(samples.healthy(), words_in("en"))
    assert text.startswith("Nothing to fix: the GPU is busy 97 % of the time, at 8.4 steps/s\n")
    assert "1. " not in text
    assert "Small costs: logging too often 0.8 %" in text


def test_much_idle_time_without_a_finding_is_not_called_healthy(words_in: WordsIn) -> None:
    report = samples.healthy()
    report["idle_ratio"] = 0.4
    assert headline(report, words_in("en")).startswith("GPU idle 40 % of the time, and no cause")


def test_a_small_finding_does_not_take_the_blame_for_all(words_in: WordsIn) -> None:
    report = samples.starved()
    del report["findings"][0]
    assert headline(report, words_in("en")) == (
        "GPU idle 71 % of the time; the largest cause found takes 4.8 %: "
        "the loop waits for checkpoints (train.py:30)"
    )


def test_without_steps_it_says_what_could_not_be_seen(words_in: WordsIn) -> None:
    text = text_of(samples.without_steps(), words_in("en"))
    assert text.startswith("No training step was seen: the job never imported torch\n")
    assert " - the job failed with exit code 1\n" in text
    assert "per step" not in text


def test_findings_keep_their_order_and_show_price_saving_and_cure(words_in: WordsIn) -> None:
    text = text_of(samples.starved(), words_in("en"))
    first, second = text.index("1. loading in the main process"), text.index("2. checkpoints block the loop")
    assert first < second
    finding = text[first:second]
    for part in (
        "63 %   35.9 s",
        "num_workers             0\n",
        "wait for data per step  74.8 ms\n",
        "data.py:41 (81 %)",
        "step 119 → 44.1 ms (41–49), 2.7× faster",
        "Set num_workers=4 in your DataLoader (data.py:41).",
        "num_workers=4 (safe: same samples, same arithmetic)",
    ):
        assert part in finding
    assert "635 MB/s" in text[second:]
    assert "opt-in" in text[second:]


def test_the_end_tells_what_was_ruled_out_what_could_not_be_told_and_where_to_read_on(
    words_in: WordsIn,
) -> None:
    text = text_of(samples.starved(), words_in("en"))
    assert "Ruled out: too many workers, too few workers" in text
    assert "gpu clocks limited (needs the NVIDIA driver library (NVML))" in re.sub(r"\n\s+", " ", text)
    assert "whyidle itself cost 0.4 % of the run" in text
    assert text.endswith("whyidle explain loader_without_workers\n")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("report", [samples.starved(), samples.healthy(), samples.without_steps()])
def test_no_line_is_wider_than_the_terminal(
    report: dict[str, Any], width: int, language: str, words_in: WordsIn
) -> None:
    for line in text_of(report, words_in(language), width).splitlines():
        assert wcswidth(line) <= width, line
        assert line == line.rstrip()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_columns_of_the_phase_table_line_up(language: str, words_in: WordsIn) -> None:
    lines = text_of(samples.starved(), words_in(language)).splitlines()
    rows = [line for line in lines if re.search(r"\b(data|train)\.py:\d+", line) and " ms " in line]
    ends = {display_width(re.split(r"\b(?:data|train)\.py", row)[0]) for row in rows}
    assert len(rows) >= 5
    assert len(ends) == 1


def test_the_bar_spends_every_column_on_a_phase(words_in: WordsIn) -> None:
    bar = next(
        line for line in text_of(samples.starved(), words_in("en")).splitlines() if line.startswith("█")
    )
    assert len(bar) == 80
    assert 50 <= bar.count("█") <= 52


def test_colour_adds_escapes_and_nothing_else(words_in: WordsIn) -> None:
    plain = text_of(samples.starved(), words_in("en"))
    painted = text_of(samples.starved(), words_in("en"), colour=True)
    assert "\x1b[" in painted
    assert "\x1b" not in plain
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", painted)
    assert re.sub("[▓▒░·]", "█", plain) == stripped.replace("·", "█")


def test_a_report_of_unknowns_still_renders(words_in: WordsIn) -> None:
    report = samples.starved()
    finding = dict.fromkeys(report["findings"][0])
    unknown = dict.fromkeys(report)
    emptied = {
        **report,
        "steps": dict.fromkeys(report["steps"]),
        "phases": {"data": dict.fromkeys(report["phases"]["data"]), "forward": {}, "loss": None},
        "findings": [
            finding,
            {"cause": "x", "evidence": [{"fact": "num_workers", "value": None}], "remedies": [{}]},
        ],
        "notes": [finding],
        "cannot_tell": [{"cause": None, "needs": None}],
        "problems": [{"id": None, "detail": None}],
        "lines": [{}],
        "idle_ratio": None,
    }
    for language in ("en", "zh"):
        assert text_of(unknown, words_in(language))
        assert text_of({}, words_in(language))
        assert text_of(emptied, words_in(language))


def test_a_cause_without_a_text_is_shown_by_its_id(words_in: WordsIn) -> None:
    report = samples.starved()
    report["findings"][0]["cause"] = "something_new"
    assert "1. something new" in text_of(report, words_in("zh"))


def test_huge_numbers_and_long_names_stay_within_the_width(words_in: WordsIn) -> None:
    path = "/mnt/" + "/".join(["a_very_long_folder_name_of_somebody"] * 9) + "/数据集_loading_module.py:4141"
    report = samples.starved()
    report["phases"]["data"].update(hot_line=path, host_s=1e12)
    report["steps"].update(median_ms=1e12, mean_ms=float("nan"), count=10**30)
    report["device"]["name"] = "x" * 300
    report["findings"][0].update(cost_s=1e15, cost_ratio=50.0)
    report["findings"][0]["evidence"] += [
        {"fact": "hot_line", "value": path},
        {"fact": "live_objects_count", "value": 10**400},
        {"fact": "a_fact_nobody_has_heard_of_and_that_goes_on_bytes", "value": -(10**21)},
        {"fact": "same_file", "value": "evil\x1b[31m\nname\udcff"},
    ]
    for width in (40, 80, 160):
        text = text_of(report, words_in("en"), width)
        assert "\x1b" not in text
        assert "\udcff" not in text
        assert max(map(display_width, text.splitlines())) <= width


def test_several_ranks_are_compared(words_in: WordsIn) -> None:
    report = samples.starved()
    report["ranks"] = [{"rank": 0, "median_ms": 118.0}, {"rank": 1, "median_ms": 131.0}]
    assert "2 ranks, median step 118 ms (rank 0) to 131 ms (rank 1)" in text_of(report, words_in("en"))


def test_wrapping_respects_chinese_punctuation() -> None:
    lines = wrap("工作进程都在忙，GPU 只能等待（见 data.py:41）。", 18, "", "  ")
    assert all(display_width(line) <= 18 for line in lines)
    assert not any(line.lstrip()[0] in "，。）" for line in lines)
    assert not any(line[-1] == "（" for line in lines)
    assert "".join(line.replace(" ", "") for line in lines) == "工作进程都在忙，GPU只能等待（见data.py:41）。"


def test_wide_characters_take_two_columns() -> None:
    assert pad("数据", 6) == "数据  "
    assert pad("数据", 6, right=True) == "  数据"
    assert clip("数据加载", 5) == "数据…"
    assert clip("data", 4) == "data"
