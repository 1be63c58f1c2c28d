"""What a cause can conclude: found, ruled out, cannot tell. Ids and numbers, no words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Safety(str, Enum):
    """How far a remedy may go on its own.

    `SAFE` leaves the samples and the arithmetic of each step as they are (random draws inside loader
    workers follow the workers' own seeds, as in any run with workers); `OPT_IN` changes order, numerics
    or what is kept, so the user must ask for it; `BY_HAND` is an edit only the author can make.
    """

    SAFE = "safe"
    OPT_IN = "opt_in"
    BY_HAND = "by_hand"


@dataclass(frozen=True)
class Range:
    """A quantity with its uncertainty: low ≤ mid ≤ high."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Evidence:
    """One recorded fact that speaks for a finding; its unit is in the fact's name."""

    fact: str
    value: int | float | str | bool
    share_ratio: float | None = None


@dataclass(frozen=True)
class Remedy:
    id: str
    safety: Safety
    setting: Mapping[str, int | float | str | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """The state exists.

    `pool` names the phase whose seconds the cause claims, so that no two findings claim the same
    second; `saves_ns` is what curing it alone would save over the steady window.
    `is_specific` marks a cause that explains the symptom another cause merely describes: it is
    served first from the pool.
    """

    cause: str
    pool: str
    saves_ns: Range
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    is_specific: bool = False


@dataclass(frozen=True)
class RuledOut:
    """The facts that would show the state were recorded, and they do not show it."""

    cause: str


@dataclass(frozen=True)
class CannotTell:
    """A fact that decides is missing; `needs` names what would have told."""

    cause: str
    needs: str


Finding = Found | RuledOut | CannotTell
