"""Asks every cause, and shares the lost time out so that no second is claimed twice."""

from __future__ import annotations

from dataclasses import dataclass

from whyidle.analysis.facts import Facts
from whyidle.causes.all_causes import CAUSES
from whyidle.causes.base import LEAST_SHARE
from whyidle.findings import CannotTell, Finding, Found, Range, RuledOut

# A specific cause explains a symptom that a general one only describes; it is served first when it
# accounts for at least this part of what the general one claims.
SPECIFIC_ENOUGH_RATIO = 0.5


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
        notes=tuple(item for item in priced if 0 < item.cost_ratio < LEAST_SHARE),
        ruled_out=tuple(verdict.cause for verdict in verdicts if isinstance(verdict, RuledOut)),
        cannot_tell=tuple(verdict for verdict in verdicts if isinstance(verdict, CannotTell)),
    )


def _shares(facts: Facts, found: list[Found]) -> list[tuple[Found, float]]:
    """Each finding's own nanoseconds, pool by pool, in the order in which they are served."""
    shares = []
    for pool in sorted({verdict.pool for verdict in found}):
        claims = [verdict for verdict in found if verdict.pool == pool]
        dearest = max(claim.saves_ns.mid for claim in claims)
        claims.sort(
            key=lambda claim: (
                not (claim.is_specific and claim.saves_ns.mid >= SPECIFIC_ENOUGH_RATIO * dearest),
                -claim.saves_ns.mid,
            )
        )
        left = pool_ns(facts, pool)
        taken = 0.0
        for claim in claims:
            # What an earlier cure already saves, this one cannot save again.
            own = max(0.0, min(claim.saves_ns.mid - taken, left - taken))
            taken += own
            shares.append((claim, own))
    return shares


def pool_ns(facts: Facts, pool: str) -> float:
    """Seconds there are to claim: a phase's idle time, or an edge of the run."""
    if pool == "start":
        return facts.start.time_ns if facts.start is not None else 0
    if pool == "end":
        return facts.end.time_ns if facts.end is not None else 0
    if pool == "compute":
        return sum(phase.host_ns for phase in facts.phases.values()) - sum(
            phase.bubble_ns for phase in facts.phases.values()
        )
    if pool in ("loss", "all"):
        return float(facts.window_ns)
    return facts.phase_ns(pool)


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
    return Range(*(
        max(0.0, facts.window_ns - value * scale) / facts.steps_count
        for value in (saves.high, saves.mid, saves.low)
    ))
