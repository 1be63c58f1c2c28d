"""The loss, or the assignment of its targets, loops in Python instead of calling a few large operators."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Line
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import CannotTell, Evidence, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "loss_in_python"
LOOP_RATIO = 0.5  # of the samples between forward and backward
# A vectorised loss leaves tens of nodes in the autograd graph, a loop hundreds.
LOOP_NODES = 150


def judge(facts: Facts) -> Finding:
    phase = facts.phases.get("loss")
    if phase is None or phase.host_ns <= 0:
        return RuledOut(ID)
    line = phase.line
    if line is None:
        if facts.share(phase.host_ns) < 0.1:
            return RuledOut(ID)
        return CannotTell(ID, "stack_samples")
    nodes = facts.loss_graph_nodes
    if line.loop_share_ratio < LOOP_RATIO:
        return RuledOut(ID)
    looped_ns = line.loop_share_ratio * phase.host_ns
    backward_ns = _looped_backward_ns(facts)
    return Found(
        ID,
        "loss",
        Range(
            0.7 * looped_ns + 0.5 * backward_ns,
            0.93 * looped_ns + 0.85 * backward_ns,
            looped_ns + backward_ns,
        ),
        evidence=(
            *_loop_evidence(line),
            *evidence_of({"time_per_step_ns": facts.per_step(phase.host_ns), "autograd_nodes_count": nodes}),
            *line_evidence(line),
        ),
        remedies=(Remedy("vectorise_loss", Safety.BY_HAND),),
    )


def _loop_evidence(line: Line) -> tuple[Evidence, ...]:
    return (Evidence("python_loop_line", line.loop_line),) if line.loop_line else ()


def _looped_backward_ns(facts: Facts) -> float:
    """What the loop's share of the autograd graph costs in the backward pass."""
    nodes, whole = facts.loss_graph_nodes, facts.graph_nodes
    backward = facts.phases.get("backward")
    if not nodes or not whole or backward is None or nodes < LOOP_NODES:
        return 0.0
    return backward.host_ns * nodes / whole
