"""What a sampled stack says: whose line it is, and which kind of work."""

from __future__ import annotations

import sysconfig

import pytest
from factory import THREAD, Tape, sample_at

from whyidle.analysis.lines import Lines
from whyidle.analysis.stacks import (
    LIBRARY_PHASES,
    Frame,
    Sample,
    SourceLine,
    Stack,
    classifier,
    hottest,
    is_waiting,
    samples_of,
    sources_of,
)
from whyidle.analysis.step_phases import PHASES
from whyidle.probes.stacks import is_user_file, package_of
from whyidle.record import schema

STDLIB, SITE = sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]

FUNCTIONS = {
    "checkpoint": "save_checkpoint save_model _save save write_ckpt autosave snapshot_weights saveCheckpoint",
    "loss": "compute_loss loss_fn losses focalLoss mseloss hinge_loss criterion assign_targets match_anchors",
    "metrics": "compute_metrics computeMetrics accuracy top5_accuracy f1_score best_f1 mean_iou auc_score "
    "roc_auc roc_curve confusion_matrix recall_at_5 precision_at_k evaluate_model bleu_score perplexity",
    "logging": "log_step log_to_file write_log logger_write report print_summary pprint_stats dump_state log",
    "progress": "progress_bar render_bar draw_bar update_pbar",
    "data": "get_batch next_batch draw_batch batch_iter load_image read_image decode_jpeg augment preprocess "
    "preproc_image fetch_rows random_crop_transform collate_fn sample_indices resample_audio",
}
LOOK_ALIKES = """
    train fit main step closure train_batch run_batch train_step train_one_epoch train_transformer
    train_and_evaluate train_and_report fit_and_save transformer_step
    dialog_batch blog catalog accumulate access lossless closs impression savings saved gloss blossom
    geometric_mean symmetric_kl parametric_relu postproc_outputs mixed_precision_step set_precision
    acc_steps acc_grads log_prob log_softmax log_mel_spectrogram log_likelihood logsumexp fingerprint
    blueprint footprint color_histogram multi_object_tracker progressive_growing saved_tensors_hook
    gradient_checkpointing activation_checkpoint upload download offload workload overload readout ready
    thread decoder_step upsample downsample batch_norm minibatch_std example reevaluate_closure
"""

LINES = {
    "torch.save(state, path)": "checkpoint",
    "wandb.log({'step': step})": "logging",
    "logger.info('epoch done')": "logging",
    "log(f'epoch {epoch}')": "logging",
    "print(step)": "logging",
    "writer.add_histogram(name, p)": "logging",
    "pbar.update(1)": "progress",
    "bar.set_postfix(step=step)": "progress",
    "acc += (pred == y).sum().item()": "metrics",
    "metric.update(out, y)": "metrics",
    # Nothing to go by, or a look-alike.
    "logp = dist.log_prob(action)": None,
    "x = x.log()": None,
    "entropy = -(p * torch.log(p)).sum()": None,
    "y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)": None,
    "if step % acc_steps == 0:": None,
    "ema.update(model)": None,
    "scheduler.step()": None,
    "memory.append(state)": None,
    # Data and losses are named by calls and functions, not by a word in a line.
    "x, y = next(batches)": None,
    "history.append(float(loss))": None,
}


def phase_of(*functions: str, libraries: tuple[str, ...] = (), text: str | None = None) -> str | None:
    sample = sample_at(0, *functions, libraries=libraries)
    frames = sample.stack.frames
    sources = {(frames[0].file, frames[0].line): SourceLine(text, functions[0], None)} if text else {}
    return classifier(sources)(sample, False)


@pytest.mark.parametrize(
    ("phase", "function"),
    [(phase, function) for phase, functions in FUNCTIONS.items() for function in functions.split()],
)
def test_a_function_is_named_for_its_work(phase: str, function: str) -> None:
    assert phase_of(function, "train", "<module>") == phase


@pytest.mark.parametrize("function", LOOK_ALIKES.split())
def test_a_name_that_only_looks_like_it_says_nothing(function: str) -> None:
    assert phase_of(function, "<module>") is None


@pytest.mark.parametrize(("text", "phase"), LINES.items())
def test_a_line_in_the_loop_says_what_it_does(text: str, phase: str | None) -> None:
    assert phase_of("train", "<module>", text=text) == phase


@pytest.mark.parametrize("library", LIBRARY_PHASES)
def test_a_library_says_what_it_is_for(library: str) -> None:
    phase = phase_of("train", "<module>", libraries=(library, "numpy"))
    assert phase == LIBRARY_PHASES[library]
    assert phase in PHASES


@pytest.mark.parametrize("library", ["queue", "threading", "concurrent", "multiprocessing"])
def test_a_loop_that_waits_for_another_thread_waits_for_data(library: str) -> None:
    assert phase_of("train", "<module>", libraries=("threading", library)) == "data"
    assert is_waiting(Stack((), (library,), ""))


def test_numbers_after_the_forward_pass_are_metrics() -> None:
    sample = sample_at(0, "train", "<module>", libraries=("numpy",))
    classify = classifier({})
    assert classify(sample, True) == "metrics"
    assert classify(sample, False) is None


def test_the_script_and_its_outermost_function_name_nothing() -> None:
    assert phase_of("save_everything") is None
    assert phase_of("step", "load_and_train") is None


def test_a_stack_without_a_user_frame_says_nothing() -> None:
    assert classifier({})(Sample(0, THREAD, Stack((), ("torch",), "run"), 0), False) is None


@pytest.mark.parametrize(
    ("path", "is_user", "package"),
    [
        ("/home/me/train.py", True, ""),
        ("/home/me/logging/train.py", True, ""),
        ("/home/me/site-packages-of-mine/train.py", True, ""),
        (f"{STDLIB}/logging/__init__.py", False, "logging"),
        (f"{STDLIB}/queue.py", False, "queue"),
        (f"{SITE}/torch/nn/modules/module.py", False, "torch"),
        (f"{SITE}/six.py", False, "six"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False, "numpy"),
        ("/opt/venv/lib/python3.12/site-packages/PIL/Image.py", False, "PIL"),
        ("<string>", False, ""),
        ("<stdin>", False, ""),
    ],
)
def test_whose_file_it_is(path: str, is_user: bool, package: str) -> None:
    assert is_user_file(path) is is_user
    assert package_of(path) == package


# -- lines ----------------------------------------------------------------------------------------


def at(line: int, *, file: str = "/home/me/data.py", function: str = "load") -> Sample:
    frames = (Frame(file, line, function), Frame("/home/me/train.py", 5, "<module>"))
    return Sample(0, THREAD, Stack(frames, ("PIL",), ""), 0)


def test_the_hottest_line_and_its_share() -> None:
    found = hottest([at(41)] * 6 + [at(50)] * 3 + [Sample(0, THREAD, Stack((), (), ""), 0)])
    assert found is not None
    assert (found[0].place, found[1]) == ("data.py:41", 0.6)
    assert hottest([]) is None


def test_of_two_lines_hit_as_often_the_earlier_stands() -> None:
    found = hottest([at(50), at(41), at(50), at(41)])
    assert found is not None
    assert found[0].line == 41


def test_a_line_comes_with_its_function_loop_and_libraries() -> None:
    sources = {("/home/me/data.py", 41): SourceLine("img = Image.open(p)", "load", 39)}
    line = Lines(sources).of([at(41)] * 6 + [at(50)] * 4)
    assert line is not None
    assert line.place == "data.py:41"
    assert line.text == "img = Image.open(p)"
    assert line.function_share_ratio == 1.0
    assert line.loop_line == "data.py:39"
    assert line.loop_share_ratio == 0.6
    assert line.libraries == {"PIL": 1.0}
    assert Lines({}).of([]) is None


def test_samples_are_read_from_a_record() -> None:
    tape = Tape()
    tape.sample(Frame("a.py", 1, "f"), libraries=("numpy",))
    tape.sample(Frame("a.py", 1, "f"), libraries=("numpy",))
    tape.tables[schema.STACK].append((5, THREAD, -1, 0))  # past the limit of stacks
    samples = samples_of(tape.record())
    assert [sample.stack.libraries for sample in samples] == [("numpy",), ("numpy",), ()]


def test_sources_are_read_from_the_run() -> None:
    entry = {"file": "a.py", "line": 3, "text": "x = 1", "function": "", "inner_loop_line": 2}
    assert sources_of({"sources": [entry]}) == {("a.py", 3): SourceLine("x = 1", "", 2)}
    assert sources_of({}) == {}
