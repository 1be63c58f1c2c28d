"""From a record to the facts of the run: finds the training process and measures it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from whyidle.analysis.call_facts import calls_by_kind, debug_flags, graph_count
from whyidle.analysis.device_idle import DeviceIdle, device_idle
from whyidle.analysis.facts import Edge, Facts, Line, Loader, Phase, Threads
from whyidle.analysis.intervals import Lookup, clip, total
from whyidle.analysis.lines import Lines
from whyidle.analysis.loader_facts import loader_facts, percentile
from whyidle.analysis.stacks import Frame, Sample, is_waiting, samples_of, sources_of
from whyidle.analysis.step_phases import COMPUTE_PHASES, PHASES, PhaseSplit
from whyidle.analysis.trainer import (
    Trainer,
    device_kind,
    kept,
    observed_ns,
    rank_of,
    split_phases,
    trainer_of,
)
from whyidle.analysis.trend import trend
from whyidle.analysis.usage import MAIN_CPU, cpu_in, overhead, rate_in, switches
from whyidle.analysis.validation_facts import validation_facts
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord, RunRecord

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


def run_facts(run: RunRecord) -> RunFacts:
    """Measure a run. Never fails for what a record may hold; what is missing is named."""
    wall_ns = _wall_ns(run)
    trainers = [trainer for trainer in map(trainer_of, run.processes) if trainer is not None]
    if not trainers:
        return RunFacts(facts=None, wall_ns=wall_ns, problems=tuple(run.problems + _why_no_steps(run)))
    trainers.sort(key=lambda trainer: (rank_of(trainer.process), -len(trainer.steps.ends_ns)))
    ranks = tuple(rank_line(trainer) for trainer in trainers if is_rank(trainer, trainers[0]))
    return _measure(run, trainers[0], wall_ns, ranks)


def is_rank(trainer: Trainer, leader: Trainer) -> bool:
    return trainer is leader or trainer.process.header.get("rank") is not None


def rank_line(trainer: Trainer) -> Rank:
    ends = trainer.steps.ends_ns
    durations = [after - before for before, after in pairwise(ends)]
    return Rank(
        rank=rank_of(trainer.process),
        pid=int(trainer.process.header.get("pid") or 0),
        steps_count=len(ends),
        step_median_ns=median(durations) if durations else 0.0,
    )


def _why_no_steps(run: RunRecord) -> list[dict[str, str]]:
    if not run.run.get("entered", True):
        return [{"id": "not_entered", "detail": ""}]
    if not any(process.header.get("torch") for process in run.processes):
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


def _measure(run: RunRecord, trainer: Trainer, wall_ns: int, ranks: tuple[Rank, ...]) -> RunFacts:
    steps, sources = trainer.steps, sources_of(run.run)
    low, high = steps.window
    observed = observed_ns(trainer.process, (low, high))
    result = split_phases(trainer, sources, (low, high))
    window_ns = high - low
    # Where detail was thinned out, what was kept stands for what was not.
    scale = window_ns / observed if observed else 1.0
    kind = device_kind(trainer)
    lines = Lines(sources)
    device = device_idle(trainer.process, result.pieces, (low, high)) if kind != "cpu" else None
    phases = {
        name: Phase(
            host_ns=round(duration_ns * scale),
            bubble_ns=round(_idle_part(device, name) * duration_ns * scale),
            line=lines.of(result.samples[name]),
        )
        for name, duration_ns in sorted(result.phase_ns.items(), key=lambda item: _phase_order(item[0]))
        if duration_ns > 0
    }
    process_start_ns = run.run.get("start_ns") or int(trainer.process.header.get("perf_counter_ns") or low)
    process_end_ns = run.run.get("end_ns") or _last_ns(trainer.process, high)
    count, mean_ns, durations = _step_times(trainer, window_ns)
    cores = run.run.get("environment", {}).get("effective_cores")
    main_cpu_ns = cpu_in(trainer.process, (low, high))
    loader = loader_facts(
        trainer.process,
        [process for process in run.processes if process.header.get("role") == "worker"],
        steps,
        cores=cores,
        main_cpu_ns=main_cpu_ns,
        line=_data_line(run, trainer, result, lines),
        scale=scale,
        device_busy_ns=window_ns - sum(p.bubble_ns for p in phases.values()) if device is not None else 0.0,
    )
    if loader is not None and device is not None:
        loader = _only_idle(loader, _idle_part(device, "data"))
    if loader is not None and loader.line is not None and "data" in phases:
        phases["data"] = replace(phases["data"], line=loader.line)
    facts = Facts(
        device_kind=kind,
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
        calls=calls_by_kind(trainer, result, lines, scale),
        loader=loader,
        validation=validation_facts(trainer, phases, loader, mean_ns),
        trend=trend(trainer, sources, lines),
        threads=_threads(trainer, lines),
        flags=debug_flags(trainer),
        replayed_batches=steps.replayed_batches,
        replay_ns=total(clip(steps.replay, (low, high))),
        replay_line=lines.of(_inside(trainer.samples, steps.replay)),
        loss_calls=graph_count(trainer, "loss_calls"),
        loss_graph_nodes=graph_count(trainer, "loss_nodes"),
        graph_nodes=graph_count(trainer, "nodes"),
        main_cpu_ns=main_cpu_ns,
        main_thread_cpu_ns=rate_in(trainer.process, (low, high), MAIN_CPU),
        involuntary_switches_per_s=switches(trainer.process, (low, high)),
        device=device,
        missing={} if kind == "cpu" or device is not None else {"device_idle": "device_idle"},
    )
    samples = loader.samples_per_batch if loader is not None else None
    return RunFacts(
        facts=facts,
        wall_ns=wall_ns or process_end_ns - process_start_ns,
        ranks=ranks,
        lines=_hot_lines(result, lines, window_ns, phases),
        problems=tuple(run.problems + _short(count)),
        samples_per_s=_samples_per_s(loader, samples, window_ns),
        overhead_ratio=overhead(trainer.process, (low, high)),
    )


def _idle_part(device: DeviceIdle | None, phase: str) -> float:
    """Of a phase's host time, the part in which the device idles. On a CPU run the host is the device."""
    if device is None:
        return 0.0 if phase in COMPUTE_PHASES else 1.0
    # A phase that only stack samples name lies in what the markers know as unnamed time.
    return device.ratio_by_phase.get(phase, device.ratio_by_phase.get("other", 0.0))


def _only_idle(loader: Loader, ratio: float) -> Loader:
    """Waiting that a busy device hides costs nothing."""
    return replace(
        loader,
        wait_ns=round(loader.wait_ns * ratio),
        steady_wait_ns=round(loader.steady_wait_ns * ratio),
        epoch_starts_ns=tuple(round(start * ratio) for start in loader.epoch_starts_ns),
        epoch_ends_ns=round(loader.epoch_ends_ns * ratio),
        first_start_ns=round(loader.first_start_ns * ratio),
    )


def _phase_order(name: str) -> int:
    return PHASES.index(name) if name in PHASES else len(PHASES)


def _step_times(trainer: Trainer, window_ns: int) -> tuple[int, float, list[float]]:
    low, high = trainer.steps.window
    ends = [end for end in trainer.steps.ends_ns if low < end <= high]
    thinned = sum(row[2] for row in trainer.process.rows(schema.THINNED) if low < row[1] <= high)
    count = len(ends) + thinned
    durations = []
    lookup = Lookup(kept(trainer.process, (low, high)))
    for before, after in pairwise(ends):
        if lookup.index(before) == lookup.index(after - 1):
            durations.append(float(after - before))
    return count, window_ns / count if count else 0.0, durations


def _data_line(run: RunRecord, trainer: Trainer, result: PhaseSplit, lines: Lines) -> Line | None:
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


def _edge(trainer: Trainer, lines: Lines, stretch: tuple[int, int]) -> Edge:
    start, end = stretch
    samples = [sample for sample in trainer.samples if start <= sample.t_ns < end]
    line = lines.of(samples)
    library = next(iter(line.libraries), None) if line is not None else None
    return Edge(time_ns=max(0, end - start), line=line, library=library)


def _threads(trainer: Trainer, lines: Lines) -> Threads | None:
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
    result: PhaseSplit, lines: Lines, window_ns: int, phases: Mapping[str, Phase]
) -> tuple[HotLine, ...]:
    found = []
    for name, phase in phases.items():
        by_frame: Counter[Frame] = Counter()
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
