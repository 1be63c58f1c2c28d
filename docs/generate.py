"""Writes the pages of docs/ that repeat what the code says; `--check` fails where one is out of date.

Called by scripts/docs. The commands come from the argument parsers, the record format from
`record/schema.py`, the JSON report from `report.schema.json` and the words of the reports, the index
of causes from their texts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from whyidle.cli import main as cli
from whyidle.cli.commands.explain import GROUPS
from whyidle.record import schema as record_schema
from whyidle.reports.words import Language, Words, cause_ids, fill

DOCS = Path(__file__).resolve().parent
MARK = "<!-- Written by scripts/docs; edit its source, not this page. -->"
PAGE_WORDS: dict[Language, dict[str, str]] = json.loads(
    (DOCS / "page_words.json").read_text(encoding="utf-8")
)
Row = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/docs", description="Write the generated pages of docs/.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a page is out of date"
    )
    is_check = parser.parse_args().check
    stale = [path for path, text in pages() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if not is_check:
        texts = dict(pages())
        for path in stale:
            path.write_text(texts[path], encoding="utf-8")
    for path in stale:
        print(f"{path.relative_to(DOCS.parent)} {'is out of date: scripts/docs' if is_check else 'written'}")
    return 1 if is_check and stale else 0


def pages() -> Iterator[tuple[Path, str]]:
    for language in ("en", "zh"):
        page = PageWriter(language)
        for name, lines in (
            ("cli", page.cli()),
            ("record-format", page.record_format()),
            ("json-report", page.json_report()),
            ("causes", page.causes()),
        ):
            yield DOCS / language / f"{name}.md", "\n".join([MARK, "", *lines]).rstrip() + "\n"


class PageWriter:
    """The generated pages in one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.says = PAGE_WORDS[language]
        self.words = Words(language)

    def cli(self) -> Iterator[str]:
        yield from self._opening("cli")
        for name, (module, summary) in cli.COMMANDS.items():
            parser = cli.make_parser(name)
            importlib.import_module(module).configure(parser)
            yield from (
                f"## whyidle {name}",
                "",
                self._said(f"command {name}", f"{summary[0].upper()}{summary[1:]}."),
                "",
            )
            yield from ("```text", f"whyidle {name} {usage_of(parser)}", "```", "")
            yield from table(self._head("option", "meaning"), self._options(name, parser))
        yield from self._section("exit_codes")

    def _options(self, command: str, parser: argparse.ArgumentParser) -> Iterator[Row]:
        for action in parser._actions:
            name = option_of(action)
            said = self._said(f"{command} {name.split()[0]}", self._said(name.split()[0], action.help or ""))
            yield f"`{name}`", said

    def record_format(self) -> Iterator[str]:
        yield from self._opening("record")
        yield from ("```text", *block_after("A run is a folder:"), "```", "")
        yield from self._section("record_file")
        yield from table(
            self._head("constant", "value"),
            (
                ("VERSION", f"`{record_schema.VERSION}`"),
                ("FILE_HEAD", f"`{record_schema.FILE_HEAD}`"),
                ("FRAME_HEAD", f"`{record_schema.FRAME_HEAD}`"),
                ("MAGIC", f"`{record_schema.MAGIC!r}`"),
            ),
        )
        yield from self._section("record_tables")
        names = {getattr(record_schema, name): name for name in TABLE_NAMES}
        for number, columns in sorted(record_schema.TABLES.items()):
            comments = column_comments(names[number])
            yield from (f"### {number} {names[number]}", "", comments.get("", ""), "")
            yield from table(
                self._head("column", "meaning"), ((f"`{name}`", comments.get(name, "")) for name in columns)
            )
        yield from self._section("record_spans")
        kinds = span_comments()
        yield from table(
            self._head("number", "kind", "meaning"),
            (
                (str(number), f"`{kind}`", kinds.get(kind, ""))
                for number, kind in enumerate(record_schema.SPAN_KINDS)
            ),
        )
        yield from self._section("record_notes")
        yield from table(self._head("note", "keys", "meaning"), note_comments())

    def json_report(self) -> Iterator[str]:
        schema = json.loads((DOCS / "report.schema.json").read_text(encoding="utf-8"))
        yield from self._opening("json")
        yield from self._keys(schema)
        for name in ("phase", "finding", "evidence", "remedy"):
            yield from self._section(f"json_{name}")
            yield from self._keys(schema["$defs"][name])
        text = json.loads(
            (DOCS.parent / f"src/whyidle/reports/text/{self.language}.json").read_text(encoding="utf-8")
        )
        for name in ("phase", "problem", "need", "fact"):
            yield from self._section(f"ids_{name}")
            yield from table(
                self._head("id", "meaning"), ((f"`{key}`", said) for key, said in sorted(text[name].items()))
            )

    def _keys(self, schema: Mapping[str, Any]) -> Iterator[str]:
        key = "description" if self.language == "en" else "x-description-zh"
        rows = (
            (f"`{name}`", type_of(value), value.get(key, "")) for name, value in schema["properties"].items()
        )
        yield from table(self._head("key", "type", "meaning"), rows)

    def causes(self) -> Iterator[str]:
        yield from self._opening("causes")
        known = cause_ids()
        grouped = {cause for group in GROUPS.values() for cause in group}
        for group, causes in {**GROUPS, "other": [cause for cause in known if cause not in grouped]}.items():
            present = [cause for cause in causes if cause in known]
            if present:
                yield from (f"## {self.words.group(group)}", "")
                yield from table(self._head("cause", "state"), map(self._cause, present))

    def _cause(self, cause: str) -> Row:
        text = self.words.cause_text(cause)
        page = f"../../src/whyidle/causes/text/{self.language}/{cause}.md"
        return f"[`{cause}`]({page})", fill(text.headline, {})

    def _opening(self, name: str) -> tuple[str, ...]:
        return f"# {self.says[f'{name} title']}", "", self.says[f"{name} intro"], ""

    def _section(self, name: str) -> tuple[str, ...]:
        return f"## {self.says[f'{name} title']}", "", self.says[f"{name} intro"], ""

    def _head(self, *names: str) -> Row:
        return tuple(self.says[f"column {name}"] for name in names)

    def _said(self, key: str, default: str) -> str:
        return self.says.get(key, default)


def table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(map(cell, row))} |"
    yield ""


def cell(text: str) -> str:
    text = text.replace("|", r"\|")
    return text if "`" in text else text.replace("<", "&lt;")


def usage_of(parser: argparse.ArgumentParser) -> str:
    """As argparse says it, on one line and without its choice of words, which varies over Pythons."""
    parts = [option_of(action) for action in parser._actions if action.dest != "help"]
    options = [part for part in parts if part.startswith("--")]
    places = [part for part in parts if not part.startswith("--")]
    is_last = any("…" in part for part in places)
    return " ".join([f"[{part}]" for part in options] + [part if is_last else f"[{part}]" for part in places])


def option_of(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    if not action.option_strings:
        return str(value or action.dest)
    return f"{action.option_strings[-1]} {value}".strip()


def type_of(value: Mapping[str, Any]) -> str:
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{name}`" for name in value["enum"])
    types = value["type"] if isinstance(value["type"], list) else [value["type"]]
    return " / ".join(types)


# The comments of record/schema.py are the only description of the record.

SOURCE = Path(record_schema.__file__).read_text(encoding="utf-8")
TABLE_NAMES = re.findall(r"^    ([A-Z]+): \(", SOURCE, re.MULTILINE)


def block_after(line: str) -> list[str]:
    """The indented lines that follow `line`."""
    rest = SOURCE.split(line, 1)[1].lstrip("\n").splitlines()
    end = next(index for index, text in enumerate(rest) if text and not text.startswith("    "))
    return [text[4:] for text in rest[:end] if text]


def column_comments(table_name: str) -> dict[str, str]:
    """Comment of each column, and under "" the one above the table."""
    before, body = SOURCE.split(f"    {table_name}: (", 1)
    above = re.search(r"((?:    # .*\n)+)$", before)
    body = re.split(r"\),$", body, maxsplit=1, flags=re.MULTILINE)[0]
    comments = dict(re.findall(r'"(\w+)",\s+# (.*)', body))
    comments[""] = " ".join(re.findall(r"# (.*)", above[1])) if above else ""
    return comments


def span_comments() -> dict[str, str]:
    return dict(re.findall(r'^    "(\w+)",  # (.*)$', SOURCE.split("SPAN_KINDS = (", 1)[1], re.MULTILINE))


def note_comments() -> Iterator[Row]:
    """Type of each note, its keys, and what it stands for."""
    for name, text in re.findall(
        r"^#   (\w+) +(.*)$", SOURCE.split("# JSON frames carry", 1)[1], re.MULTILINE
    ):
        keys, _, meaning = text.partition("  ")
        yield f"`{name}`", keys, meaning.strip()


if __name__ == "__main__":
    sys.exit(main())
