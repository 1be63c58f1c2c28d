"""The step launches so many small kernels that the host cannot keep the device fed."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.findings import CannotTell, Finding

ID = "python_bound_step"


def judge(facts: Facts) -> Finding:
    return CannotTell(ID, "gpu" if facts.device_kind == "cpu" else "drained_markers")
