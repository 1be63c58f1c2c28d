"""The words and numbers a person reads, in English or Chinese, from the texts shipped with the package."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from whyidle.units import NS_PER_S

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

# Keeps a number and its unit on one line; the renderer turns it into a space after wrapping.
NO_BREAK = "\u00a0"

_CAUSE_ID = re.compile(r"[a-z0-9_]+")
_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_PARENTHESISED = re.compile(r"\s*[(（][^()（）]*[)）]")


@dataclass(frozen=True)
class CauseText:
    """The text of one cause; `headline` and `action` still hold their placeholders."""

    name: str
    headline: str
    action: str
    body: str


def choose_language(option: str | None, environ: Mapping[str, str]) -> Language:
    """`--lang` if given, else what the locale variables say."""
    variables = ("LC_ALL", "LC_MESSAGES", "LANG")
    wanted = option or next((environ[name] for name in variables if environ.get(name)), "")
    return "zh" if wanted.lower().startswith("zh") else "en"


def fill(template: str, values: Mapping[str, object]) -> str:
    """Put `values` into the `{placeholders}`; a parenthesis that lacks its value is dropped whole."""

    def lacks_value(text: str) -> bool:
        return any(values.get(key) is None for key in _PLACEHOLDER.findall(text))

    kept = _PARENTHESISED.sub(lambda match: "" if lacks_value(match[0]) else match[0], template)
    return _PLACEHOLDER.sub(lambda match: "…" if lacks_value(match[0]) else str(values[match[1]]), kept)


def three_digits(value: float) -> str:
    """A number with at most three significant digits: 0.123, 4.57, 36, 1230."""
    return format(float(f"{value:.3g}"), "g")


def real(value: object) -> float | None:
    """`value` when it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Words:
    """Every word of a report in one language."""

    def __init__(self, language: Language) -> None:
        self.language: Language = language
        self._text = _texts(language)

    def label(self, key: str, **values: object) -> str:
        template = self._text["label"].get(key, key)
        return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), template)

    def fact_label(self, fact: str) -> str:
        return self._named("fact", fact)

    def phase(self, name: str) -> str:
        return self._named("phase", name)

    def problem(self, problem_id: str, **values: object) -> str:
        return fill(self._named("problem", problem_id), values)

    def need(self, need_id: str) -> str:
        return self._named("need", need_id)

    def group(self, name: str) -> str:
        return self._named("group", name)

    def explain(self, key: str) -> str:
        return self._named("explain", key)

    def _named(self, section: str, name: str) -> str:
        return self._text[section].get(name) or name.replace("_", " ")

    def cause_text(self, cause: str) -> CauseText:
        """The text of `cause`, else the English one, else its id, so that a report never fails."""
        for language in dict.fromkeys((self.language, "en")):
            text = _cause_text(language, cause)
            if text is not None:
                return text
        spoken = cause.replace("_", " ")
        return CauseText(name=spoken, headline=spoken, action="", body="")

    def percent(self, ratio: float) -> str:
        share = ratio * 100
        if 0 < share < 0.1:
            return self._with_unit("percent", "<" + NO_BREAK + "0.1")
        return self._with_unit("percent", three_digits(round(share, 0 if abs(share) >= 10 else 1)))

    def duration(self, value_s: float) -> str:
        size = abs(value_s)
        if size >= 7200:
            return self._with_unit("hours", three_digits(value_s / 3600))
        if size >= 120:
            return self._with_unit("minutes", three_digits(value_s / 60))
        unit, scale = duration_unit(value_s)
        return three_digits(value_s * scale) + NO_BREAK + unit

    def value(self, fact: str, value: object) -> str:
        """`value` as people write it; the unit is read off the end of the fact's name."""
        if isinstance(value, bool):
            return self.label("yes" if value else "no")
        if isinstance(value, str):
            return value
        number = real(value)
        if number is None:
            return self.label("unknown")
        if fact.endswith("_per_s"):
            amount = data_size(number) if fact.startswith("bytes") else count(number)
            return self._with_unit("per_second", amount)
        if fact.endswith("_ns"):
            return self.duration(number / NS_PER_S)
        if fact.endswith("_bytes"):
            return data_size(number)
        if fact.endswith("_ratio"):
            return self.percent(number)
        if isinstance(value, int) and not fact.endswith("_count") and abs(value) < 1_000_000:
            return str(value)  # a setting is quoted as it stands: batch_size 1024, not 1.02 k
        return count(number)

    def _with_unit(self, key: str, number: str) -> str:
        return self.label(key, n=number).replace(" ", NO_BREAK)


def duration_unit(value_s: float) -> tuple[str, float]:
    """The unit that suits a duration, and how many of it are in a second."""
    size = abs(value_s)
    if size >= 0.9995 or size == 0:
        return "s", 1
    if size >= 0.9995e-3:
        return "ms", 1e3
    return ("µs", 1e6) if size >= 0.9995e-6 else ("ns", 1e9)


def count(value: float) -> str:
    return _scaled(value, ("", "k", "M", "G", "T")).rstrip(NO_BREAK)


def data_size(value_bytes: float) -> str:
    return _scaled(value_bytes, ("B", "kB", "MB", "GB", "TB", "PB"))


def _scaled(value: float, units: tuple[str, ...]) -> str:
    rest = value
    for unit in units[:-1]:
        if abs(rest) < 999.5:
            return three_digits(rest) + NO_BREAK + unit
        rest /= 1000
    return three_digits(rest) + NO_BREAK + units[-1]


def cause_ids() -> list[str]:
    """Every cause that has a text, in alphabetical order."""
    folder = files("whyidle") / "causes" / "text" / "en"
    if not folder.is_dir():
        return []
    return sorted(entry.name[: -len(".md")] for entry in folder.iterdir() if entry.name.endswith(".md"))


@cache
def _texts(language: str) -> dict[str, dict[str, str]]:
    resource = files("whyidle") / "reports" / "text" / f"{language}.json"
    loaded: dict[str, dict[str, str]] = json.loads(resource.read_text(encoding="utf-8"))
    return loaded


@cache
def _cause_text(language: str, cause: str) -> CauseText | None:
    if not _CAUSE_ID.fullmatch(cause):
        return None
    resource = files("whyidle") / "causes" / "text" / language / f"{cause}.md"
    try:
        return parse_cause_text(resource.read_text(encoding="utf-8"), cause)
    except (OSError, UnicodeDecodeError):
        return None


def parse_cause_text(text: str, cause: str) -> CauseText:
    """Read `key: value` lines between two `---` lines, then the page."""
    fields: dict[str, str] = {}
    lines = iter(text.lstrip("\ufeff").splitlines())
    first = next(lines, "")
    body_lines = [first]
    if first.strip() == "---":
        fields = dict(_front_matter(lines))
        body_lines = []
    body = "\n".join([*body_lines, *lines]).strip()
    name = fields.get("name") or cause.replace("_", " ")
    return CauseText(name, fields.get("headline") or name, fields.get("action", ""), body)


def _front_matter(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if line.strip() == "---":
            return
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), _unquoted(value.strip())


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
