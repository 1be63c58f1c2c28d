"""The only way from the command line to the screen: width, colour, encoding, errors."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own costs 5 ms of every start
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TextIO

    from whyidle.errors import WhyidleError
    from whyidle.reports.words import Words

LANGUAGE_HELP = "language of the words: en or zh (default: the locale)"
WIDTH_WHEN_PIPED = 80
ERROR_LINES = 3

# One column each, so that what was aligned stays aligned.
_ASCII = str.maketrans(
    {
        "█": "#", "▓": "=", "▒": "+", "░": "-", "■": "#", "·": ".", "–": "-", "—": "-", "…": "~",
        "→": ">", "×": "x", "µ": "u", "“": '"', "”": '"', "‘": "'", "’": "'", "•": "*", "≈": "~",
    }
)  # fmt: skip


def write(text: str, stream: TextIO | None = None) -> None:
    """Write `text`; a reader that went away (`| head`) is no error."""
    out = sys.stdout if stream is None else stream
    try:
        out.write(printable(text, out.encoding or "ascii"))
        out.flush()
    except BrokenPipeError:
        hush(out)


def printable(text: str, encoding: str) -> str:
    """`text` with everything replaced that `encoding` cannot express."""
    if can_print(text, encoding):
        return text
    plain = text if can_print("█░→", encoding) else text.translate(_ASCII)
    codec = encoding if can_print("", encoding) else "ascii"
    return plain.encode(codec, "replace").decode(codec)


def can_print(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def hush(stream: TextIO) -> None:
    """Let the interpreter's own flush at exit go nowhere instead of to a closed pipe."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        pass


def width_of(stream: TextIO) -> int:
    """The terminal's width; 80 when the text goes to a file or a pipe, unless COLUMNS says otherwise."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_WHEN_PIPED
    except (OSError, ValueError):
        return WIDTH_WHEN_PIPED


def wants_colour(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    variables = os.environ if environ is None else environ
    if variables.get("NO_COLOR") or variables.get("TERM") == "dumb":
        return False
    return stream.isatty()


def words_for(language: str | None, stream: TextIO) -> Words:
    """The words to print on `stream`: what `--lang` asks, else the locale if the stream can show it."""
    from whyidle.reports.words import Words, choose_language

    chosen = choose_language(language, os.environ)
    if language is None and chosen == "zh" and not can_print("中", stream.encoding or "ascii"):
        chosen = "en"
    return Words(chosen)


def show_report(report: Mapping[str, Any], language: str | None = None, stream: TextIO | None = None) -> None:
    """Print the report of one run for a person."""
    from whyidle.reports.terminal import render

    out = sys.stdout if stream is None else stream
    words = words_for(language, out)
    write(render(report, words=words, width=width_of(out), colour=wants_colour(out)), out)


def show_error(error: WhyidleError) -> None:
    """At most three lines: what and where, then the way out."""
    lines = [f"whyidle: {error.message}", *(f"  {line}" for line in error.hint.splitlines())]
    lines = "\n".join(lines).splitlines()[:ERROR_LINES]
    write("\n".join(lines) + "\n", sys.stderr)
