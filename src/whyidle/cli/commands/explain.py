"""`whyidle explain`: the page of one cause, or the list of all of them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from whyidle.cli.output import LANGUAGE_HELP, wants_colour, width_of, words_for, write
from whyidle.errors import UsageError
from whyidle.reports.columns import clip, display_width, pad
from whyidle.reports.terminal import Page
from whyidle.reports.words import LANGUAGES, NO_BREAK, CauseText, cause_ids

SUMMARY = "explain a cause: what it means and what to do"

# The order in which people look for them; a cause not listed is shown under "other".
GROUPS: dict[str, tuple[str, ...]] = {
    "input": (
        "loader_without_workers",
        "too_few_workers",
        "too_many_workers",
        "samples_cheaper_than_workers",
        "workers_rebuilt_each_epoch",
        "worker_start_slow",
        "prefetch_too_shallow",
        "slow_sample_blocks_batch",
        "sample_cpu_heavy",
        "sample_waits_for_storage",
        "many_small_files",
        "same_file_reread",
        "rows_fetched_one_by_one",
        "collate_slow",
        "loading_holds_the_gil",
    ),
    "loop": (
        "checkpoint_blocks",
        "logging_too_often",
        "tracker_too_often",
        "progress_bar_slow",
        "metrics_on_host",
        "loss_in_python",
        "scalar_read_each_step",
        "explicit_synchronize",
        "copy_blocks_host",
        "many_small_copies",
        "tensors_made_on_host",
        "garbage_collection_pauses",
        "cache_cleared_in_loop",
        "validation_dominates",
        "debug_switch_on",
        "step_time_grows",
        "python_bound_step",
        "slow_start",
        "slow_end",
        "resume_replays_loader",
    ),
    "machine": ("threads_oversubscribed",),
    "gpu": ("gpu_unused",),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cause", nargs="?", metavar="CAUSE", help="a cause as a report names it; none lists all"
    )
    parser.add_argument("--lang", choices=LANGUAGES, help=LANGUAGE_HELP)


def main(arguments: argparse.Namespace) -> int:
    out = sys.stdout
    page = Page(words_for(arguments.lang, out), width_of(out), wants_colour(out))
    if arguments.cause is None:
        lines = list(_catalogue(page))
    else:
        cause = _known(arguments.cause)
        lines = list(_cause_page(page, cause, page.words.cause_text(cause)))
    write("\n".join(lines).replace(NO_BREAK, " ") + "\n")
    return 0


def _known(asked: str) -> str:
    from difflib import get_close_matches

    cause, known = asked.strip().lower().replace("-", "_"), cause_ids()
    if cause in known:
        return cause
    near = get_close_matches(cause, known, n=3, cutoff=0.5) or [name for name in known if cause in name][:3]
    hint = f"near it: {', '.join(near)}" if near else "whyidle explain lists all causes"
    raise UsageError(f"there is no cause {asked!r}", hint)


def _catalogue(page: Page) -> Iterator[str]:
    known = cause_ids()
    grouped = {cause for group in GROUPS.values() for cause in group}
    groups = {**GROUPS, "other": tuple(cause for cause in known if cause not in grouped)}
    column = max(map(len, known), default=0)
    for group, causes in groups.items():
        present = [cause for cause in causes if cause in known]
        if not present:
            continue
        yield page.paint(page.words.group(group), "title")
        for cause in present:
            name = clip(page.words.cause_text(cause).name, page.width - column - 4)
            yield f"  {page.paint(pad(cause, column), 'bold')}  {name}"
        yield ""
    yield from page.wrap(page.words.explain("usage"))


def _cause_page(page: Page, cause: str, text: CauseText) -> Iterator[str]:
    yield page.paint(cause, "dim")
    yield ""
    paragraph: list[str] = []
    in_code = False
    for line in [*text.body.splitlines(), ""]:
        if line.lstrip().startswith("```"):
            yield from _flushed(page, paragraph)
            in_code = not in_code
        elif in_code or line.startswith("|"):
            yield from _flushed(page, paragraph)
            yield f"    {line}" if in_code else line
        elif line.startswith("#"):
            yield from _flushed(page, paragraph)
            yield from _heading(page, line)
        elif _ITEM.match(line) or not line.strip():
            yield from _flushed(page, paragraph)
            if line.strip():
                paragraph.append(line.rstrip())
            else:
                yield ""
        else:
            paragraph.append(line.strip())


_CODE = re.compile(r"`([^`]+)`")
_ITEM = re.compile(r"(\s*)([-*+]|\d+\.)\s+")


def _heading(page: Page, line: str) -> Iterator[str]:
    level, title = len(line) - len(line.lstrip("#")), line.lstrip("#").strip()
    for part in page.wrap(_without_stars(title)):
        yield page.paint(part, "title" if level == 1 else "bold")
    if level == 1 and not page.colour:
        yield "=" * min(page.prose_width, display_width(title))


def _flushed(page: Page, paragraph: list[str]) -> Iterator[str]:
    """The lines gathered so far as one wrapped paragraph or list item."""
    if not paragraph:
        return
    text = ""
    for line in paragraph:
        text += line if not text or _joins_without_space(text, line) else f" {line}"
    paragraph.clear()
    item = _ITEM.match(text)
    first = f"{item[1]}{item[2]} " if item else ""
    for line in page.wrap(_without_stars(text[item.end() :] if item else text), first, " " * len(first)):
        yield _CODE.sub(lambda code: page.paint(code[1], "code"), line) if page.colour else line


def _joins_without_space(before: str, after: str) -> bool:
    """Chinese lines join as they are."""
    return display_width(before[-1]) == 2 and display_width(after[:1]) == 2


def _without_stars(text: str) -> str:
    return text.replace("**", "")
