"""All scenarios in one table: which script has which planted cause, and where.

A planted scenario takes `--cured`, which applies the known cure and changes nothing else. `also_fine`
lists other causes that may rightly be reported beside the planted one. `line_marker` is a substring that
occurs once in the file, on the line that makes the script slow; None where no single line does. `args` go
on top of the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["planted", "healthy", "decoy"]


@dataclass(frozen=True)
class Scenario:
    name: str
    file: str
    kind: Kind
    cause: str | None
    also_fine: tuple[str, ...]
    group: str
    args: tuple[str, ...] = ()
    line_marker: str | None = None


def _planted(name: str, cause: str, group: str, line_marker: str | None, *also_fine: str) -> Scenario:
    return Scenario(name, f"{name}.py", "planted", cause, also_fine, group, (), line_marker)


def _clean(name: str, kind: Kind, group: str) -> Scenario:
    return Scenario(name, f"{name}.py", kind, None, (), group)


SCENARIOS: tuple[Scenario, ...] = (
    _planted("photo_augment", "loader_without_workers", "loader", "image.rotate(", "sample_cpu_heavy"),
    _planted(
        "remote_audio_clips",
        "too_few_workers",
        "loader",
        "time.sleep(self.latency_s)",
        "sample_waits_for_storage",
    ),
    _planted("short_epochs", "workers_rebuilt_each_epoch", "loader", None, "worker_start_slow"),
    _planted(
        "long_recordings",
        "slow_sample_blocks_batch",
        "loader",
        "time.sleep(self.minutes[i]",
        "prefetch_too_shallow",
        "sample_waits_for_storage",
    ),
    _planted(
        "tabular_fields",
        "samples_cheaper_than_workers",
        "loader",
        None,
        "rows_fetched_one_by_one",
        "collate_slow",
        "too_many_workers",
    ),
    _planted(
        "boxes_from_json", "same_file_reread", "samples", 'json.load(f)["annotations"]', "sample_cpu_heavy"
    ),
    _planted(
        "pandas_rows",
        "rows_fetched_one_by_one",
        "samples",
        "row[self.features].to_numpy",
        "loader_without_workers",
        "sample_cpu_heavy",
    ),
    _planted(
        "frame_stacks",
        "rows_fetched_one_by_one",
        "samples",
        "clip = torch.tensor(frames)",
        "loader_without_workers",
        "sample_cpu_heavy",
    ),
    _planted(
        "sensor_windows",
        "collate_slow",
        "samples",
        "inputs = torch.tensor([window for",
        "rows_fetched_one_by_one",
        "loader_without_workers",
    ),
    _planted("frequent_checkpoints", "checkpoint_blocks", "reporting", "os.fsync(f.fileno())"),
    _planted("verbose_logging", "logging_too_often", "reporting", 'log.debug("step %d %s weight shape'),
    _planted(
        "print_everything",
        "logging_too_often",
        "reporting",
        'print(f"  neuron {neuron',
        "scalar_read_each_step",
    ),
    _planted("six_progress_bars", "progress_bar_slow", "reporting", "bar.set_postfix(loss=losses[task]"),
    _planted("weight_histograms", "tracker_too_often", "reporting", 'writer.add_histogram(f"weights/'),
    _planted("anchor_matching", "loss_in_python", "loop", "overlap = iou(anchor, box)"),
    _planted(
        "margin_loops",
        "loss_in_python",
        "loop",
        "gap = scores[i, c] - correct + margin",
        "python_bound_step",
        "scalar_read_each_step",
    ),
    _planted("running_auc", "metrics_on_host", "loop", "fp = np.sum(predicted & (labels == 0))"),
    _planted("one_by_one_validation", "validation_dominates", "loop", "predicted = (model(image) > 0)"),
    _planted(
        "collect_every_step", "cache_cleared_in_loop", "loop", "gc.collect()", "garbage_collection_pauses"
    ),
    _planted(
        "replay_memory",
        "garbage_collection_pauses",
        "loop",
        None,
        "loader_without_workers",
        "python_bound_step",
    ),
    _planted("anomaly_left_on", "debug_switch_on", "loop", "set_detect_anomaly(", "python_bound_step"),
    _planted("running_mean", "step_time_grows", "loop", "loss.backward(retain_graph=", "python_bound_step"),
    _planted("corpus_scan", "slow_start", "whole_run", "pairs[a + b] += 1"),
    _planted("retrieval_report", "slow_end", "whole_run", "scored.append((sum("),
    _planted("resume_midway", "resume_replays_loader", "whole_run", "if batch_index < start_batch:"),
    _planted(
        "tile_folders",
        "many_small_files",
        "storage",
        "time.sleep(0.0004)",
        "sample_waits_for_storage",
        "too_few_workers",
    ),
    _planted(
        "volume_reads",
        "sample_waits_for_storage",
        "storage",
        "time.sleep(self.seconds_per_chunk)",
        "too_few_workers",
    ),
    _planted(
        "ragged_collate", "collate_slow", "samples", "row.append(int(ids[position]))", "sample_cpu_heavy"
    ),
    _planted("threaded_decoder", "loading_holds_the_gil", "loader", "pixels.append(float(value))"),
    _planted("spawned_catalogue", "worker_start_slow", "loader", None, "slow_start"),
    _planted("spectrograms", "sample_cpu_heavy", "samples", None),
    _planted(
        "multiscale", "prefetch_too_shallow", "loader", None, "sample_waits_for_storage", "too_few_workers"
    ),
    _planted(
        "threaded_whitening",
        "threads_oversubscribed",
        "machine",
        "torch.set_num_threads(8)",
        "sample_cpu_heavy",
    ),
    _clean("in_memory_cnn", "healthy", "loader"),
    _clean("well_fed_images", "healthy", "loader"),
    _clean("accumulate_gradients", "healthy", "reporting"),
    _clean("small_gan", "healthy", "loop"),
    _clean("token_transformer", "healthy", "loop"),
    _clean("lbfgs_fit", "healthy", "loop"),
    _clean("stream_regression", "healthy", "loader"),
    _clean("zero_workers_table", "decoy", "loader"),
    _clean("loss_read_each_step", "decoy", "loop"),
    _clean("saved_each_epoch", "decoy", "reporting"),
    _clean("small_cached_files", "decoy", "storage"),
    _clean("plain_progress_bar", "decoy", "reporting"),
    _clean("short_validation", "decoy", "loop"),
)
