"""A cause is complete: its file, two texts that match it, its cases, and one line in the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whyidle.causes.all_causes import CAUSES
from whyidle.cli.commands.explain import GROUPS

ROOT = Path(__file__).resolve().parents[2]
CAUSES_FOLDER = ROOT / "src" / "whyidle" / "causes"
NO_CAUSES = {"__init__", "all_causes", "base", "diagnose"}
IDS = [cause.ID for cause in CAUSES]
HEADINGS = {
    "en": [
        "What it means",
        "How it is recognised",
        "What to do",
        "When this verdict is wrong",
        "How it was checked",
    ],
    "zh": ["这是什么情况", "如何识别", "怎么改", "什么时候会误判", "如何验证"],
}


def text_of(cause: str, language: str) -> str:
    return (CAUSES_FOLDER / "text" / language / f"{cause}.md").read_text(encoding="utf-8")


def fields_of(cause: str, language: str) -> dict[str, str]:
    return dict(re.findall(r"^(name|headline|action): +(\S.*)$", text_of(cause, language), re.MULTILINE))


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{([a-z_][a-z0-9_]*)\}", text))


def test_the_table_is_sorted_and_whole() -> None:
    assert sorted(IDS) == IDS
    files = {
        path.stem
        for path in CAUSES_FOLDER.glob("*.py")
        if re.search(r"^ID = ", path.read_text(), re.MULTILINE)
    }
    assert files == set(IDS)


def test_no_text_is_left_over() -> None:
    texts = {path.stem for path in (CAUSES_FOLDER / "text").rglob("*.md")}
    cases = {path.stem for path in (ROOT / "tests" / "causes").glob("*.yaml")}
    assert texts | cases <= set(IDS)


def test_every_cause_has_its_place_in_the_catalogue() -> None:
    assert set(IDS) <= {cause for group in GROUPS.values() for cause in group}


@pytest.mark.parametrize("cause", IDS)
def test_id_is_the_name_of_file_texts_and_cases(cause: str) -> None:
    module = next(each for each in CAUSES if cause == each.ID)
    assert module.__name__ == f"whyidle.causes.{cause}"  # type: ignore[attr-defined]
    for path in (
        CAUSES_FOLDER / "text" / "en" / f"{cause}.md",
        CAUSES_FOLDER / "text" / "zh" / f"{cause}.md",
        ROOT / "tests" / "causes" / f"{cause}.yaml",
    ):
        assert path.is_file(), path.relative_to(ROOT)


@pytest.mark.parametrize("language", HEADINGS)
@pytest.mark.parametrize("cause", IDS)
def test_a_text_has_all_its_parts(cause: str, language: str) -> None:
    fields = fields_of(cause, language)
    assert set(fields) == {"name", "headline", "action"}
    assert len(fields["name"].split()) <= 6
    assert re.findall(r"^## (.*)$", text_of(cause, language), re.MULTILINE) == HEADINGS[language]


@pytest.mark.parametrize("cause", IDS)
def test_both_texts_have_the_same_placeholders_and_settings(cause: str) -> None:
    english, chinese = fields_of(cause, "en"), fields_of(cause, "zh")
    for part in ("headline", "action"):
        assert placeholders(english[part]) == placeholders(chinese[part])
    source = (CAUSES_FOLDER / f"{cause}.py").read_text(encoding="utf-8")
    for name in placeholders(english["headline"] + english["action"]) - {"line"}:
        assert f'"{name}"' in source, f"nothing in {cause}.py gives {{{name}}}"
