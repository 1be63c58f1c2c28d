"""The loss, or the assignment of its targets, loops in Python instead of calling a few large operators."""

from __future__ import annotations

from whyidle.analysis.facts import Facts, Line
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import CannotTell, Evidence, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "loss_in_python"
LOOP_RATIO = 0.3  # of the samples between forward and backward
# A vectorised loss leaves tens of nodes in the autograd graph and makes tens of calls; one of several
# heads or scales with a short loop over them a hundred; a loop over samples, classes or boxes more.
LOOP_NODES = 150
LOOP_CALLS = 400
NODE_NS = 4000.0


def judge(facts: Facts) -> Finding:
    phase = facts.phases.get("loss")
    if phase is None or phase.host_ns <= 0:
        return RuledOut(ID)
    line = phase.line
    if line is None or (facts.loss_graph_nodes is None and facts.loss_calls is None):
        return RuledOut(ID) if facts.share(phase.host_ns) < 0.1 else CannotTell(ID, "stack_samples")
    if line.loop_share_ratio < LOOP_RATIO:
        return RuledOut(ID)
    if (facts.loss_graph_nodes or 0) < LOOP_NODES and (facts.loss_calls or 0) < LOOP_CALLS:
        return RuledOut(ID)
    looped_ns = max(line.loop_share_ratio, line.function_share_ratio) * phase.host_ns
    backward = _looped_backward(facts)
    return Found(
        ID,
        "loss",
        Range(
            0.7 * looped_ns + backward.low,
            0.93 * looped_ns + backward.mid,
            looped_ns + backward.high,
        ),
        evidence=(
            *_loop_evidence(line),
            *evidence_of(
                {
                    "time_per_step_ns": facts.per_step(phase.host_ns),
                    "autograd_nodes_count": facts.loss_graph_nodes,
                    "loss_calls_count": facts.loss_calls,
                }
            ),
            *line_evidence(line),
        ),
        remedies=(Remedy("vectorise_loss", Safety.BY_HAND),),
    )


def _loop_evidence(line: Line) -> tuple[Evidence, ...]:
    return (Evidence("python_loop_line", line.loop_line),) if line.loop_line else ()


def _looped_backward(facts: Facts) -> Range:
    """What the loop's part of the autograd graph costs in the backward pass.

    At most its share of the nodes; its nodes are smaller than the model's, though: about 4 µs each on a
    CPU (628 nodes of a planted loop took 2.0 ms of 5.6).
    """
    nodes, whole = facts.loss_graph_nodes, facts.graph_nodes
    backward = facts.phases.get("backward")
    if not nodes or not whole or backward is None or nodes < LOOP_NODES:
        return Range(0.0, 0.0, 0.0)
    most_ns = backward.host_ns * nodes / whole
    mid = min(0.85 * most_ns, nodes * NODE_NS * facts.steps_count)
    return Range(0.5 * mid, mid, most_ns)
