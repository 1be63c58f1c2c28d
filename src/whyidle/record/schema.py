"""Every table and field of the record, with its unit. The one format that probes and analyses share.

A run is a folder:

    run.json              what the launcher knows: command, times, exit status, environment
    host.jsonl            one line a tick: the process tree and the GPU, seen from outside
    <role>-<pid>-<n>.rec  one append-only file a process

A `.rec` file is `MAGIC`, a version, a JSON header, then frames. Each frame carries its length and a
CRC-32, so a file cut at any byte is readable up to its last whole frame. Rows are little-endian
int64, row after row. Times are nanoseconds of the machine's monotonic clock (`time.perf_counter_ns`),
the same for all processes of one machine; the header pins that clock to Unix time.
"""

from __future__ import annotations

import struct
import zlib

VERSION = 1
MAGIC = b"WHYIDLE\n"
FILE_HEAD = "<8sII"  # magic, version, length of the JSON header
FRAME_HEAD = "<2sBBII"  # mark, frame type, table number, payload length, CRC-32 of these and the payload
FRAME_MARK = b"WF"

ROWS_FRAME = 1
JSON_FRAME = 2

SPAN = 0
FETCH = 1
STACK = 2
USAGE = 3
THINNED = 4
NEXT = 5
MARK = 6

TABLES: dict[int, tuple[str, ...]] = {
    # A call on one thread. Spans of a thread nest. `a` and `b` depend on the kind, see SPAN_KINDS.
    SPAN: ("kind", "thread", "t0_ns", "t1_ns", "a", "b"),
    # One batch made by a dataset fetcher, in a worker or in the main process. Of batches that take under
    # a millisecond most are timed only: -1 in all columns after the times but `samples`.
    FETCH: (
        "thread",
        "t0_ns",
        "t1_ns",
        "cpu_ns",  # on-CPU time of the process: a sample may compute on several threads
        "run_delay_ns",  # time it was ready to run and had no core; -1 unknown
        "samples",
        "collate_ns",
        "max_sample_ns",  # -1 where samples are fetched as a whole batch
        "opens",
        "read_bytes",  # bytes asked of read calls, cached or not; -1 unknown
    ),
    # Where a thread stood. `stack` is an interned stack, `instruction` the offset in its user frame.
    STACK: ("t_ns", "thread", "stack", "instruction"),
    # The process as a whole, about once a second.
    USAGE: (
        "t_ns",
        "cpu_ns",
        "rss_bytes",
        "voluntary_switches",
        "involuntary_switches",
        "main_cpu_ns",  # of the main thread alone
        "main_run_delay_ns",
        "major_faults",
        "probe_ns",  # what whyidle's own thread has used so far
    ),
    # One batch asked of a DataLoader's iterator. A span like those of SPAN: it nests with them.
    NEXT: (
        "thread",
        "t0_ns",
        "t1_ns",
        "iterator",
        "ready",  # batches waiting at entry; -1 unknown
        "behind",  # batches that had arrived before the one waited for, at exit; -1 unknown
        "cpu_ns",  # on-CPU time of the thread
        "has_ended",  # 1 when the call ended the iteration instead of giving a batch
    ),
    # A marker on the device's queue, at an edge of a span of the training thread: when the host set it,
    # and when the device came to it, on the device's own clock. `is_first` 1: the markers before it are
    # not its neighbours.
    MARK: ("host_ns", "device_ns", "is_first"),
    # A stretch whose rows were counted and dropped to keep the file bounded.
    THINNED: ("t0_ns", "t1_ns", "optimizer_steps", "rows"),
}

# Index = the number in the file. Append only.
SPAN_KINDS = (
    "iter",  # DataLoader.__iter__; a: loader, b: iterator
    "forward",  # outermost module call; a: class name, b: FORWARD_TRAINING | FORWARD_GRAD
    "loss",  # outermost call of a loss module; as forward
    "backward",  # a: nodes of the graph past the model's output (0 unknown), b: debug flags
    "optimizer",  # optimizer.step; a: optimizer
    "zero_grad",
    "copy",  # host to device; a: bytes, b: COPY_PINNED | COPY_NON_BLOCKING
    "sync",  # a value read back or a synchronisation; a: name of the call
    "checkpoint",  # a: bytes written (0 unknown), b: name of the call
    "fsync",
    "log",  # logging
    "print",
    "tracker",  # a: name of the library
    "progress",  # a: name of the library
    "gc",  # one collection; a: generation, b: objects freed
    "gc_collect",  # gc.collect() called by the program
    "empty_cache",
    "communication",  # a: name of the call
    "metrics",  # outermost call of a metric module; a: class name
    "phase",  # with whyidle.phase(name); a: name
)
KIND = {name: number for number, name in enumerate(SPAN_KINDS)}

FORWARD_TRAINING = 1
FORWARD_GRAD = 2

COPY_PINNED = 1
COPY_NON_BLOCKING = 2

FLAG_ANOMALY = 1
FLAG_DETERMINISTIC = 2
FLAG_TRACER = 4
FLAG_BLOCKING_LAUNCHES = 8

# JSON frames carry {"type": …}:
#   name       id, text                      an interned string
#   stack      id, frames [[file, line, function], …] innermost user frame first, leaf [package, function]
#   loader     id, settings                  a DataLoader when first iterated
#   iterator   id, loader, seed, t_ns        one iteration over a loader; seed joins it to its workers
#   worker     seed, worker, num_workers, start_method, t_ns, pickled_bytes, cpus
#   optimizer  id, class
#   flags      debug switches seen
#   reopened   path, opens, fetches          a file opened again and again while samples were made
#   problem    id, detail
#   end        t_ns, lost_rows               the process ended in order


def frame_head(frame_type: int, table: int, payload: bytes) -> bytes:
    fields = struct.pack("<2sBBI", FRAME_MARK, frame_type, table, len(payload))
    return fields + struct.pack("<I", zlib.crc32(payload, zlib.crc32(fields)))
