"""Looks inside one dataset fetcher: the slowest sample, the collation, what was read."""

from __future__ import annotations

import os
import weakref
from time import perf_counter_ns

from whyidle.probes.wrapping import without_own_frame

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from typing import Any

WORTH_READING_NS = 1_000_000  # the kernel's counters cost about 5 µs a fetch
# Looking inside a fetch costs up to a microsecond a sample. Fetches this cheap are looked into rarely.
CHEAP_NS = 1_000_000
CHEAP_SKIPS = 31


class TimedDataset:
    """Stands before a map-style dataset in its fetcher and notes the slowest sample of a batch."""

    def __init__(self, dataset: Any, meter: FetchMeter) -> None:
        self._dataset = dataset
        self._meter = meter

    def __getitem__(self, index: Any) -> Any:
        t0_ns = perf_counter_ns()
        try:
            return self._dataset[index]
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            self._meter.sample(perf_counter_ns() - t0_ns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


class TimedIterator:
    """Stands before an iterable dataset's iterator."""

    def __init__(self, iterator: Any, meter: FetchMeter) -> None:
        self._iterator = iterator
        self._meter = meter

    def __iter__(self) -> TimedIterator:
        return self

    def __next__(self) -> Any:
        t0_ns = perf_counter_ns()
        try:
            return next(self._iterator)
        except BaseException as error:
            without_own_frame(error)
            raise
        finally:
            self._meter.sample(perf_counter_ns() - t0_ns)


class FetchMeter:
    def __init__(self, fetcher: Any) -> None:
        self.skips = 0  # coming fetches that are not looked into
        self.usual_samples = 0
        self._samples = 0
        self._max_sample_ns = -1
        self._collate_ns = 0
        self._is_worth_reading = True
        self._fetcher = weakref.ref(fetcher)
        self._ways: list[tuple[str, Any, Any]] = []  # attribute, the fetcher's own, ours in its place
        self._begin: tuple[int, int] | None = None
        self._kernel = KernelCounters()
        self._is_in_the_way = True
        fetcher._whyidle_meter = self

    @classmethod
    def of(cls, fetcher: Any) -> FetchMeter:
        """A new meter that has placed itself in the fetcher's way, as far as the fetcher is one it knows."""
        meter = cls(fetcher)
        try:
            if hasattr(fetcher, "dataset_iter"):
                meter._place(fetcher, "dataset_iter", TimedIterator(fetcher.dataset_iter, meter))
            elif fetcher.auto_collation and not getattr(fetcher.dataset, "__getitems__", None):
                meter._place(fetcher, "dataset", TimedDataset(fetcher.dataset, meter))
            meter._place(fetcher, "collate_fn", meter._timed_collate(fetcher.collate_fn))
        except AttributeError:
            pass
        return meter

    def _place(self, fetcher: Any, attribute: str, ours: Any) -> None:
        self._ways.append((attribute, getattr(fetcher, attribute), ours))
        setattr(fetcher, attribute, ours)

    def _stand(self, *, in_the_way: bool) -> None:
        fetcher = self._fetcher()
        for attribute, own, ours in self._ways if fetcher is not None else ():
            setattr(fetcher, attribute, ours if in_the_way else own)
        self._is_in_the_way = in_the_way

    def sample(self, duration_ns: int) -> None:
        self._samples += 1
        if duration_ns > self._max_sample_ns:
            self._max_sample_ns = duration_ns

    def _timed_collate(self, collate: Any) -> Any:
        def timed_collate(samples: Any) -> Any:
            if not self._samples:
                self._samples = len(samples) if isinstance(samples, (list, tuple)) else 1
            t0_ns = perf_counter_ns()
            try:
                return collate(samples)
            except BaseException as error:
                without_own_frame(error)
                raise
            finally:
                self._collate_ns += perf_counter_ns() - t0_ns

        return timed_collate

    def begin(self) -> None:
        if not self._is_in_the_way:
            self._stand(in_the_way=True)
        self._samples = 0
        self._max_sample_ns = -1
        self._collate_ns = 0
        self._begin = self._kernel.read() if self._is_worth_reading else None

    def end(self, duration_ns: int, opens: int) -> tuple[int, ...]:
        """The columns of the FETCH table after cpu_ns."""
        run_delay_ns = read_bytes = -1
        if self._begin is not None:
            now = self._kernel.read()
            run_delay_ns = _difference(now[0], self._begin[0])
            read_bytes = _difference(now[1], self._begin[1])
        self._is_worth_reading = duration_ns > WORTH_READING_NS
        self.usual_samples = self._samples
        if duration_ns < CHEAP_NS:
            self.skips = CHEAP_SKIPS
            self._stand(in_the_way=False)
        return (run_delay_ns, self._samples, self._collate_ns, self._max_sample_ns, opens, read_bytes)


def _difference(now: int, before: int) -> int:
    return now - before if now >= 0 and before >= 0 else -1


class KernelCounters:
    """This thread's run delay and bytes read, from /proc kept open; -1 where the kernel does not say."""

    def __init__(self) -> None:
        self._schedstat = _open("/proc/thread-self/schedstat")
        self._io = _open("/proc/thread-self/io")

    def read(self) -> tuple[int, int]:
        try:
            run_delay_ns = int(os.pread(self._schedstat, 64, 0).split()[1])
        except (OSError, ValueError, IndexError):
            run_delay_ns = -1
        try:
            read_bytes = int(os.pread(self._io, 64, 0).split(None, 2)[1])
        except (OSError, ValueError, IndexError):
            read_bytes = -1
        return run_delay_ns, read_bytes

    def __del__(self) -> None:
        for fd in (self._schedstat, self._io):
            if fd >= 0:
                try:
                    os.close(fd)
                except OSError:
                    pass


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
