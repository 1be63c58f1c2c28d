"""The report for a terminal: one headline, the phases, the findings by price, and what was not found.

A pure function of the JSON report; nothing here reads a record or prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from whyidle.reports.columns import clip, display_width, pad, wrap
from whyidle.reports.words import NO_BREAK, Words, duration_unit, fill, real, three_digits

Report = Mapping[str, Any]

PROSE_WIDTH = 100  # longer lines are hard to read, however wide the terminal
NARROWEST, WIDEST = 40, 160
LEAST_ROW_SHARE = 0.0005  # rounds to nothing
UNEXPLAINED_RATIO = 0.10
BAR_GLYPHS = "█▓▒░"
SEPARATOR = " · "

STYLES = {
    "bold": "1",
    "dim": "2",
    "title": "1;36",
    "good": "32",
    "warn": "33",
    "bad": "31",
    "data": "31",
    "copy": "35",
    "forward": "32",
    "loss": "92",
    "backward": "36",
    "optimizer": "34",
    "validation": "94",
    "communication": "95",
    "rest": "90",
    "code": "33",
}
_OTHER_PHASE_STYLE = "33"
_MARK = re.compile("●")


def render(report: Report, *, words: Words, width: int, colour: bool) -> str:
    page = Page(words, max(NARROWEST, min(width, WIDEST)), colour)
    sections = (
        _headline(page, report),
        _facts(page, report),
        _bar(page, report),
        _phase_table(page, report),
        _times(page, report),
        *(_finding(page, report, number, item) for number, item in enumerate(_items(report, "findings"), 1)),
        _remarks(page, report),
        _footer(page, report),
    )
    text = "\n\n".join("\n".join(lines) for lines in sections if lines)
    return text.replace(NO_BREAK, " ") + "\n"


@dataclass(frozen=True)
class Page:
    """Where the text goes: its words, its width, and whether it may be coloured."""

    words: Words
    width: int
    colour: bool

    @property
    def prose_width(self) -> int:
        return min(self.width, PROSE_WIDTH)

    def paint(self, text: str, style: str) -> str:
        if not (self.colour and style and text):
            return text
        return f"\x1b[{STYLES.get(style, _OTHER_PHASE_STYLE)}m{text}\x1b[0m"

    def pack(self, items: Iterable[str], separator: str) -> list[str]:
        """As many whole items on a line as fit."""
        lines: list[str] = []
        for item in items:
            longer = f"{lines[-1]}{separator}{item}" if lines else item
            if lines and display_width(longer) <= self.prose_width:
                lines[-1] = longer
            else:
                lines += self.wrap(item)
        return lines

    def wrap(self, text: str, first: str = "", indent: str | None = None) -> list[str]:
        return wrap(text, self.prose_width, first, first if indent is None else indent)


# --- the sections, from top to bottom ---


def _headline(page: Page, report: Report) -> list[str]:
    text, style = _headline_text(page.words, report)
    return [page.paint(line, style) for line in page.wrap(text)]


def _headline_text(words: Words, report: Report) -> tuple[str, str]:
    steps, findings = _table(report, "steps"), _items(report, "findings")
    idle = real(report.get("idle_ratio"))
    side = "cpu" if _on_cpu(report) else "gpu"
    if not steps:
        problems = _items(report, "problems")
        if not problems:
            return words.label("headline_no_steps"), "warn"
        return words.label("headline_no_steps_because", problem=_problem(words, report, problems[0])), "warn"
    if findings:
        return _headline_found(words, findings[0], idle, side), "bold"
    if idle is not None and idle >= UNEXPLAINED_RATIO:
        return words.label(f"headline_unexplained_{side}", idle=words.percent(idle)), "warn"
    step_ms = _step_ms(steps)
    rate = three_digits(1000 / step_ms) if step_ms else "?"
    if idle is None:
        return words.label("headline_healthy", rate=rate), "good"
    return words.label(f"headline_healthy_{side}", busy=words.percent(1 - idle), rate=rate), "good"


def _headline_found(words: Words, finding: Report, idle: float | None, side: str) -> str:
    text = words.cause_text(_id(finding, "cause"))
    cost = real(finding.get("cost_ratio"))
    values: dict[str, str] = {"headline": fill(text.headline, _values(finding))}
    if cost is not None:
        values["cost"] = words.percent(cost)
    if idle is None or (cost is not None and cost > idle):  # the loss is in what computes
        return words.label("headline_lost", **values) if cost is not None else values["headline"]
    is_small_part = cost is not None and cost < idle / 2
    key = f"headline_partly_{side}" if is_small_part else f"headline_{side}"
    return words.label(key, idle=words.percent(idle), **values)


def _facts(page: Page, report: Report) -> list[str]:
    rows = (_step_facts, _machine_facts, _rank_facts)
    return [line for facts in rows for line in page.pack(facts(page.words, report), SEPARATOR)]


def _machine_facts(words: Words, report: Report) -> Iterator[str]:
    device, machine, gpu = (_table(report, key) for key in ("device", "machine", "gpu"))
    name, device_count = _clean(device.get("name")), real(device.get("count"))
    if name:
        yield f"{three_digits(device_count)} × {name}" if device_count and device_count > 1 else name
    for key, fact in (
        ("gpu_kernels", "any_busy_ratio"),
        ("gpu_compute", "compute_busy_ratio"),
        ("gpu_communication", "exposed_communication_ratio"),
    ):
        ratio = real(gpu.get(fact))
        if ratio is not None and (ratio > 0 or fact != "exposed_communication_ratio"):
            yield words.label(key, n=words.percent(ratio))
    cores = real(machine.get("cores"))
    if cores is not None:
        yield words.label("one_core" if cores == 1 else "cores", n=three_digits(cores))
    for key, fact in (("cpu_busy", "cpu_busy_ratio"), ("memory_peak", "memory_peak_bytes")):
        if real(machine.get(fact)) is not None:
            yield words.label(key, n=words.value(fact, machine[fact]))


def _step_facts(words: Words, report: Report) -> Iterator[str]:
    steps = _table(report, "steps")
    step_count = real(steps.get("count"))
    if step_count is not None:
        key = "one_step" if step_count == 1 else "steps"
        yield words.label(key, n=words.value("steps_count", step_count))
    for key, fact in (("median", "median_ms"), ("p95", "p95_ms")):
        value_ms = real(steps.get(fact))
        if value_ms is not None:
            yield words.label(key, n=words.duration(value_ms / 1000))
    samples = real(steps.get("samples_per_s"))
    if samples is not None:
        yield words.label("samples_per_s", n=words.value("samples_count", samples))
    window_s = real(report.get("window_s"))
    if steps and window_s is not None:
        yield words.label("window", n=words.duration(window_s))


def _time_facts(words: Words, report: Report) -> Iterator[str]:
    for key, fact in (("start", "start_s"), ("training", "window_s"), ("end", "end_s"), ("total", "wall_s")):
        value_s = real(report.get(fact))
        if value_s is not None:
            yield words.label(key, n=words.duration(value_s))


def _rank_facts(words: Words, report: Report) -> Iterator[str]:
    ranks = [
        (median_ms, rank.get("rank"))
        for rank in _items(report, "ranks")
        if (median_ms := real(rank.get("median_ms"))) is not None
    ]
    if len(ranks) < 2:
        return
    fast, slow = min(ranks, key=lambda rank: rank[0]), max(ranks, key=lambda rank: rank[0])
    low, high = words.duration(fast[0] / 1000), words.duration(slow[0] / 1000)
    yield words.label("ranks", n=len(ranks), low=low, fast=fast[1], high=high, slow=slow[1])


def _bar(page: Page, report: Report) -> list[str]:
    shares = [
        (name, share)
        for name, phase in _phases(report)
        if (share := real(phase.get("host_ratio"))) is not None and share > 0
    ]
    if not shares:
        return []
    largest = sorted(shares, key=lambda item: -item[1])[: len(BAR_GLYPHS)]
    glyphs = {name: glyph for (name, _), glyph in zip(largest, BAR_GLYPHS, strict=False)}
    drawn = [(name, share) for name, share in shares if name in glyphs]
    rest = sum(share for name, share in shares if name not in glyphs)
    if rest > 0:
        drawn.append(("rest", rest))
        glyphs["rest"] = "·"
    cells = _apportion([share for _, share in drawn], page.prose_width)
    if page.colour:
        glyphs = dict.fromkeys(glyphs, "█")
    bar = "".join(page.paint(glyphs[name] * cell, name) for (name, _), cell in zip(drawn, cells, strict=True))
    keys = [f"{_phase_name(page.words, name)} {page.words.percent(share)}" for name, share in drawn]
    lines = page.pack([f"● {key}" for key in keys], "  ")
    names = iter(name for name, _ in drawn)
    return [
        bar,
        *(_MARK.sub(lambda _: page.paint(glyphs[name := next(names)], name), line) for line in lines),
    ]


def _phase_table(page: Page, report: Report) -> list[str]:
    words = page.words
    phases = [(name, phase) for name, phase in _phases(report) if _is_worth_a_row(phase)]
    if not phases:
        return []
    step_count = real(_table(report, "steps").get("count"))
    idle_key = "column_idle_cpu" if _on_cpu(report) else "column_idle_gpu"
    keys = ("column_phase", "column_per_step" if step_count else "column_time", "column_host", idle_key)
    head = [*map(words.label, keys), words.label("column_line")]
    code = {
        (line.get("phase"), line.get("line")): _clean(line.get("text")) for line in _items(report, "lines")
    }
    rows = [_phase_row(words, name, phase, step_count or 1, code) for name, phase in phases]
    widths = [max(map(display_width, column)) for column in zip(head, *rows, strict=True)][:-1]
    gap = "  " if page.width < 60 else "   "
    room = page.width - sum(widths) - len(gap) * len(widths)

    def line(row: list[str], idle_style: str = "") -> str:
        name, *numbers = (
            pad(cell, width, right=cell is not row[0]) for cell, width in zip(row, widths, strict=False)
        )
        numbers[-1] = page.paint(numbers[-1], idle_style)
        return gap.join([name, *numbers, clip(row[-1], room)]).rstrip()

    styles = (_severity(real(phase.get("bubble_ratio"))) for _, phase in phases)
    return [page.paint(line(head), "dim"), *map(line, rows, styles)]


def _is_worth_a_row(phase: Report) -> bool:
    share = real(phase.get("host_ratio"))
    return share is None or share >= LEAST_ROW_SHARE


def _phase_row(
    words: Words, name: str, phase: Report, step_count: float, code: Mapping[tuple[Any, Any], str]
) -> list[str]:
    host_s, hot_line = real(phase.get("host_s")), phase.get("hot_line")
    return [
        _phase_name(words, name),
        "–" if host_s is None else words.duration(host_s / step_count),
        _share(words, phase.get("host_ratio")),
        _share(words, phase.get("bubble_ratio")),
        "  ".join(part for part in (_short_path(hot_line), code.get((name, hot_line), "")) if part),
    ]


def _times(page: Page, report: Report) -> list[str]:
    return page.pack(_time_facts(page.words, report), SEPARATOR)


def _finding(page: Page, report: Report, number: int, finding: Report) -> list[str]:
    words, text = page.words, page.words.cause_text(_id(finding, "cause"))
    price = _price(words, finding)
    room = page.prose_width - display_width(price) - 2
    title, *more = wrap(f"{number}. {text.name}", room, "", "   ")
    gap = " " * (page.prose_width - display_width(title) - display_width(price))
    heading = page.paint(title, "title") + gap + page.paint(price, "bold")
    rows = [
        (_clean(words.fact_label(_id(evidence, "fact"))), _evidence(words, evidence))
        for evidence in _items(finding, "evidence")
    ]
    saving = _saving(words, _table(report, "steps"), _table(finding, "predicted_step_ms"))
    advice = [(words.label("saving"), saving)] if saving else []
    advice += _advice(words, finding)
    widest = min(28, page.prose_width // 2 - 5)
    column = min(widest, max((display_width(label) for label, _ in (*rows, *advice)), default=0))
    return [
        heading,
        *(page.paint(line, "title") for line in more),
        *_grid(page, rows, column),
        *_grid(page, advice, column, emphasis=True),
    ]


def _grid(page: Page, rows: Sequence[tuple[str, str]], column: int, emphasis: bool = False) -> list[str]:
    lines: list[str] = []
    for label, value in rows:
        labels = wrap(label, column, "", "")
        values = wrap(value, max(10, page.prose_width - column - 5), "", "")
        for left, right in zip_longest(labels, values, fillvalue=""):
            cell = pad(left, column)
            lines.append(f"   {cell if emphasis else page.paint(cell, 'dim')}  {right}".rstrip())
    return lines


def _advice(words: Words, finding: Report) -> list[tuple[str, str]]:
    remedies = _items(finding, "remedies")
    action = fill(words.cause_text(_id(finding, "cause")).action, _values(finding))
    rows = [(words.label("what_to_do"), action)] if action else []
    for remedy in remedies:
        setting = ", ".join(f"{key}={_literal(value)}" for key, value in _table(remedy, "setting").items())
        safety = words.label(_id(remedy, "safety")) if remedy.get("safety") else ""
        both = setting and safety
        text = words.label("remedy", setting=setting, safety=safety) if both else setting or safety
        if text and text not in (row[1] for row in rows):
            rows.append(("" if rows else words.label("what_to_do"), text))
    return rows


def _remarks(page: Page, report: Report) -> list[str]:
    words, lines = page.words, []
    notes = [
        words.label("note", name=_cause_name(words, note), cost=_share(words, note.get("cost_ratio")))
        for note in _items(report, "notes")
    ]
    if notes:
        lines += page.wrap(words.label("notes", items=_listed(words, notes)), "", "   ")
    problems = _items(report, "problems")
    if problems:
        lines.append(page.paint(words.label("problems"), "warn"))
    for problem in problems:
        lines += page.wrap(_problem(words, report, problem), " - ", "   ")
    ruled_out = [_cause_name(words, {"cause": cause}) for cause in report.get("ruled_out") or ()]
    if ruled_out:
        lines += page.wrap(words.label("ruled_out", items=_listed(words, ruled_out)), "", "   ")
    untold = [_untold(words, item) for item in _items(report, "cannot_tell")]
    if untold:
        lines += page.wrap(words.label("cannot_tell", items=_listed(words, untold)), "", "   ")
    return lines


def _untold(words: Words, item: Report) -> str:
    name, needs = _cause_name(words, item), item.get("needs")
    return words.label("cannot_tell_one", name=name, needs=_clean(words.need(str(needs)))) if needs else name


def _footer(page: Page, report: Report) -> list[str]:
    words, lines, overhead = page.words, [], real(report.get("overhead_ratio"))
    if overhead is not None:
        lines += page.wrap(words.label("overhead", n=words.percent(overhead)))
    findings = _items(report, "findings")
    cause = _id(findings[0], "cause") if findings else ""
    lines += page.wrap(words.label("more", cause=cause) if cause else words.label("more_causes"))
    return [page.paint(line, "dim") for line in lines]


# --- parts of a line ---


def _price(words: Words, finding: Report) -> str:
    cost, cost_s = real(finding.get("cost_ratio")), real(finding.get("cost_s"))
    parts = [] if cost is None else [words.percent(cost)]
    return "   ".join([*parts, *([] if cost_s is None else [words.duration(cost_s)])])


def _evidence(words: Words, evidence: Report) -> str:
    value = _clean(words.value(_id(evidence, "fact"), evidence.get("value")))
    share = real(evidence.get("share_ratio"))
    return value if share is None else words.label("with_share", value=value, share=words.percent(share))


def _saving(words: Words, steps: Report, predicted: Report) -> str:
    before_ms, after_ms = _step_ms(steps), real(predicted.get("mid"))
    if not before_ms or after_ms is None:
        return ""
    unit, scale = duration_unit(before_ms / 1000)
    before, after = (three_digits(value / 1000 * scale) for value in (before_ms, after_ms))
    text = words.label("step_change", before=before, after=after, unit=unit).replace(" ", NO_BREAK)
    low, high = real(predicted.get("low")), real(predicted.get("high"))
    if low is not None and high is not None:
        bounds = (three_digits(value / 1000 * scale) for value in (low, high))
        text += _spaced(words, words.label("step_range", **dict(zip(("low", "high"), bounds, strict=True))))
    if after_ms > 0:
        text += words.label("list_comma") if words.language == "en" else "，"
        text += words.label("faster", n=_factor(before_ms / after_ms)).replace(" ", NO_BREAK)
    return text


def _spaced(words: Words, parenthesis: str) -> str:
    return parenthesis if words.language == "zh" else " " + parenthesis


def _factor(factor: float) -> str:
    return three_digits(round(factor, 1 if factor >= 2 else 2))


def _problem(words: Words, report: Report, problem: Report) -> str:
    values = {key: report.get(key) for key in ("exit_code", "signal")}
    text = _clean(words.problem(_id(problem, "id"), **values))
    detail = clip(_clean(problem.get("detail")), 200)
    if not detail or detail in map(str, values.values()):
        return text
    return words.label("with_detail", text=text, detail=detail)


def _cause_name(words: Words, item: Report) -> str:
    return _clean(words.cause_text(_id(item, "cause")).name)


def _listed(words: Words, items: Iterable[str]) -> str:
    return words.label("list_comma").join(items)


def _share(words: Words, ratio: object) -> str:
    number = real(ratio)
    return "–" if number is None else words.percent(number)


def _severity(bubble_ratio: float | None) -> str:
    if bubble_ratio is None or bubble_ratio < 0.03:
        return "dim"
    return "bad" if bubble_ratio >= 0.2 else "warn"


def _phase_name(words: Words, name: str) -> str:
    return words.label("rest") if name == "rest" else _clean(words.phase(name))


def _literal(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _short_path(line: object) -> str:
    """`/a/very/long/path/data.py:41` as `…/path/data.py:41`."""
    text = _clean(line)
    parts = text.split("/")
    return text if display_width(text) <= 32 or len(parts) < 3 else "…/" + "/".join(parts[-2:])


# --- reading a report that may lack anything ---


def _table(holder: Report, key: str) -> Report:
    value = holder.get(key)
    return value if isinstance(value, Mapping) else {}


def _items(holder: Report, key: str) -> list[Report]:
    return [item for item in holder.get(key) or () if isinstance(item, Mapping)]


def _phases(report: Report) -> Iterator[tuple[str, Report]]:
    for name, phase in _table(report, "phases").items():
        if isinstance(phase, Mapping):
            yield name, phase


def _id(holder: Report, key: str) -> str:
    return str(holder.get(key) or "")


def _on_cpu(report: Report) -> bool:
    return _table(report, "device").get("kind") == "cpu"


def _step_ms(steps: Report) -> float | None:
    """The mean, because what a cure saves is spread over all steps; a median hides rare long ones."""
    mean_ms = real(steps.get("mean_ms"))
    return mean_ms if mean_ms is not None else real(steps.get("median_ms"))


def _values(finding: Report) -> dict[str, object]:
    """What a cause text may quote: the settings of its remedies and the line that was hottest."""
    values: dict[str, object] = {}
    for evidence in _items(finding, "evidence"):
        fact, value = _id(evidence, "fact"), evidence.get("value")
        if fact.endswith("_line") and value:
            values.setdefault("line", _short_path(value))
    for remedy in _items(finding, "remedies"):
        values.update({key: _literal(value) for key, value in _table(remedy, "setting").items()})
    return values


def _apportion(shares: Sequence[float], cells: int) -> list[int]:
    """Whole cells in proportion to `shares`; the largest remainders get the cells left over."""
    total = sum(shares)
    exact = [share / total * cells for share in shares]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: whole[index] - exact[index])
    for index in by_remainder[: cells - sum(whole)]:
        whole[index] += 1
    return whole


def _clean(value: object) -> str:
    """Text from the user's job, without what could move the cursor or break a line."""
    text = "" if value is None else str(value).strip()
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == NO_BREAK else " " for letter in text)
