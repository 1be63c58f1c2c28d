"""Data that are in memory are picked apart row by row: pandas rows, lists of arrays, single indices."""

from __future__ import annotations

import re

from whyidle.analysis.facts import Facts, Line
from whyidle.causes.base import evidence_of, line_evidence
from whyidle.causes.loader_claims import needs_its_workers, saved_if_cheaper
from whyidle.findings import CannotTell, Finding, Found, Range, Remedy, RuledOut, Safety

ID = "rows_fetched_one_by_one"
LIBRARY_SHARE = 0.3  # of the samples taken while samples are made
ROW_ACCESS = re.compile(r"\.iloc\b|\.loc\b|\.iterrows\(|\.itertuples\(|\.at\[|\.iat\[|to_dict\(")
# A list of arrays, or what reads like the name of one; not np.array(Image.open(…)).
FROM_LIST = re.compile(
    r"torch\.(tensor|as_tensor|FloatTensor|LongTensor|DoubleTensor)\s*\(\s*(\[|list\(|\w+s\s*[,)])"
)
# Data already in memory cost under this a sample; then a whole batch by one index is the better way.
IN_MEMORY_NS = 50_000.0
IN_MEMORY_LEAST_SHARE = 0.2


def judge(facts: Facts) -> Finding:
    loader = facts.loader
    if loader is None or not needs_its_workers(facts, loader):
        return RuledOut(ID)
    line = loader.line
    if line is None or loader.sample_p50_ns is None:
        return CannotTell(ID, "stack_samples")
    pattern = _pattern(line)
    if pattern is not None:
        share = max(line.share_ratio, line.libraries.get("pandas", 0.0))
        if pattern == "pandas":  # one array made up front replaces all the function does
            share = max(share, line.function_share_ratio)
        removed = 0.95 * share
        saves = saved_if_cheaper(loader, Range(0.5 * removed, removed, 1.0))
        return _found(facts, line, pattern, saves)
    is_in_memory = (
        loader.num_workers == 0
        and (loader.opens_per_sample or 0.0) < 0.01
        and loader.sample_p50_ns < IN_MEMORY_NS
        and (loader.samples_per_batch or 0.0) >= 8
        and facts.share(loader.steady_wait_ns) >= IN_MEMORY_LEAST_SHARE
    )
    if is_in_memory:
        mid = 0.85 * loader.steady_wait_ns
        return _found(facts, line, "index", Range(0.6 * mid, mid, float(loader.steady_wait_ns)))
    return RuledOut(ID)


def _pattern(line: Line) -> str | None:
    text = line.text or ""
    if line.libraries.get("pandas", 0.0) >= LIBRARY_SHARE or (
        ROW_ACCESS.search(text) and line.share_ratio >= LIBRARY_SHARE
    ):
        return "pandas"
    if FROM_LIST.search(text) and line.share_ratio >= LIBRARY_SHARE and "from_numpy" not in text:
        return "list_of_arrays"
    return None


def _found(facts: Facts, line: Line, pattern: str, saves: Range) -> Found:
    loader = facts.loader
    return Found(
        ID,
        "data",
        saves,
        evidence=(
            *evidence_of(
                {
                    "access_pattern": pattern,
                    "sample_p50_ns": loader.sample_p50_ns if loader else None,
                    "dataset": loader.dataset if loader else None,
                }
            ),
            *line_evidence(line),
        ),
        remedies=(Remedy("fetch_batches_at_once", Safety.BY_HAND),),
        is_specific=True,
    )
