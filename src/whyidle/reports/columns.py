"""Text in columns, in which a Chinese character takes two."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wcwidth import wcwidth

_CLOSING = "，。、；：！？）」』”’》"
_OPENING = "（「『“‘《"
_WIDE = r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U00020000-\U0003ffff]"
_UNIT = re.compile(
    rf"[{_OPENING}]*(?:(?![{_OPENING}]){_WIDE}|(?:(?!{_WIDE})[^ {_OPENING}{_CLOSING}])+)[{_CLOSING}]* *"
    r"|[^ ] *| +"
)


def display_width(text: str) -> int:
    return sum(max(0, wcwidth(character)) for character in text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    spaces = " " * max(0, width - display_width(text))
    return spaces + text if right else text + spaces


def clip(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    kept = ""
    for character in text:
        if display_width(kept + character) >= width:
            break
        kept += character
    return kept.rstrip() + "…" if width > 0 else ""


def wrap(text: str, width: int, first: str, indent: str) -> list[str]:
    """Break at spaces and between Chinese characters; the first line starts with `first`."""
    if not text:
        return []
    lines, line, start = [], "", first
    for unit in _breakable_units(text, max(2, width - display_width(indent))):
        if line.strip() and display_width(start + line + unit.rstrip()) > width:
            lines.append((start + line).rstrip())
            line, start = "", indent
        line += unit if line else unit.lstrip(" ")
    return [*lines, (start + line).rstrip()]


def _breakable_units(text: str, width: int) -> Iterator[str]:
    """Pieces with their trailing spaces that stay whole, cut only where longer than a line."""
    for match in _UNIT.finditer(text):
        piece = match[0]
        while display_width(piece.rstrip()) > width:
            head = clip(piece, width + 1)[:-1] or piece[0]
            head = head if display_width(head) <= width else piece[0]
            yield head
            piece = piece[len(head) :]
        yield piece
