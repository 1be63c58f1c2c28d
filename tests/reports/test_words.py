from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import whyidle
from whyidle.reports.words import NO_BREAK, Words, choose_language, fill, parse_cause_text

PACKAGE = Path(whyidle.__file__).parent
CAUSE_TEXTS = PACKAGE / "causes" / "text"
CAUSES = sorted({path.stem for path in CAUSE_TEXTS.glob("*/*.md")})
PLACEHOLDER = re.compile(r"\{\w+\}")


def table(language: str) -> dict[str, str]:
    sections = json.loads((PACKAGE / "reports" / "text" / f"{language}.json").read_text(encoding="utf-8"))
    return {f"{section}.{key}": text for section, texts in sections.items() for key, text in texts.items()}


def test_both_languages_say_the_same_things() -> None:
    english, chinese = table("en"), table("zh")
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(chinese[key])), key


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_has_the_same_page_in_both_languages(cause: str) -> None:
    english, chinese = (
        parse_cause_text((CAUSE_TEXTS / language / f"{cause}.md").read_text(encoding="utf-8"), cause)
        for language in ("en", "zh")
    )
    for text in (english, chinese):
        assert text.name
        assert text.headline
        assert text.action
    for field in ("headline", "action"):
        in_english, in_chinese = (
            set(PLACEHOLDER.findall(getattr(text, field))) for text in (english, chinese)
        )
        assert in_english == in_chinese
    headings = [
        [line.split()[0] for line in text.body.splitlines() if line.startswith("#")]
        for text in (english, chinese)
    ]
    assert headings[0] == headings[1] == ["#", "##", "##", "##", "##", "##"]


@pytest.mark.parametrize(
    ("option", "environ", "language"),
    [
        ("zh", {"LANG": "en_US.UTF-8"}, "zh"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LC_ALL": "", "LC_MESSAGES": "zh_TW.UTF-8", "LANG": "de_DE"}, "zh"),
        (None, {}, "en"),
    ],
)
def test_the_option_decides_then_the_locale(
    option: str | None, environ: dict[str, str], language: str
) -> None:
    assert choose_language(option, environ) == language


@pytest.mark.parametrize(
    ("fact", "value", "shown"),
    [
        ("num_workers", 0, "0"),
        ("batch_size", 1024, "1024"),
        ("wait_per_step_ns", 85_123_456, "85.1 ms"),
        ("start_ns", 3_000_000_000_000, "50 min"),
        ("end_ns", 36_000_000_000_000, "10 h"),
        ("time_per_call_ns", 0, "0 s"),
        ("time_per_call_ns", 999_999, "1 ms"),
        ("written_bytes", 1_740_000_000, "1.74 GB"),
        ("bytes_per_s", 999_999.0, "1 MB/s"),
        ("involuntary_switches_per_s", 12_345.0, "12.3 k/s"),
        ("worker_busy_ratio", 0.9861, "99 %"),
        ("gc_ratio", 0.0312, "3.1 %"),
        ("gc_ratio", 0.0001, "< 0.1 %"),
        ("live_objects_count", 1_234_567, "1.23 M"),
        ("opens_per_sample_count", 1.0243, "1.02"),
        ("persistent_workers", False, "no"),
        ("library", "PIL", "PIL"),
        ("gc_ratio", None, "not known"),
        ("gc_ratio", float("nan"), "not known"),
    ],
)
def test_values_are_written_by_the_unit_in_the_name(fact: str, value: object, shown: str) -> None:
    assert Words("en").value(fact, value).replace(NO_BREAK, " ") == shown


def test_unknown_ids_are_spoken_as_they_are() -> None:
    words = Words("zh")
    assert words.fact_label("brand_new_fact") == "brand new fact"
    assert words.phase("warp") == "warp"
    assert words.cause_text("no_such_cause").name == "no such cause"
    assert words.cause_text("../../../etc/passwd").action == ""


def test_a_missing_value_takes_its_parenthesis_along() -> None:
    assert fill("loads the data ({line})", {}) == "loads the data"
    assert fill("加载数据（{line}）", {"line": None}) == "加载数据"
    assert fill("Set num_workers={num_workers} (was {old}).", {"num_workers": 4}) == "Set num_workers=4."
    assert fill("save({'model': m}) at {line}", {"line": "a.py:1"}) == "save({'model': m}) at a.py:1"
    assert fill("at {line}", {"line": "{line}"}) == "at {line}"


def test_a_page_without_front_matter_is_all_body() -> None:
    text = parse_cause_text("# Title\ntext", "some_cause")
    assert (text.name, text.body) == ("some cause", "# Title\ntext")


def test_front_matter_may_hold_colons_and_quotes() -> None:
    text = parse_cause_text('---\nname: "a: b"\nheadline: x: y ({line})\naction: do\n---\n\n# T\n', "c")
    assert (text.name, text.headline, text.action, text.body) == ("a: b", "x: y ({line})", "do", "# T")
