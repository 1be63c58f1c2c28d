"""Numbers objects in the order they are first seen, without keeping them alive."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any


class Numbering:
    """By identity: an object need not be hashable, and one that takes a dead one's address is another."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._count = 0

    def number(self, thing: Any) -> tuple[int, bool]:
        """The object's number, and whether it was seen for the first time."""
        key = id(thing)
        known = self._known.get(key)
        if known is not None and known[0]() is thing:
            return known[1], False
        number = self._count
        self._count += 1
        self._known[key] = weakref.ref(thing, lambda reference: self._forget(key, reference)), number
        return number, True

    def clear(self) -> None:
        self._known.clear()
        self._count = 0

    def _forget(self, key: int, reference: weakref.ref[Any]) -> None:
        known = self._known.get(key)
        if known is not None and known[0] is reference:  # its address may have a new tenant already
            del self._known[key]
