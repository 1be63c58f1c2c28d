"""The first batch takes long because the workers take long to start: a big dataset to pickle, a spawn."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import around, evidence_of, line_evidence
from whyidle.findings import Finding, Found, Remedy, RuledOut, Safety
from whyidle.units import s_to_ns

ID = "worker_start_slow"
# Spawned workers import torch, 2–4 s on a busy machine; that alone is no finding, nor is a short
# script's start-up.
LEAST_NS = s_to_ns(5)
LEAST_SHARE = 0.1


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0:
        return RuledOut(ID)
    excess_ns = loader.first_start_ns - (loader.service_ns or 0.0)
    if excess_ns < LEAST_NS or facts.share(excess_ns) < LEAST_SHARE:
        return RuledOut(ID)
    return Found(
        ID,
        "data",
        around(excess_ns * 0.8, 0.25),
        evidence=(
            *evidence_of({"first_batch_ns": loader.first_start_ns, "num_workers": loader.num_workers}),
            *line_evidence(loader.line),
        ),
        remedies=(Remedy("shrink_what_workers_receive", Safety.BY_HAND),),
        is_specific=True,
    )
