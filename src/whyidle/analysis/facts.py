"""The one frozen object that causes read. Absent is None, with a reason in `missing`.

Durations are nanoseconds summed over the steady window unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whyidle.analysis.device_idle import DeviceIdle


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the user's source and its share of the samples of what it stands for."""

    place: str  # file.py:41
    share_ratio: float
    text: str | None = None
    function: str | None = None
    loop_line: str | None = None  # head of the Python loop around it, inside the step
    function_share_ratio: float = 0.0  # share of the samples in the same function
    loop_share_ratio: float = 0.0  # share of the samples that stand in such loops
    libraries: Mapping[str, float] = field(default_factory=dict)  # package: share of the samples


@dataclass(frozen=True, kw_only=True)
class Phase:
    host_ns: int
    bubble_ns: int
    line: Line | None = None


@dataclass(frozen=True, kw_only=True)
class Calls:
    """All calls of one kind on the training thread: `self_ns` leaves out what they call in turn."""

    count: int
    self_ns: int
    total_ns: int
    max_ns: int = 0
    bytes: int = 0
    steps_with_calls: int = 0
    # Of copies to the device:
    pageable_ratio: float | None = None  # of the bytes
    pageable_non_blocking_count: int = 0  # asked not to block, from memory where that is impossible
    blocking_ratio: float | None = None  # of the calls: pageable, or not asked to run beside the host
    inside_model_count: int = 0  # within a forward pass or a loss
    names: Mapping[str, int] = field(default_factory=dict)  # name of the call or library: self_ns
    line: Line | None = None


@dataclass(frozen=True, kw_only=True)
class Loader:
    """The DataLoader that feeds training, over all its iterators."""

    num_workers: int
    batches_count: int
    wait_ns: int  # the loop's time in `next` and in making iterators
    steady_wait_ns: int  # of it, in `next`, first and last of each iterator left out
    epoch_starts_ns: tuple[int, ...] = ()  # making an iterator and waiting for its first batch
    epoch_ends_ns: int = 0  # the calls that ended an iterator: workers are shut down there
    batch_size: int | None = None
    prefetch_factor: int | None = None
    persistent_workers: bool | None = None
    in_order: bool = True
    is_iterable: bool = False
    start_method: str | None = None
    dataset: str | None = None
    next_cpu_ns: int = 0  # on-CPU time of the loop's thread in steady `next`
    wait_p50_ns: int = 0
    wait_p99_ns: int = 0
    # What making a batch takes, measured where it is made; None when no worker was seen.
    service_ns: float | None = None  # mean per batch
    service_p50_ns: float | None = None
    service_p95_ns: float | None = None
    on_cpu_ratio: float | None = None  # of the service time
    run_delay_ratio: float | None = None  # ready to run and no core, of the service time
    samples_per_batch: float | None = None
    collate_ratio: float | None = None
    collate: str | None = None  # name of the collate function
    own_ns: float | None = None  # on-CPU time of making a batch when least disturbed
    sample_p50_ns: float | None = None  # per batch mean, median over batches
    sample_max_ns: float | None = None
    opens_per_sample: float | None = None
    bytes_per_sample: float | None = None
    worker_busy_ratio: float | None = None
    worker_threads: int | None = None
    reopened_path: str | None = None  # the file most often opened
    reopened_per_sample: float | None = None
    ready_p50: float | None = None  # batches waiting when the loop asks
    head_of_line_ratio: float | None = None  # share of steady wait in which later batches had arrived
    late_share_ratio: float | None = None  # share of steady wait spent on batches twice as slow as the median
    late_sample_ratio: float | None = None  # of those batches, the part that their slowest sample took
    first_start_ns: int = 0
    line: Line | None = None  # hottest line where samples are made
    predictions: Mapping[str, float] = field(default_factory=dict)  # change: step time, see loader_model
    # Step time when making a batch takes only this part of what it takes now; from 0 to 1.
    with_service_ratio: Mapping[float, float] = field(default_factory=dict)
    suggested_num_workers: int | None = None
    suggested_prefetch_factor: int | None = None


@dataclass(frozen=True, kw_only=True)
class Validation:
    time_ns: int
    batches_count: int
    batch_size: int | None
    samples_per_s: float | None
    training_samples_per_s: float | None
    forward_per_sample_ns: float | None = None  # of training
    line: Line | None = None


@dataclass(frozen=True, kw_only=True)
class Trend:
    """Step time over the run: trimmed means of its first and last fifth, and how steadily it rose between."""

    first_ns: float
    last_ns: float
    mean_ns: float
    monotony_ratio: float  # share of the rises among successive tenths
    cpu_growth_ratio: float | None = None  # on-CPU time a step, last third against first
    memory_growth_bytes: int | None = None
    growing_phase: str | None = None
    line: Line | None = None


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Start-up or wind-down: outside the steady window, judged against the whole run."""

    time_ns: int
    line: Line | None = None
    library: str | None = None


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Threads of the process besides the training one that run the user's Python."""

    busy_ratio: float  # samples in which at least one of them stood in user code, not waiting
    count: int
    line: Line | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    device_kind: str = "cpu"
    visible_devices_count: int | None = None
    cores_count: float | None = None
    wall_ns: int = 0
    window_ns: int = 0
    start: Edge | None = None
    end: Edge | None = None
    steps_count: int = 0
    step_mean_ns: float = 0.0
    step_median_ns: float = 0.0
    step_p95_ns: float = 0.0
    phases: Mapping[str, Phase] = field(default_factory=dict)
    calls: Mapping[str, Calls] = field(default_factory=dict)
    loader: Loader | None = None
    validation: Validation | None = None
    trend: Trend | None = None
    threads: Threads | None = None
    flags: Mapping[str, float] = field(default_factory=dict)  # debug switch: share of steps it was on
    replayed_batches: int = 0
    replay_ns: int = 0
    replay_line: Line | None = None
    loss_calls: int | None = None  # Python and C calls between forward and backward, on one step
    loss_graph_nodes: int | None = None
    graph_nodes: int | None = None
    main_cpu_ns: int | None = None  # all threads of the training process
    main_thread_cpu_ns: int | None = None
    involuntary_switches_per_s: float | None = None
    device: DeviceIdle | None = None  # None on a CPU run, and where no markers could be read
    missing: Mapping[str, str] = field(default_factory=dict)  # fact: what would have told

    def phase_ns(self, name: str) -> int:
        """Idle time of the device in a phase; 0 for a phase that did not occur."""
        phase = self.phases.get(name)
        return phase.bubble_ns if phase is not None else 0

    def share(self, duration_ns: float) -> float:
        """Of the steady window."""
        return duration_ns / self.window_ns if self.window_ns else 0.0

    def per_step(self, duration_ns: float) -> float:
        return duration_ns / self.steps_count if self.steps_count else 0.0
