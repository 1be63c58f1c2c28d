"""From a record to the facts of the run: finds the training process and measures it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from whyidle.analysis import step_phases
from whyidle.analysis.intervals import Lookup, clip, gaps, total, union
from whyidle.analysis.facts import Calls, Edge, Facts, Line, Loader, Phase, Threads, Trend, Validation
from whyidle.analysis.loader_facts import loader_facts, percentile
from whyidle.analysis.stacks import (
    Frame,
    Sample,
    Sources,
    classifier,
    hottest,
    is_waiting,
    samples_of,
    sources_of,
)
from whyidle.analysis.step_phases import COMPUTE_PHASES, PHASES, PhaseSplit
from whyidle.analysis.steps import Steps, find_steps
from whyidle.analysis.timeline import Span, partition, thread_spans
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord, RunRecord

FLAG_NAMES = {
    schema.FLAG_ANOMALY: "anomaly_mode",
    schema.FLAG_DETERMINISTIC: "deterministic_mode",
    schema.FLAG_TRACER: "tracer",
    schema.FLAG_BLOCKING_LAUNCHES: "blocking_launches",
}
PROCESS_CPU, INVOLUNTARY, MAIN_CPU, PROBE = (
    schema.TABLES[schema.USAGE].index(name)
    for name in ("cpu_ns", "involuntary_switches", "main_cpu_ns", "probe_ns")
)
TREND_LEAST_STEPS = 30
LINES_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Rank:
    rank: int
    pid: int
    steps_count: int
    step_median_ns: float


@dataclass(frozen=True, kw_only=True)
class HotLine:
    phase: str
    line: Line
    share_ratio: float  # of the steady window


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """All that a report needs beside the verdicts. `facts` is None where no step was seen."""

    facts: Facts | None
    wall_ns: int
    ranks: tuple[Rank, ...] = ()
    lines: tuple[HotLine, ...] = ()
    problems: tuple[Mapping[str, str], ...] = ()
    samples_per_s: float | None = None
    overhead_ratio: float | None = None


@dataclass
class _Trainer:
    """One training process, prepared."""

    process: ProcessRecord
    spans: list[Span]
    steps: Steps
    samples: list[Sample]
    other_samples: list[Sample] = field(default_factory=list)
    names: Mapping[int, str] = field(default_factory=dict)


def run_facts(run: RunRecord) -> RunFacts:
    """Measure a run. Never fails for what a record may hold; what is missing is named."""
    wall_ns = _wall_ns(run)
    trainers = [trainer for trainer in map(_trainer, run.processes) if trainer is not None]
    if not trainers:
        return RunFacts(facts=None, wall_ns=wall_ns, problems=tuple(run.problems + _why_no_steps(run)))
    trainers.sort(key=lambda trainer: (_rank(trainer.process), -len(trainer.steps.ends_ns)))
    ranks = tuple(_rank_line(trainer) for trainer in trainers if _is_rank(trainer, trainers[0]))
    return _measure(run, trainers[0], wall_ns, ranks)


# -- which process trains -------------------------------------------------------------------------


def _trainer(process: ProcessRecord) -> _Trainer | None:
    if process.header.get("role") == "worker":
        return None
    optimizer_threads = Counter(
        row[1] for row in process.rows(schema.SPAN) if row[0] == schema.KIND["optimizer"]
    )
    if not optimizer_threads:
        return None
    thread = optimizer_threads.most_common(1)[0][0]
    spans = thread_spans(process, thread)
    ended = frozenset(row[1] for row in process.rows(schema.NEXT) if row[7])
    steps = find_steps(spans, ended)
    if steps is None:
        return None
    samples = samples_of(process)
    return _Trainer(
        process,
        spans,
        steps,
        sorted((s for s in samples if s.thread == thread), key=lambda s: s.t_ns),
        [s for s in samples if s.thread != thread],
        {note["id"]: note["text"] for note in process.notes_of("name")},
    )


def _rank(process: ProcessRecord) -> int:
    return process.header.get("rank") or 0


def _is_rank(trainer: _Trainer, leader: _Trainer) -> bool:
    return trainer is leader or trainer.process.header.get("rank") is not None


def _rank_line(trainer: _Trainer) -> Rank:
    ends = trainer.steps.ends_ns
    durations = [after - before for before, after in zip(ends, ends[1:], strict=False)]
    return Rank(
        rank=_rank(trainer.process),
        pid=int(trainer.process.header.get("pid") or 0),
        steps_count=len(ends),
        step_median_ns=median(durations) if durations else 0.0,
    )


def _why_no_steps(run: RunRecord) -> list[dict[str, str]]:
    if not run.run.get("entered", True):
        return [{"id": "not_entered", "detail": ""}]
    if not any(process.header.get("torch") or process.notes for process in run.processes):
        return [{"id": "no_torch", "detail": ""}]
    return [{"id": "no_steps", "detail": ""}]


def _wall_ns(run: RunRecord) -> int:
    start_ns, end_ns = run.run.get("start_ns"), run.run.get("end_ns")
    if isinstance(start_ns, int) and isinstance(end_ns, int) and end_ns > start_ns:
        return end_ns - start_ns
    times = [row[0] for process in run.processes for row in process.rows(schema.USAGE)]
    begins = [int(process.header.get("perf_counter_ns") or 0) for process in run.processes]
    return max(times) - min(begins) if times and begins else 0


# -- measuring it ---------------------------------------------------------------------------------


def _measure(run: RunRecord, trainer: _Trainer, wall_ns: int, ranks: tuple[Rank, ...]) -> RunFacts:
    steps, sources = trainer.steps, sources_of(run.run)
    low, high = steps.window
    observed = _observed(trainer.process, (low, high))
    result = _split(trainer, sources, (low, high))
    window_ns = high - low
    # Where detail was thinned out, what was kept stands for what was not.
    scale = window_ns / observed if observed else 1.0
    device_kind = _device_kind(trainer)
    lines = _Lines(sources)
    phases = {
        name: Phase(
            host_ns=round(duration_ns * scale),
            bubble_ns=0 if name in COMPUTE_PHASES else round(duration_ns * scale),
            line=lines.of(result.samples[name]),
        )
        for name, duration_ns in sorted(result.phase_ns.items(), key=lambda item: _phase_order(item[0]))
        if duration_ns > 0
    }
    process_start_ns = run.run.get("start_ns") or int(trainer.process.header.get("perf_counter_ns") or low)
    process_end_ns = run.run.get("end_ns") or _last_ns(trainer.process, high)
    count, mean_ns, durations = _step_times(trainer, window_ns)
    cores = run.run.get("environment", {}).get("effective_cores")
    main_cpu_ns = _cpu_in(trainer.process, (low, high))
    loader = loader_facts(
        trainer.process,
        [process for process in run.processes if process.header.get("role") == "worker"],
        steps,
        cores=cores,
        main_cpu_ns=main_cpu_ns,
        line=_data_line(run, trainer, result, lines),
    )
    facts = Facts(
        device_kind=device_kind,
        visible_devices_count=run.run.get("visible_devices_count"),
        cores_count=cores,
        wall_ns=wall_ns,
        window_ns=window_ns,
        start=_edge(trainer, lines, (process_start_ns, low)),
        end=_edge(trainer, lines, (high, process_end_ns)),
        steps_count=count,
        step_mean_ns=mean_ns,
        step_median_ns=median(durations) if durations else 0.0,
        step_p95_ns=percentile(durations, 0.95),
        phases=phases,
        calls=_calls(trainer, result, lines, scale),
        loader=loader,
        validation=_validation(trainer, phases, loader, mean_ns),
        trend=_trend(trainer, sources, lines),
        threads=_threads(trainer, lines),
        flags=_flags(trainer),
        replayed_batches=steps.replayed_batches,
        replay_ns=total(clip(steps.replay, (low, high))),
        replay_line=lines.of(_inside(trainer.samples, steps.replay)),
        loss_graph_nodes=_graph(trainer, "loss_nodes"),
        graph_nodes=_graph(trainer, "nodes"),
        main_cpu_ns=main_cpu_ns,
        main_thread_cpu_ns=_rate_in(trainer.process, (low, high), MAIN_CPU),
        involuntary_switches_per_s=_switches(trainer.process, (low, high)),
        missing={} if device_kind == "cpu" else {"device_idle": "device_idle"},
    )
    samples = loader.samples_per_batch if loader is not None else None
    return RunFacts(
        facts=facts,
        wall_ns=wall_ns or process_end_ns - process_start_ns,
        ranks=ranks,
        lines=_hot_lines(result, lines, window_ns, phases),
        problems=tuple(run.problems + _short(count)),
        samples_per_s=_samples_per_s(loader, samples, window_ns),
        overhead_ratio=_overhead(trainer.process, (low, high)),
    )


def _device_kind(trainer: _Trainer) -> str:
    """Where the parameters live that the first optimizer steps on."""
    notes = trainer.process.notes_of("optimizer")
    return str(notes[0].get("device") or "cpu") if notes else "cpu"


def _split(trainer: _Trainer, sources: Sources, window: tuple[int, int]) -> PhaseSplit:
    segments = [
        segment
        for part in _kept(trainer.process, window)
        for segment in partition(trainer.spans, part)
    ]

    def user_phase(name: int) -> str:
        text = trainer.names.get(name, "other")
        return text if text else "other"

    return step_phases.split(
        segments, trainer.steps.validation, trainer.samples, classifier(sources), _Lines(sources).loop_of, user_phase
    )


def _kept(process: ProcessRecord, window: tuple[int, int]) -> list[tuple[int, int]]:
    """The parts of the window that were recorded in full."""
    thinned = union((row[0], row[1]) for row in process.rows(schema.THINNED))
    return gaps(thinned, window)


def _observed(process: ProcessRecord, window: tuple[int, int]) -> int:
    return sum(end - start for start, end in _kept(process, window))


def _phase_order(name: str) -> int:
    return PHASES.index(name) if name in PHASES else len(PHASES)


def _step_times(trainer: _Trainer, window_ns: int) -> tuple[int, float, list[float]]:
    low, high = trainer.steps.window
    ends = [end for end in trainer.steps.ends_ns if low < end <= high]
    thinned = sum(row[2] for row in trainer.process.rows(schema.THINNED) if low < row[1] <= high)
    count = len(ends) + thinned
    kept = _kept(trainer.process, (low, high))
    durations = []
    lookup = Lookup(kept)
    for before, after in zip(ends, ends[1:], strict=False):
        if lookup.index(before) == lookup.index(after):
            durations.append(float(after - before))
    return count, window_ns / count if count else 0.0, durations


class _Lines:
    """Turns samples into the line to name."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of(self, samples: Sequence[Sample]) -> Line | None:
        found = hottest(list(samples))
        if found is None:
            return None
        frame, share = found
        source = self._sources.get((frame.file, frame.line))
        libraries: Counter[str] = Counter()
        for sample in samples:
            libraries.update(set(sample.stack.libraries))
        loops: Counter[str] = Counter()
        for sample in samples:
            loop = self.loop_of(sample)
            if loop is not None:
                loops[loop] += 1
        loop_line, _ = loops.most_common(1)[0] if loops else (None, 0)
        return Line(
            place=frame.place,
            share_ratio=share,
            text=source.text if source is not None else None,
            function=frame.function,
            function_share_ratio=_in_function(samples, frame) / len(samples),
            loop_line=loop_line,
            loop_share_ratio=sum(loops.values()) / len(samples),
            libraries={name: count / len(samples) for name, count in libraries.most_common(5)},
        )

    def loop_of(self, sample: Sample) -> str | None:
        """The Python loop that a sample stands in, in the innermost user frame that has one."""
        for frame in sample.stack.frames:
            source = self._sources.get((frame.file, frame.line))
            if source is not None and source.inner_loop_line is not None:
                return f"{frame.place.rsplit(':', 1)[0]}:{source.inner_loop_line}"
        return None


def _in_function(samples: Sequence[Sample], frame: Frame) -> int:
    """Samples whose innermost user frames pass through the function of `frame`; comprehensions count
    for the function around them."""
    return sum(
        1
        for sample in samples
        if any(each.file == frame.file and each.function == frame.function for each in sample.stack.frames[:3])
    )


def _data_line(run: RunRecord, trainer: _Trainer, result: PhaseSplit, lines: _Lines) -> Line | None:
    """Where samples are made: in the workers if there are any, else in the loop's own data phase."""
    in_workers: list[Sample] = []
    for process in run.processes:
        if process.header.get("role") != "worker":
            continue
        thread = process.header.get("main_thread")
        in_workers += [
            sample
            for sample in samples_of(process)
            if sample.thread == thread and not is_waiting(sample.stack)
        ]
    return lines.of(in_workers) or lines.of(result.samples["data"])


def _edge(trainer: _Trainer, lines: _Lines, stretch: tuple[int, int]) -> Edge:
    start, end = stretch
    samples = [sample for sample in trainer.samples if start <= sample.t_ns < end]
    line = lines.of(samples)
    library = next(iter(line.libraries), None) if line is not None else None
    return Edge(time_ns=max(0, end - start), line=line, library=library)


def _calls(trainer: _Trainer, result: PhaseSplit, lines: _Lines, scale: float) -> dict[str, Calls]:
    low, high = trainer.steps.window
    spans_by_kind: dict[str, list[Span]] = defaultdict(list)
    for span in trainer.spans:
        if low <= span.t0_ns < high:
            spans_by_kind[span.kind].append(span)
    calls = {}
    for kind in {*result.kind_ns, *spans_by_kind}:
        spans = spans_by_kind.get(kind, [])
        names: Counter[str] = Counter()
        for span in spans:
            names[_called(trainer, span)] += span.duration_ns
        calls[kind] = Calls(
            count=round(len(spans) * scale),
            self_ns=round(result.kind_ns.get(kind, 0) * scale),
            total_ns=round(sum(span.duration_ns for span in spans) * scale),
            max_ns=max((span.duration_ns for span in spans), default=0),
            bytes=sum(span.a for span in spans) if kind in ("checkpoint", "copy") else 0,
            steps_with_calls=_steps_with(trainer.steps, spans),
            names=dict(names),
            line=lines.of(result.kind_samples.get(kind, [])),
        )
    return calls


NAMED_KINDS = frozenset(("sync", "tracker", "progress", "communication", "metrics", "forward", "loss"))


def _called(trainer: _Trainer, span: Span) -> str:
    """The name that a span carries in `a` or `b`; "" for kinds that carry none."""
    if span.kind == "checkpoint":
        return trainer.names.get(span.b, "")
    return trainer.names.get(span.a, "") if span.kind in NAMED_KINDS else ""


def _steps_with(steps: Steps, spans: Sequence[Span]) -> int:
    return len({bisect_right(steps.ends_ns, span.t0_ns) for span in spans})


def _validation(
    trainer: _Trainer, phases: Mapping[str, Phase], loader: Loader | None, step_mean_ns: float
) -> Validation | None:
    phase = phases.get("validation")
    if phase is None:
        return None
    low, high = trainer.steps.window
    settings = {note["id"]: note["settings"] for note in trainer.process.notes_of("loader")}
    loaders = {note["id"]: note["loader"] for note in trainer.process.notes_of("iterator")}
    batch_sizes = [
        settings.get(loaders.get(number, -1), {}).get("batch_size")
        for number in trainer.steps.validation_iterators
    ]
    sizes = [size for size in batch_sizes if isinstance(size, int)]
    batches = sum(
        1
        for row in trainer.process.rows(schema.NEXT)
        if row[3] in trainer.steps.validation_iterators and not row[7] and low <= row[1] < high
    )
    if not batches:  # no loader: count the model's calls
        batches = sum(
            1
            for span in trainer.spans
            if span.kind == "forward"
            and any(start <= span.t0_ns < end for start, end in trainer.steps.validation)
        )
    batch_size = Counter(sizes).most_common(1)[0][0] if sizes else None
    training_rate = None
    if loader is not None and loader.batch_size and step_mean_ns:
        training_ns = high - low - phase.host_ns
        training_rate = loader.batches_count * loader.batch_size / training_ns * 1e9 if training_ns > 0 else None
    return Validation(
        time_ns=phase.host_ns,
        batches_count=batches,
        batch_size=batch_size,
        samples_per_s=batches * batch_size / phase.host_ns * 1e9 if batch_size and phase.host_ns else None,
        training_samples_per_s=training_rate,
        forward_per_sample_ns=phases["forward"].host_ns / (loader.batches_count * loader.batch_size)
        if loader is not None and loader.batch_size and loader.batches_count and "forward" in phases
        else None,
        line=phase.line,
    )


def _trend(trainer: _Trainer, sources: Sources, lines: _Lines) -> Trend | None:
    """Step time over the run, validation and checkpoints left out; None for short runs."""
    low, high = trainer.steps.window
    ends = [end for end in trainer.steps.ends_ns if low < end <= high]
    if len(ends) < TREND_LEAST_STEPS:
        return None
    pauses = [*trainer.steps.validation]
    pauses += [
        (span.t0_ns, span.t1_ns) for span in trainer.spans if span.kind in ("checkpoint", "fsync", "iter")
    ]
    pauses += [
        (row[1], row[2]) for row in trainer.process.rows(schema.NEXT) if row[7]
    ]
    durations = _without(ends, pauses)
    tenth = max(1, len(durations) // 10)
    medians = [median(durations[at : at + tenth]) for at in range(0, len(durations) - tenth + 1, tenth)]
    rises = sum(1 for before, after in zip(medians, medians[1:], strict=False) if after > before)
    fifth = max(1, len(ends) // 5)
    first_window, last_window = (ends[0], ends[fifth]), (ends[-fifth - 1], ends[-1])
    first, last = _split(trainer, sources, first_window), _split(trainer, sources, last_window)
    growth = {
        name: last.phase_ns.get(name, 0) - first.phase_ns.get(name, 0) for name in {*first.phase_ns, *last.phase_ns}
    }
    growing = max(growth, key=lambda name: growth[name])
    return Trend(
        first_ns=median(durations[:fifth]),
        last_ns=median(durations[-fifth:]),
        mean_ns=fmean(durations),
        cpu_growth_ratio=_cpu_growth(trainer.process, ends),
        monotony_ratio=rises / (len(medians) - 1) if len(medians) > 1 else 0.0,
        memory_growth_bytes=_memory_growth(trainer.process, (low, high)),
        growing_phase=growing,
        line=lines.of(last.samples.get(growing, [])),
    )


def _cpu_growth(process: ProcessRecord, ends: Sequence[int]) -> float | None:
    """On-CPU time a step in the last third of the steps against the first: a busy neighbour on the
    machine stretches steps without it."""
    third = len(ends) // 3
    first = _cpu_in(process, (ends[0], ends[third]))
    last = _cpu_in(process, (ends[-third - 1], ends[-1]))
    return last / first if first and last is not None else None


def _without(ends: Sequence[int], pauses: Sequence[tuple[int, int]]) -> list[float]:
    """Times from step to step, less the pauses between them."""
    merged = union(pauses)
    durations = []
    at = 0
    for before, after in zip(ends, ends[1:], strict=False):
        while at < len(merged) and merged[at][1] <= before:
            at += 1
        paused, look = 0, at
        while look < len(merged) and merged[look][0] < after:
            paused += max(0, min(after, merged[look][1]) - max(before, merged[look][0]))
            look += 1
        durations.append(float(after - before - paused))
    return durations


def _memory_growth(process: ProcessRecord, window: tuple[int, int]) -> int | None:
    sizes = [row[2] for row in process.rows(schema.USAGE) if window[0] <= row[0] <= window[1] and row[2] >= 0]
    if len(sizes) < 5:
        return None
    fifth = max(1, len(sizes) // 5)
    return round(fmean(sizes[-fifth:]) - fmean(sizes[:fifth]))


def _threads(trainer: _Trainer, lines: _Lines) -> Threads | None:
    low, high = trainer.steps.window
    busy: dict[int, set[int]] = defaultdict(set)
    ticks = set()
    at_work = []
    for sample in trainer.other_samples:
        if not low <= sample.t_ns < high:
            continue
        ticks.add(sample.t_ns)
        if sample.stack.frames and not is_waiting(sample.stack):
            busy[sample.t_ns].add(sample.thread)
            at_work.append(sample)
    if not ticks:
        return None
    threads = {thread for group in busy.values() for thread in group}
    return Threads(busy_ratio=len(busy) / len(ticks), count=len(threads), line=lines.of(at_work))


def _flags(trainer: _Trainer) -> dict[str, float]:
    low, high = trainer.steps.window
    marked = [
        span.b for span in trainer.spans if span.kind in ("backward", "optimizer") and low <= span.t0_ns < high
    ]
    backwards = [s.b for s in trainer.spans if s.kind == "backward" and low <= s.t0_ns < high] or marked
    return {
        name: sum(1 for bits in backwards if bits & flag) / len(backwards)
        for flag, name in FLAG_NAMES.items()
        if backwards and any(bits & flag for bits in backwards)
    }


def _graph(trainer: _Trainer, key: str) -> int | None:
    counts = [note[key] for note in trainer.process.notes_of("graph") if isinstance(note.get(key), int)]
    return round(median(counts)) if counts else None


def _cpu_in(process: ProcessRecord, window: tuple[int, int]) -> int | None:
    """On-CPU time of the process over the window."""
    return _rate_in(process, window, PROCESS_CPU)


def _rate_in(process: ProcessRecord, window: tuple[int, int], column: int) -> int | None:
    """Growth of a USAGE column over the window, from the samples in it; None with fewer than two."""
    rows = [row for row in process.rows(schema.USAGE) if window[0] <= row[0] <= window[1] and row[column] >= 0]
    if len(rows) < 2 or rows[-1][0] == rows[0][0]:
        return None
    rate = (rows[-1][column] - rows[0][column]) / (rows[-1][0] - rows[0][0])
    return round(rate * (window[1] - window[0]))


def _switches(process: ProcessRecord, window: tuple[int, int]) -> float | None:
    switches = _rate_in(process, window, INVOLUNTARY)
    return switches / (window[1] - window[0]) * 1e9 if switches is not None else None


def _overhead(process: ProcessRecord, window: tuple[int, int]) -> float | None:
    """What whyidle's thread took of one core; the probes' own calls are measured by benchmarks/overhead."""
    spent_ns = _rate_in(process, window, PROBE)
    return spent_ns / (window[1] - window[0]) if spent_ns is not None else None


def _last_ns(process: ProcessRecord, otherwise: int) -> int:
    return max([otherwise, *(row[0] for row in process.rows(schema.USAGE))])


def _short(count: int) -> list[dict[str, str]]:
    if count <= 1:
        return [{"id": "one_step", "detail": str(count)}]
    return [{"id": "too_short", "detail": str(count)}] if count < 10 else []


def _samples_per_s(loader: Loader | None, samples: float | None, window_ns: int) -> float | None:
    if loader is None or not window_ns:
        return None
    per_batch = samples if samples is not None else loader.batch_size
    return loader.batches_count * per_batch / window_ns * 1e9 if per_batch else None


def _inside(samples: Sequence[Sample], stretches: Sequence[tuple[int, int]]) -> list[Sample]:
    lookup = Lookup(stretches)
    return [sample for sample in samples if sample.t_ns in lookup]


def _hot_lines(
    result: PhaseSplit, lines: _Lines, window_ns: int, phases: Mapping[str, Phase]
) -> tuple[HotLine, ...]:
    found = []
    for name, phase in phases.items():
        by_frame: Counter[Any] = Counter()
        samples = result.samples[name]
        for sample in samples:
            if sample.stack.frames:
                by_frame[sample.stack.frames[0]] += 1
        for frame, count in by_frame.most_common(3):
            line = lines.of([s for s in samples if s.stack.frames and s.stack.frames[0] == frame])
            if line is not None:
                share = count / len(samples) * phase.host_ns / window_ns
                found.append(HotLine(phase=name, line=line, share_ratio=share))
    found.sort(key=lambda hot: -hot.share_ratio)
    return tuple(found[:LINES_SHOWN])
