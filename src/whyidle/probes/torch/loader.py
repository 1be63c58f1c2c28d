"""Times the DataLoader from both ends: what the loop waits for, and what making each batch takes."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from time import perf_counter_ns, process_time_ns, thread_time_ns
from types import ModuleType

from whyidle.probes.numbering import Numbering
from whyidle.probes.python.files import OpenCounter
from whyidle.probes.recorder import Recorder
from whyidle.probes.torch.fetch_meter import CHEAP_NS, FetchMeter
from whyidle.probes.wrapping import Marks, replace, stand_in, without_own_frame
from whyidle.record.schema import KIND

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

ITER = KIND["iter"]
ITERATOR_NOTES_LIMIT = 5000  # a script may make an iterator a step; spans still count them
SETTINGS = (
    "num_workers",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory",
    "drop_last",
    "timeout",
    "in_order",
)


def attach_loader(recorder: Recorder, module: ModuleType) -> None:
    loaders = Numbering()
    counts = {"iterator": 0}

    def loader_number(loader: Any) -> int:
        number, is_new = loaders.number(loader)
        if is_new:
            recorder.note("loader", id=number, settings=loader_settings(loader))
            recorder.start()
        return number

    def forget() -> None:
        loaders.clear()

    def number_iterator(loader: Any, iterator: Any, t0_ns: int, t1_ns: int) -> None:
        number = counts["iterator"] = counts["iterator"] + 1
        loader_id = loader_number(loader)
        if hasattr(iterator, "__dict__"):  # a subclass may give a generator
            iterator._whyidle_iterator = number
        if number <= ITERATOR_NOTES_LIMIT:
            seed = getattr(iterator, "_base_seed", None)
            recorder.note("iterator", id=number, loader=loader_id, seed=seed, t_ns=t0_ns)
        recorder.spans.append((ITER, get_ident(), t0_ns, t1_ns, loader_id, number))

    def wrap_iter(original: Any) -> Any:
        def __iter__(self: Any) -> Any:  # noqa: N807
            t0_ns = perf_counter_ns()
            try:
                iterator = original(self)
            except BaseException as error:
                without_own_frame(error)
                raise
            t1_ns = perf_counter_ns()
            try:
                number_iterator(self, iterator, t0_ns, t1_ns)
            except Exception as error:
                recorder.note("problem", id="probe_failed", detail=f"iter: {error!r}")
            return iterator

        return stand_in(__iter__, original)

    recorder.after_fork.append(forget)
    replace(module.DataLoader, "__iter__", wrap_iter)
    replace(module._BaseDataLoaderIter, "__next__", lambda original: _timed_next(recorder, original))


def loader_settings(loader: Any) -> dict[str, Any]:
    """What was asked of the loader; None for what this torch does not have."""
    settings: dict[str, Any] = {name: _plain(getattr(loader, name, None)) for name in SETTINGS}
    sampler = getattr(loader, "batch_sampler", None)
    batch_size = getattr(loader, "batch_size", None)
    settings["batch_size"] = _plain(batch_size or getattr(sampler, "batch_size", None))
    settings["dataset"] = type(getattr(loader, "dataset", None)).__name__
    settings["is_iterable"] = getattr(loader, "_dataset_kind", 0) == 1
    settings["collate"] = getattr(getattr(loader, "collate_fn", None), "__name__", None)
    settings["sampler"] = type(getattr(loader, "sampler", None)).__name__
    context = getattr(loader, "multiprocessing_context", None)
    settings["start_method"] = (context or sys.modules["torch"].multiprocessing).get_start_method(True)
    return settings


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool)) else None


def _timed_next(recorder: Recorder, original: Any) -> Any:
    append = recorder.nexts.append

    def __next__(self: Any) -> Any:  # noqa: N807
        has_workers = "_task_info" in self.__dict__
        ready = _ready(self) if has_workers else -1
        has_ended = 0
        if Marks.mark is not None:
            Marks.mark()
        cpu0_ns = thread_time_ns() if has_workers else 0
        t0_ns = perf_counter_ns()
        try:
            return original(self)
        except BaseException as error:
            has_ended = 1
            without_own_frame(error)
            raise
        finally:
            t1_ns = perf_counter_ns()
            behind, cpu_ns = (_cached(self), thread_time_ns() - cpu0_ns) if has_workers else (-1, 0)
            iterator = self.__dict__.get("_whyidle_iterator", 0)
            append((get_ident(), t0_ns, t1_ns, iterator, ready, behind, cpu_ns, has_ended))
            if Marks.mark is not None:
                Marks.mark()

    return stand_in(__next__, original)


def _cached(iterator: Any) -> int:
    """Batches that came out of order and wait in the main process; -1 without workers."""
    info = iterator.__dict__.get("_task_info")
    if info is None:
        return -1
    try:
        return sum(1 for task in info.values() if len(task) > 1)
    except (TypeError, RuntimeError):
        return -1


def _ready(iterator: Any) -> int:
    """Batches that wait for the loop right now; -1 without workers or where it cannot be known."""
    cached = _cached(iterator)
    if cached < 0:
        return -1
    try:
        queue = iterator._data_queue if iterator._pin_memory else iterator._worker_result_queue
        return cached + int(queue.qsize())
    except Exception:
        return -1


def attach_fetchers(recorder: Recorder, module: ModuleType) -> None:
    counter = OpenCounter()

    def note_reopened() -> None:
        paths = sorted(counter.by_path.items(), key=lambda item: -item[1])[:5]
        if counter.fetches and paths:
            recorder.note("reopened", paths=paths, distinct=len(counter.by_path), fetches=counter.fetches)

    recorder.at_end.append(note_reopened)
    recorder.after_fork.append(counter.forget)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        class_ = getattr(module, name, None)
        if class_ is not None:
            replace(class_, "fetch", lambda original: _timed_fetch(recorder, original, counter))


def _timed_fetch(recorder: Recorder, original: Any, counter: OpenCounter) -> Any:
    append = recorder.fetches.append

    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        meter = self.__dict__.get("_whyidle_meter") or FetchMeter.of(self)
        if meter.skips:
            meter.skips -= 1
            t0_ns = perf_counter_ns()
            try:
                return original(self, possibly_batched_index)
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                t1_ns = perf_counter_ns()
                append((get_ident(), t0_ns, t1_ns, -1, -1, meter.usual_samples, -1, -1, -1, -1))
                if t1_ns - t0_ns > CHEAP_NS:
                    meter.skips = 0
        meter.begin()
        counter.begin()
        t0_ns, cpu0_ns = perf_counter_ns(), process_time_ns()
        try:
            return original(self, possibly_batched_index)
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            t1_ns, cpu_ns = perf_counter_ns(), process_time_ns() - cpu0_ns
            opens = counter.stop()
            append((get_ident(), t0_ns, t1_ns, cpu_ns, *meter.end(t1_ns - t0_ns, opens)))

    return stand_in(fetch, original)


def attach_worker_loop(recorder: Recorder, module: ModuleType) -> None:
    def wrap(original: Any) -> Any:
        def _worker_loop(*args: Any, **kwargs: Any) -> Any:
            try:
                recorder.become_worker()
                recorder.note("worker", t_ns=perf_counter_ns(), **_worker_facts(args))
            except Exception as error:
                recorder.note("problem", id="probe_failed", detail=f"worker: {error!r}")
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                recorder.note("worker_threads", count=_torch_threads())
                recorder.end()

        return stand_in(_worker_loop, original)

    replace(module, "_worker_loop", wrap)


def _worker_facts(args: tuple[Any, ...]) -> dict[str, Any]:
    """From the arguments by position that DataLoader has passed since torch 1.2."""
    facts: dict[str, Any] = {
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    }
    if len(args) >= 12:
        facts.update(seed=args[8], worker=args[10], num_workers=args[11])
    return facts


def _torch_threads() -> int | None:
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch is not None else None
