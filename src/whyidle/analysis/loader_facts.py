"""The DataLoader that feeds training: its waits seen from the loop, its work seen from the workers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median
from typing import Any, NamedTuple

from whyidle.analysis import loader_model
from whyidle.analysis.facts import Line, Loader
from whyidle.analysis.intervals import Interval, intersection, total, union
from whyidle.analysis.loader_model import Workload
from whyidle.analysis.steps import Steps
from whyidle.record import schema
from whyidle.record.reader import ProcessRecord

LATE_FACTOR = 2.0
SERVICE_RATIOS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


class Next(NamedTuple):
    """A row of the NEXT table."""

    thread: int
    t0_ns: int
    t1_ns: int
    iterator: int
    ready: int
    behind: int
    cpu_ns: int
    has_ended: int

    @property
    def duration_ns(self) -> int:
        return self.t1_ns - self.t0_ns


class Fetch(NamedTuple):
    """A row of the FETCH table."""

    thread: int
    t0_ns: int
    t1_ns: int
    cpu_ns: int
    run_delay_ns: int
    samples: int
    collate_ns: int
    max_sample_ns: int
    opens: int
    read_bytes: int
    collecting_ns: int = 0  # garbage collections within it

    @property
    def duration_ns(self) -> int:
        return self.t1_ns - self.t0_ns

    @property
    def is_detailed(self) -> bool:
        return self.cpu_ns >= 0

    @property
    def undisturbed_ns(self) -> int:
        """Without time in line for a core and pauses of the collector, which say nothing about the batch."""
        return max(1, self.duration_ns - max(self.run_delay_ns, 0) - self.collecting_ns)


def percentile(values: Sequence[float], ratio: float) -> float:
    """Nearest-rank percentile; 0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(ratio * len(ordered)))] if ordered else 0.0


def loader_facts(
    trainer: ProcessRecord,
    workers: Sequence[ProcessRecord],
    steps: Steps,
    *,
    cores: float | None,
    main_cpu_ns: int | None,
    line: Line | None,
    scale: float = 1.0,
    device_busy_ns: float = 0.0,
) -> Loader | None:
    """None where no DataLoader fed the steps.

    `scale` is the window over what of it was recorded in full; sums are scaled up by it.
    `device_busy_ns` is the time in the window for which the device had work, 0 where the host is the device.
    """
    low, high = steps.window
    all_nexts = [Next(*row) for row in trainer.rows(schema.NEXT) if row[3] in steps.training_iterators]
    nexts = [call for call in all_nexts if call.t1_ns > low and call.t0_ns < high]
    if not nexts:
        return None
    settings, iterators = _settings(trainer, steps)
    loader = _waits(trainer, nexts, settings, _epoch_firsts(all_nexts), scale)
    seeds = {note["seed"] for note in trainer.notes_of("iterator") if note["id"] in iterators}
    own_workers = [worker for worker in workers if _seed(worker) in seeds]
    fetches = _fetches(trainer, own_workers, nexts, loader.num_workers, (low, high))
    if any(fetch.is_detailed for fetch in fetches):
        loader = _service(loader, fetches, own_workers, nexts)
        loader = _reopened(loader, [trainer] if loader.num_workers == 0 else own_workers, fetches)
        loader = _predict(loader, fetches, nexts, cores, main_cpu_ns, device_busy_ns)
    return replace(loader, line=line)


def _seed(worker: ProcessRecord) -> int | None:
    notes = worker.notes_of("worker")
    return notes[0].get("seed") if notes else None


def _settings(trainer: ProcessRecord, steps: Steps) -> tuple[Mapping[str, Any], set[int]]:
    """Settings of the loader that most training iterators come from, and those iterators."""
    loaders = {note["id"]: note["settings"] for note in trainer.notes_of("loader")}
    iterators = {note["id"]: note["loader"] for note in trainer.notes_of("iterator")}
    used = Counter(iterators[number] for number in steps.training_iterators if number in iterators)
    if not used:
        return {}, set(steps.training_iterators)
    settings = loaders.get(used.most_common(1)[0][0], {})
    return settings, set(steps.training_iterators)


def _waits(
    trainer: ProcessRecord,
    nexts: Sequence[Next],
    settings: Mapping[str, Any],
    epoch_firsts: set[int],
    scale: float,
) -> Loader:
    first: dict[int, Next] = {}
    ends_ns = 0
    steady: list[Next] = []
    for call in nexts:
        if call.has_ended:
            ends_ns += call.duration_ns
        elif call.t0_ns in epoch_firsts:
            first[call.t0_ns] = call
        else:
            steady.append(call)
    making = {
        b: t1 - t0 for kind, _, t0, t1, _, b in trainer.rows(schema.SPAN) if kind == schema.KIND["iter"]
    }
    starts = tuple(
        call.duration_ns + making.get(call.iterator, 0)
        for call in sorted(first.values(), key=lambda c: c.t0_ns)
    )
    durations = [call.duration_ns for call in steady]
    ready = [call.ready for call in steady if call.ready >= 0]
    steady_ns = sum(durations)
    blocked = sum(call.duration_ns for call in steady if call.behind > 0)
    return Loader(
        num_workers=int(settings.get("num_workers") or 0),
        batches_count=round((len(nexts) - sum(call.has_ended for call in nexts)) * scale),
        wait_ns=round((steady_ns + sum(starts) + ends_ns) * scale),
        steady_wait_ns=round(steady_ns * scale),
        epoch_starts_ns=starts,
        epoch_ends_ns=round(ends_ns * scale),
        first_start_ns=starts[0] if starts else 0,
        batch_size=settings.get("batch_size"),
        prefetch_factor=settings.get("prefetch_factor"),
        persistent_workers=settings.get("persistent_workers"),
        in_order=settings.get("in_order") is not False,
        is_iterable=bool(settings.get("is_iterable")),
        start_method=settings.get("start_method"),
        dataset=settings.get("dataset"),
        collate=settings.get("collate"),
        next_cpu_ns=round(sum(call.cpu_ns for call in steady) * scale),
        wait_p50_ns=int(percentile(durations, 0.5)),
        wait_p99_ns=int(percentile(durations, 0.99)),
        ready_p50=float(median(ready)) if ready else None,
        head_of_line_ratio=blocked / steady_ns if steady_ns and ready else None,
    )


def _epoch_firsts(nexts: Sequence[Next]) -> set[int]:
    """Start times of the first `next` of each iteration; a persistent iterator starts anew each epoch."""
    firsts = set()
    seen: set[int] = set()
    for call in sorted(nexts, key=lambda call: call.t0_ns):
        if call.iterator not in seen:
            seen.add(call.iterator)
            firsts.add(call.t0_ns)
    return firsts


def _fetches(
    trainer: ProcessRecord,
    workers: Sequence[ProcessRecord],
    nexts: Sequence[Next],
    num_workers: int,
    window: tuple[int, int],
) -> list[Fetch]:
    if num_workers == 0:
        calls = {(call.thread, call.t0_ns): call for call in nexts}
        ordered = sorted(calls.values(), key=lambda call: call.t0_ns)
        found = []
        rows = sorted(_fetches_of(trainer), key=lambda row: row.t0_ns)
        at = 0
        for fetch in rows:
            while at < len(ordered) and ordered[at].t1_ns < fetch.t0_ns:
                at += 1
            if at < len(ordered) and ordered[at].t0_ns <= fetch.t0_ns and fetch.t1_ns <= ordered[at].t1_ns:
                found.append(fetch)
        return [fetch for fetch in found if fetch.samples]
    rows = [row for worker in workers for row in _fetches_of(worker)]
    return sorted((row for row in rows if row.samples and row.t1_ns > window[0]), key=lambda row: row.t0_ns)


def _fetches_of(process: ProcessRecord) -> list[Fetch]:
    pauses = union((row[2], row[3]) for row in process.rows(schema.SPAN) if row[0] == schema.KIND["gc"])
    return [Fetch._make((*row, _within(pauses, row[1], row[2]))) for row in process.rows(schema.FETCH)]


def _within(pauses: Sequence[Interval], t0_ns: int, t1_ns: int) -> int:
    """Time of the sorted, disjoint pauses within a stretch."""
    spent = 0
    for start, end in pauses[max(0, bisect_left(pauses, (t0_ns, 0)) - 1) :]:
        if start >= t1_ns:
            break
        spent += max(0, min(end, t1_ns) - max(start, t0_ns))
    return spent


def _service(
    loader: Loader, fetches: Sequence[Fetch], workers: Sequence[ProcessRecord], nexts: Sequence[Next]
) -> Loader:
    durations = [fetch.duration_ns for fetch in fetches]
    detailed = [fetch for fetch in fetches if fetch.is_detailed]
    total_ns = sum(fetch.duration_ns for fetch in detailed)
    samples = sum(fetch.samples for fetch in detailed)
    known_delay = [fetch for fetch in detailed if fetch.run_delay_ns >= 0]
    known_bytes = [fetch for fetch in detailed if fetch.read_bytes >= 0]
    slowest = [fetch.max_sample_ns for fetch in detailed if fetch.max_sample_ns >= 0]
    delayed_ns = sum(fetch.duration_ns for fetch in known_delay)
    threads = [note["count"] for worker in workers for note in worker.notes_of("worker_threads")]
    p50_ns = median(durations)
    return replace(
        loader,
        service_ns=fmean(durations),
        service_p50_ns=p50_ns,
        service_p95_ns=percentile(durations, 0.95),
        on_cpu_ratio=min(1.0, sum(fetch.cpu_ns for fetch in detailed) / total_ns) if total_ns else None,
        run_delay_ratio=sum(f.run_delay_ns for f in known_delay) / delayed_ns if delayed_ns else None,
        own_ns=percentile([fetch.cpu_ns for fetch in detailed], 0.1),
        samples_per_batch=samples / len(detailed),
        collate_ratio=sum(fetch.collate_ns for fetch in detailed) / total_ns if total_ns else None,
        sample_p50_ns=median((f.duration_ns - f.collate_ns) / f.samples for f in detailed),
        sample_max_ns=float(max(slowest)) if slowest else None,
        opens_per_sample=sum(fetch.opens for fetch in detailed) / samples,
        bytes_per_sample=sum(f.read_bytes for f in known_bytes) / sum(f.samples for f in known_bytes)
        if known_bytes
        else None,
        worker_busy_ratio=_busy_ratio(loader, fetches, nexts),
        worker_threads=max((count for count in threads if count), default=None),
        late_share_ratio=_late_share(loader, fetches, nexts),
        late_sample_ratio=_late_sample_ratio(fetches),
    )


def _busy_ratio(loader: Loader, fetches: Sequence[Fetch], nexts: Sequence[Next]) -> float | None:
    """Share of the workers' time spent making batches, from their first batch on."""
    if loader.num_workers == 0:
        return None
    span_ns = max(call.t1_ns for call in nexts) - min(fetch.t0_ns for fetch in fetches)
    busy_ns = sum(fetch.duration_ns for fetch in fetches)
    return min(1.0, busy_ns / (span_ns * loader.num_workers)) if span_ns > 0 else None


def _late_share(loader: Loader, fetches: Sequence[Fetch], nexts: Sequence[Next]) -> float | None:
    """Share of the loop's waiting during which a batch was being made that took twice the median."""
    waiting = union((call.t0_ns, call.t1_ns) for call in nexts if not call.has_ended)
    if loader.num_workers == 0 or not waiting:
        return None
    late = union((fetch.t0_ns, fetch.t1_ns) for fetch in _late(fetches))
    return total(intersection(waiting, late)) / total(waiting)


def _late(fetches: Sequence[Fetch]) -> list[Fetch]:
    """Batches that took at least twice the median, for reasons of their own."""
    limit_ns = LATE_FACTOR * median(fetch.undisturbed_ns for fetch in fetches)
    return [fetch for fetch in fetches if fetch.undisturbed_ns > limit_ns]


def _late_sample_ratio(fetches: Sequence[Fetch]) -> float | None:
    late = [fetch for fetch in _late(fetches) if fetch.max_sample_ns >= 0]
    whole_ns = sum(fetch.undisturbed_ns for fetch in late)
    return sum(min(f.max_sample_ns, f.undisturbed_ns) for f in late) / whole_ns if whole_ns else None


def _reopened(loader: Loader, processes: Sequence[ProcessRecord], fetches: Sequence[Fetch]) -> Loader:
    """The file that samples open most often."""
    opens: Counter[str] = Counter()
    batches = 0
    for process in processes:
        for note in process.notes_of("reopened")[-1:]:
            batches += note["fetches"]
            for path, count in note["paths"]:
                opens[path] += count
    if not opens or not batches or not loader.samples_per_batch:
        return loader
    path, count = opens.most_common(1)[0]
    return replace(
        loader, reopened_path=path, reopened_per_sample=count / (batches * loader.samples_per_batch)
    )


def _predict(
    loader: Loader,
    fetches: Sequence[Fetch],
    nexts: Sequence[Next],
    cores: float | None,
    main_cpu_ns: int | None,
    device_busy_ns: float,
) -> Loader:
    """Step times under other settings, in nanoseconds per batch; see `loader_model`."""
    # A host that runs ahead is back sooner than the device is done with the batch.
    per_batch_ns = device_busy_ns / max(1, loader.batches_count)
    computes = [max(compute, per_batch_ns) for compute in _computes(nexts)]
    if not computes:
        return loader
    # What a batch takes when it has a core to itself.
    services = [fetch.undisturbed_ns for fetch in fetches]
    batches = max(1, len(computes))
    worker_cpu = fmean(fetch.cpu_ns for fetch in fetches if fetch.is_detailed)
    main_cpu = (main_cpu_ns or 0) / batches
    if loader.num_workers == 0:
        main_cpu = max(0.0, main_cpu - worker_cpu)
    elif main_cpu == 0.0:
        main_cpu = fmean(computes)
    work = Workload(
        services_ns=services,
        computes_ns=computes,
        worker_cpu_ns=worker_cpu,
        main_cpu_ns=main_cpu,
        cores=cores or 1.0,
        handoff_ns=_handoff_ns(loader, nexts),
    )
    prefetch = loader.prefetch_factor or 2
    most = max(8, 4 * int(cores or 1), 2 * loader.num_workers)
    workers, with_more = loader_model.fewest_workers(work, prefetch, most)
    predictions = {
        "as_is": loader_model.step_ns(work, loader.num_workers, prefetch, in_order=loader.in_order),
        "more_workers": with_more,
        "no_workers": fmean(services) + fmean(computes),
        "free_data": fmean(computes),
        "cpu_bound": (worker_cpu + main_cpu) / (cores or 1.0),
    }
    scaled = {
        ratio: loader_model.step_ns(
            _scaled(work, ratio), loader.num_workers, prefetch, in_order=loader.in_order
        )
        for ratio in SERVICE_RATIOS
    }
    depth = None
    if loader.num_workers:
        depth, deeper = loader_model.shallowest_prefetch(work, loader.num_workers, prefetch)
        predictions["deeper_prefetch"] = deeper
        predictions["out_of_order"] = loader_model.step_ns(work, loader.num_workers, prefetch, in_order=False)
        usual = median(services)
        even = replace(work, services_ns=[min(service, 2 * usual) for service in services])
        predictions["even_samples"] = loader_model.step_ns(even, loader.num_workers, prefetch)
    return replace(
        loader,
        predictions=predictions,
        suggested_num_workers=workers,
        suggested_prefetch_factor=depth,
        with_service_ratio=scaled,
    )


def _scaled(work: Workload, ratio: float) -> Workload:
    """The same run with batches that take `ratio` of their time to make."""
    return replace(
        work,
        services_ns=[service * ratio for service in work.services_ns],
        worker_cpu_ns=work.worker_cpu_ns * ratio,
    )


def _handoff_ns(loader: Loader, nexts: Sequence[Next]) -> float:
    """What `next` costs when a batch is already there; the model's constant where that never was."""
    ready = [call.cpu_ns for call in nexts if call.ready > 0 and call.behind == 0 and not call.has_ended]
    # Unpickling is on-CPU; a third more passes in the hands of the other process.
    return 1.5 * float(median(ready)) if len(ready) >= 10 else loader_model.HANDOFF_NS


def _computes(nexts: Sequence[Next]) -> list[float]:
    """The loop's own time between getting a batch and asking for the next, by iterator."""
    by_iterator: dict[int, list[Next]] = defaultdict(list)
    for call in nexts:
        by_iterator[call.iterator].append(call)
    computes = []
    for calls in by_iterator.values():
        calls.sort(key=lambda call: call.t0_ns)
        computes += [float(after.t0_ns - before.t1_ns) for before, after in pairwise(calls)]
    return computes
