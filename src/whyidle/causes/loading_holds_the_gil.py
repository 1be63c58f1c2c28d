"""Threads prepare the data, and all of them, with the loop, share one interpreter lock."""

from __future__ import annotations

from whyidle.analysis.facts import Facts
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "loading_holds_the_gil"
BUSY_RATIO = 0.5  # of the samples: at least one other thread runs the user's Python
# Python threads together get one core; a process far above that does its work outside the lock.
CORES_WITH_THE_LOCK = 1.3
LEAST_SHARE = 0.1
LEAST_OTHERS_SHARE = 0.25  # on-CPU time of the other threads, of the window


def judge(facts: Facts) -> Finding:
    threads = facts.threads
    if threads is None or threads.busy_ratio < BUSY_RATIO or threads.count < 1:
        return RuledOut(ID)
    if facts.loader is not None and facts.loader.num_workers:
        return RuledOut(ID)  # the data come from processes
    if facts.main_cpu_ns is None or not 0.6 <= facts.main_cpu_ns / facts.window_ns <= CORES_WITH_THE_LOCK:
        return RuledOut(ID)
    if facts.main_thread_cpu_ns is None:
        return CannotTell(ID, "thread_times")
    others_ns = facts.main_cpu_ns - facts.main_thread_cpu_ns
    if facts.share(others_ns) < LEAST_OTHERS_SHARE:
        return RuledOut(ID)  # threads that only sleep hold no lock
    # The loop's thread is off its core when it waits for the lock, or for a batch that waits for it.
    waiting_ns = facts.window_ns - facts.main_thread_cpu_ns
    if facts.share(waiting_ns) < LEAST_SHARE:
        return RuledOut(ID)
    return Found(
        ID,
        "all",
        Range(0.3 * waiting_ns, 0.8 * waiting_ns, float(waiting_ns)),
        evidence=(*evidence_of({"gil_threads_count": threads.count}), *line_evidence(threads.line)),
        remedies=(Remedy("load_in_processes", Safety.BY_HAND),),
        is_specific=True,
    )
