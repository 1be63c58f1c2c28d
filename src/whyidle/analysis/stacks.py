"""What a sampled stack says: whose line it is, and which kind of work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from whyidle.record import schema
from whyidle.record.reader import ProcessRecord

LIBRARY_PHASES: Mapping[str, str] = {
    "logging": "logging",
    "loguru": "logging",
    "structlog": "logging",
    "warnings": "logging",
    "tensorboard": "logging",
    "tensorboardX": "logging",
    "wandb": "logging",
    "mlflow": "logging",
    "comet_ml": "logging",
    "neptune": "logging",
    "clearml": "logging",
    "aim": "logging",
    "swanlab": "logging",
    "matplotlib": "logging",
    "tqdm": "progress",
    "rich": "progress",
    "alive_progress": "progress",
    "progressbar": "progress",
    "sklearn": "metrics",
    "torchmetrics": "metrics",
    "torcheval": "metrics",
    "evaluate": "metrics",
    "sacrebleu": "metrics",
    "rouge_score": "metrics",
    "nltk": "metrics",
    "pycocotools": "metrics",
    "safetensors": "checkpoint",
}
NUMERIC_LIBRARIES = frozenset(("numpy", "scipy", "pandas"))


def _words(stems: str, anywhere: str = r"(?!)") -> re.Pattern[str]:
    """Finds stems where a word of snake_case or camelCase begins, and a pattern anywhere.

    Mid-word they mean something else: geo-metric, finger-print, down-sample.
    """
    small = "|".join(stems.split())
    capitals = "|".join(stem[0].upper() + stem[1:] for stem in stems.split() if stem[0].isalpha())
    # What trains and also evaluates, logs or saves is named for its loop.
    return re.compile(rf"(?<![A-Za-z])(?<!(?i:and_))(?i:{small})|(?<=[a-z])(?:{capitals})|(?i:{anywhere})")


END = r"(?![A-Za-z])"
# Words in the names of the user's own functions, and in the line itself.
WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "checkpoint",  # but not recomputing activations
        _words(
            r"checkpoint(?<!gradient_checkpoint)(?<!activation_checkpoint)(?!ed|ing|_seq|.*use_reentrant) "
            rf"ckpt save{END} autosave snapshot fsync"
        ),
    ),
    (
        "loss",
        _words(
            r"loss(?!less|y|ary) (?:mse|ce|bce|kl|l1|nll|dice|focal|huber|triplet|hinge|gan|adv|reg)loss "
            r"criterion assign_?targets? match_?anchors"
        ),
    ),
    (
        "metrics",
        _words(
            rf"metric accurac acc{END}(?!_(?:steps?|grad|iter|batch)) f1{END} auroc auc{END} roc{END} "
            r"confusion (?<!mixed_)(?<!full_)(?<!half_)(?<!set_)(?<!matmul_)precision recall(?!ed) "
            rf"ious?{END} bleu rouge perplexity evaluat ranking calibration pearson spearman "
            rf"mae{END} rmse{END}"
        ),
    ),
    (
        "logging",  # but not logarithms
        _words(
            r"log_(?!prob|soft|sigm|likel|mel|spec|norm|sum|std|var|alpha|odds|scale|det|abs|density|weight|"
            rf"kernel|magn|marg|post|prior|mix|[a-z]{END}) logger print(?!ed|able) pprint report dump_",
            r"_log(?![a-z_])|^log$|(?<![\w.])log\(\s*f?[\"']|(?:add|write|log)_histogram|tracker\.(?:log|add)|"
            r"\b(?:wandb|self|run|logger|trainer|writer|experiment|mlflow|fabric|accelerator)\.log\b",
        ),
    ),
    ("progress", _words(rf"progress(?!i) pbar (?:render|draw|show|update)_?bars?{END} bar{END}(?=\.|$)")),
    (
        "data",
        _words(
            rf"load prefetch fetch read(?:er)?{END} augment decod(?!er) preproc transform(?!er) collat "
            r"sampl resampl",
            r"(?:get|make|next|build|prepare|form|draw|stack|pad|assemble|iter)_(?:\w+_)?batch|"
            r"batch_?(?:es|iter|gen|of|from)",
        ),
    ),
)
WAITING_LIBRARIES = frozenset(("queue", "threading", "concurrent", "multiprocessing", "selectors", "asyncio"))


@dataclass(frozen=True, slots=True)
class Frame:
    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """`file.py:41`, as people write it."""
        return f"{PurePath(self.file).name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Stack:
    """`frames`: the user's own, innermost first; `libraries`: packages called from the innermost one."""

    frames: tuple[Frame, ...]
    libraries: tuple[str, ...]
    leaf: str


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's source as it was when the job ran; `inner_loop_line` is the head of the
    innermost loop around it that does not itself contain the training step, None outside of any."""

    text: str
    function: str
    inner_loop_line: int | None
    is_loader_line: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    t_ns: int
    thread: int
    stack: Stack
    instruction: int


Sources = Mapping[tuple[str, int], SourceLine]
# What a line of code may be taken to do by its words alone; "loss" and "batch" are in most lines.
TEXT_PHASES = frozenset(("checkpoint", "metrics", "logging", "progress"))
# Arrays on the host, in a line that runs once the step has a result.
HOST_ARRAYS = re.compile(r"\bnp\.|\bnumpy\b|\.cpu\(\)|\bscipy\.")
NO_STACK = Stack((), (), "")


def samples_of(process: ProcessRecord) -> list[Sample]:
    stacks = {
        note["id"]: Stack(
            tuple(Frame(*frame) for frame in note["frames"]), tuple(note["libraries"]), note["leaf"]
        )
        for note in process.notes_of("stack")
    }
    return [
        Sample(t_ns, thread, stacks.get(stack, NO_STACK), instruction)
        for t_ns, thread, stack, instruction in process.rows(schema.STACK)
    ]


def sources_of(run: Mapping[str, Any]) -> dict[tuple[str, int], SourceLine]:
    """The source lines that the launcher kept in `run.json` beside the record."""
    found = {}
    for entry in run.get("sources", []):
        found[entry["file"], entry["line"]] = SourceLine(
            entry["text"], entry["function"], entry.get("inner_loop_line"), entry.get("is_loader_line", False)
        )
    return found


def classifier(sources: Sources) -> Callable[[Sample, bool], str | None]:
    """A function that names the phase a sample's stack speaks for; None for no opinion."""

    def classify(sample: Sample, follows_forward: bool) -> str | None:
        stack = sample.stack
        for library in stack.libraries:
            if library in LIBRARY_PHASES:
                return LIBRARY_PHASES[library]
        if WAITING_LIBRARIES.intersection(stack.libraries):
            return "data"  # the loop waits for another thread or process to hand it something
        # The outermost frames are the script and its loop; they name everything and so nothing.
        for frame in stack.frames[:-1]:
            phase = _phase_of_words(frame.function)
            if phase is not None:
                return phase
        source = sources.get((stack.frames[0].file, stack.frames[0].line)) if stack.frames else None
        phase = _phase_of_words(source.text, TEXT_PHASES) if source is not None else None
        if phase is not None:
            return phase
        if follows_forward and NUMERIC_LIBRARIES.intersection(stack.libraries):
            return "metrics"
        if follows_forward and source is not None and HOST_ARRAYS.search(source.text):
            return "metrics"
        return None

    return classify


def _phase_of_words(text: str, phases: frozenset[str] | None = None) -> str | None:
    for phase, words in WORDS:
        if (phases is None or phase in phases) and words.search(text):
            return phase
    return None


def is_waiting(stack: Stack) -> bool:
    """Whether the thread stands in a lock, a queue or a pipe rather than at work."""
    return bool(WAITING_LIBRARIES.intersection(stack.libraries))


def hottest(samples: list[Sample]) -> tuple[Frame, float] | None:
    """The user's line most often at work in the samples, and its share of them; None without one.

    Where the outermost script line alone is seen (all time is inside a library), that line stands.
    """
    frames = Counter(sample.stack.frames[0] for sample in samples if sample.stack.frames)
    if not frames:
        return None
    # Two lines of one function that are hit about as often are one place; the earlier is its start.
    frame, count = max(frames.items(), key=lambda item: (item[1], -item[0].line))
    return frame, count / len(samples)
