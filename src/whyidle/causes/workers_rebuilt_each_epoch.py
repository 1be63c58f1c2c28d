"""Every epoch starts its workers anew, and the loop waits until they are up."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import around, evidence_of
from whyidle.causes.loader_claims import first_epochs_excess_ns
from whyidle.findings import Finding, Found, Remedy, RuledOut, Safety

ID = "workers_rebuilt_each_epoch"
# Two workers fork in a tenth of a second; a short script with a few epochs loses some per cent to that.
LEAST_SHARE = 0.05


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or loader.num_workers == 0 or loader.persistent_workers:
        return RuledOut(ID)
    restarts = len(loader.epoch_starts_ns) - 1
    saved_ns = first_epochs_excess_ns(loader) + loader.epoch_ends_ns
    if restarts < 1 or facts.share(saved_ns) < LEAST_SHARE:
        return RuledOut(ID)
    return Found(
        ID,
        "data",
        around(saved_ns, 0.15),
        evidence=evidence_of(
            {
                "epochs_count": restarts + 1,
                "start_per_epoch_ns": saved_ns / restarts,
                "persistent_workers": False,
                "num_workers": loader.num_workers,
            }
        ),
        remedies=(Remedy("keep_workers", Safety.SAFE, {"persistent_workers": True}),),
        is_specific=True,
    )
