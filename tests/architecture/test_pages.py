"""The pages agree with the code: generated ones are fresh, commands exist, links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from published_schema import SCHEMA, complaints

from whyidle.cli import main as cli
from whyidle.errors import UsageError
from whyidle.reports.json_report import KEY_ORDER
from whyidle.reports.words import cause_ids

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAIRS = [(ROOT / "README.md", ROOT / "README.zh.md")] + [
    (page, ROOT / "docs" / "zh" / page.name) for page in sorted((ROOT / "docs" / "en").glob("*.md"))
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def fenced(page: Path) -> Iterator[tuple[str, str]]:
    """Language and text of each block of code."""
    yield from re.findall(
        r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def commands(page: Path) -> Iterator[str]:
    for language, text in fenced(page):
        if language in ("bash", "sh", "console"):
            yield from (line.removeprefix("$ ") for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_pages_exist(page: Path) -> None:
    for command in commands(page):
        words = shlex.split(command, comments=True)
        if words[:1] == ["whyidle"]:
            understood(words[1:])
        elif words and words[0].startswith("scripts/"):
            assert (ROOT / words[0]).stat().st_mode & 0o111, command


def understood(words: list[str]) -> None:
    name, *rest = words
    if name.startswith("-"):
        return
    parser = cli.make_parser(name)
    module = __import__(cli.COMMANDS[name][0], fromlist=["configure"])
    module.configure(parser)
    try:
        parsed = parser.parse_args(rest)
    except UsageError as error:
        pytest.fail(f"whyidle {' '.join(words)}: {error.message}")
    if name == "explain" and parsed.cause and parsed.cause != "CAUSE":
        assert parsed.cause in cause_ids()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name_of(page)} → {target}"


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=lambda page: name_of(page))
def test_both_languages_have_the_same_sections(english: Path, chinese: Path) -> None:
    levels = [
        [
            len(mark)
            for mark in re.findall(r"^(#+) ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
        ]
        for text in (english.read_text(encoding="utf-8"), chinese.read_text(encoding="utf-8"))
    ]
    assert levels[0] == levels[1]


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "README.zh.md"], ids=name_of)
def test_a_pasted_report_fits_a_terminal(page: Path) -> None:
    from whyidle.reports.columns import display_width

    reports = [text for language, text in fenced(page) if language == "text"]
    assert reports
    assert max(display_width(line) for text in reports for line in text.splitlines()) <= 80


# The published schema


def test_the_schema_names_every_key_in_order() -> None:
    assert tuple(SCHEMA["properties"]) == KEY_ORDER
    assert tuple(SCHEMA["required"]) == KEY_ORDER


def test_an_empty_run_fits_the_schema(tmp_path: Path) -> None:
    from whyidle.cli.commands.report import report_on

    (tmp_path / "run.json").write_text(json.dumps({"command": ["python", "train.py"], "exit_code": 1}))
    report = report_on(tmp_path)
    assert complaints(json.loads(json.dumps(report))) == []
