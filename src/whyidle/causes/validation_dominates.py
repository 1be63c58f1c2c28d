"""Evaluation takes a large part of the time, or takes far longer a sample than training does."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Validation
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "validation_dominates"
LEAST_SHARE = 0.15  # an evaluation each epoch of a tenth of the time is ordinary
LARGE_SHARE = 0.4


def _saved_ns(validation: Validation) -> float:
    """What evaluating in batches of training's size would leave out: a sample then costs what training's
    own forward pass costs, a fifth more for its loading and scoring. Evaluating half as often, or half
    as many samples, saves half in any case."""
    if validation.forward_per_sample_ns is None or validation.batch_size is None:
        return 0.5 * validation.time_ns
    needed_ns = 1.2 * validation.forward_per_sample_ns * validation.batches_count * validation.batch_size
    return max(0.5 * validation.time_ns, validation.time_ns - needed_ns)


def judge(facts: Facts) -> Finding:
    validation = facts.validation
    if validation is None:
        return RuledOut(ID)
    share = facts.share(validation.time_ns)
    if share < LEAST_SHARE:
        return RuledOut(ID)
    if validation.batch_size is None and facts.loader is None:
        return CannotTell(ID, "validation_batch_size")  # without loaders it may be acting, not evaluating
    train_size = facts.loader.batch_size if facts.loader is not None else None
    rate, training_rate = validation.samples_per_s, validation.training_samples_per_s
    has_small_batches = (
        validation.batch_size is not None
        and train_size is not None
        and validation.batch_size * 2 <= train_size
    )
    is_slow = rate is not None and training_rate is not None and rate < training_rate
    if not (has_small_batches or is_slow or share >= LARGE_SHARE):
        if rate is None or training_rate is None:
            return CannotTell(ID, "validation_batch_size")
        return RuledOut(ID)
    mid = _saved_ns(validation)
    return Found(
        ID,
        "validation",
        Range(0.4 * mid, mid, max(mid, 0.95 * validation.time_ns)),
        evidence=(
            *evidence_of(
                {
                    "validation_ratio": share,
                    "validation_batch_size": validation.batch_size,
                    "train_batch_size": train_size,
                    "calls_count": validation.batches_count,
                }
            ),
            *line_evidence(validation.line),
        ),
        remedies=(
            Remedy("enlarge_validation_batches", Safety.BY_HAND),
            Remedy("validate_less_often", Safety.BY_HAND),
        ),
    )
