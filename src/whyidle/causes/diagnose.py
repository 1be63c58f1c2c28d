"""Asks every cause, and shares the lost time out so that no second is claimed twice."""

from __future__ import annotations

from dataclasses import dataclass

from whyidle.analysis.facts import Facts
from whyidle.analysis.step_phases import COMPUTE_PHASES, PHASES
from whyidle.causes.all_causes import CAUSES
from whyidle.causes.base import LEAST_SHARE
from whyidle.findings import CannotTell, Finding, Found, Range, RuledOut

# A specific cause explains a symptom that a general one only describes; it is served first when it
# accounts for at least this part of what the general one claims.
SPECIFIC_ENOUGH_RATIO = 0.4

# A general cause of which a specific one has left less than that is the same story told twice.
LEFTOVER_RATIO = 0.3
LEAST_NOTE_SHARE = 0.003


@dataclass(frozen=True)
class Priced:
    """A finding and the seconds of the steady window that are its own."""

    found: Found
    cost_ns: float
    cost_ratio: float
    step_ns: Range | None  # mean step time once it is cured

    @property
    def cause(self) -> str:
        return self.found.cause


@dataclass(frozen=True)
class Diagnosis:
    """`findings` cost at least 3 % of the window, `notes` less; both dearest first."""

    findings: tuple[Priced, ...] = ()
    notes: tuple[Priced, ...] = ()
    ruled_out: tuple[str, ...] = ()
    cannot_tell: tuple[CannotTell, ...] = ()


def diagnose(facts: Facts) -> Diagnosis:
    return settle(facts, [cause.judge(facts) for cause in CAUSES])


def settle(facts: Facts, verdicts: list[Finding]) -> Diagnosis:
    """Price what was found. Pure bookkeeping: the verdicts are taken as they are."""
    found = [verdict for verdict in verdicts if isinstance(verdict, Found)]
    priced = [_price(facts, verdict, cost_ns) for verdict, cost_ns in _shares(facts, found)]
    priced.sort(key=lambda item: -item.cost_ns)
    return Diagnosis(
        findings=tuple(item for item in priced if item.cost_ratio >= LEAST_SHARE),
        notes=tuple(item for item in priced if LEAST_NOTE_SHARE <= item.cost_ratio < LEAST_SHARE),
        ruled_out=tuple(verdict.cause for verdict in verdicts if isinstance(verdict, RuledOut)),
        cannot_tell=tuple(verdict for verdict in verdicts if isinstance(verdict, CannotTell)),
    )


def _shares(facts: Facts, found: list[Found]) -> list[tuple[Found, float]]:
    """Each finding's own nanoseconds, in the order in which they are served."""
    left = {name: float(_claimable(name, facts)) for name in facts.phases}
    taken: dict[str, float] = {}
    shares = []
    for claim in _in_order(found):
        if claim.pool in ("start", "end"):
            shares.append((claim, claim.saves_ns.mid))
            continue
        names = [name for name in _phases_of(claim.pool) if name in left]
        available = sum(left[name] for name in names)
        # What a specific cure already saves, a general one cannot save again.
        explained = 0.0 if claim.is_specific else taken.get(claim.pool, 0.0)
        own = max(0.0, min(claim.saves_ns.mid - explained, available))
        if explained and own < LEFTOVER_RATIO * claim.saves_ns.mid:
            own = 0.0
        for name in names:
            left[name] -= own * left[name] / available if available else 0.0
        if claim.is_specific:
            taken[claim.pool] = taken.get(claim.pool, 0.0) + own
        shares.append((claim, own))
    return shares


def _in_order(found: list[Found]) -> list[Found]:
    """Dearest first, but a specific cause before the general ones of its pool that it explains."""
    dearest: dict[str, float] = {}
    for claim in found:
        dearest[claim.pool] = max(dearest.get(claim.pool, 0.0), claim.saves_ns.mid)

    def rank(claim: Found) -> tuple[float, bool, float]:
        explains = claim.is_specific and claim.saves_ns.mid >= SPECIFIC_ENOUGH_RATIO * dearest[claim.pool]
        return (-dearest[claim.pool], not explains, -claim.saves_ns.mid)

    return sorted(found, key=rank)


def _phases_of(pool: str) -> tuple[str, ...]:
    """The phases whose seconds a pool is made of."""
    if pool == "all":
        return PHASES
    if pool == "compute":
        return ("forward", "loss", "backward", "optimizer", "other")
    if pool == "loss":
        return ("loss", "backward")
    return (pool,)


def _claimable(name: str, facts: Facts) -> int:
    """On a CPU run compute itself can be too dear; on a device only its idle time can be won back, and
    the time that evaluation takes."""
    phase = facts.phases[name]
    if name == "validation" or (name in COMPUTE_PHASES and facts.device_kind == "cpu"):
        return phase.host_ns
    return phase.bubble_ns


def _price(facts: Facts, found: Found, cost_ns: float) -> Priced:
    whole_ns = facts.wall_ns if found.pool in ("start", "end") else facts.window_ns
    ratio = cost_ns / whole_ns if whole_ns else 0.0
    return Priced(found, cost_ns, ratio, _predicted_step(facts, found, cost_ns))


def _predicted_step(facts: Facts, found: Found, cost_ns: float) -> Range | None:
    """Mean step time after the cure; None for what lies outside the steps."""
    if found.pool in ("start", "end") or not facts.steps_count:
        return None
    saves = found.saves_ns
    scale = cost_ns / saves.mid if saves.mid else 0.0
    return Range(
        *(
            max(0.0, facts.window_ns - value * scale) / facts.steps_count
            for value in (saves.high, saves.mid, saves.low)
        )
    )
