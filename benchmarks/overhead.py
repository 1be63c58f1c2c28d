"""What whyidle adds to the steps of a job: `python -m benchmarks.overhead [--pairs N] [--json FILE]`.

The same small training job runs three times side by side: twice bare, once under whyidle. They take
turns: one trains for a quarter of a second while the others wait, so that whatever else the machine
does meets all three. Each turn under whyidle is held against the mean of its two bare neighbours. The
neighbours held against each other show what noise alone makes of such a ratio. The jobs time their own
steps, so start-up is left out; they are started anew several times, since no two processes lie alike
in memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from types import TracebackType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {1.0: 1.03, 10.0: 1.01}  # step in ms: what the ratio should stay under
GENERATIONS = 3
TURN_S = 0.25
WARM_UP_S = 0.5
BATCH = 32
FEATURES = 64
# On a machine that others use too, the fastest tenth and the CPU time vary least.
MEASURES = {
    "mean_ms": "wall, mean",
    "median_ms": "wall, median",
    "fast_ms": "wall, fastest tenth",
    "cpu_ms": "CPU time",
}
HEAD = f"{'step':>6}  {'what':16}{'measure':20}{'median':>6}  {'middle half':14}{'range':14}target"
Sample = dict[str, float]


class Round(NamedTuple):
    before: Sample
    watched: Sample
    after: Sample

    def cost(self, measure: str) -> float:
        return self.watched[measure] / ((self.before[measure] + self.after[measure]) / 2)

    def noise(self, measure: str) -> float:
        return self.after[measure] / self.before[measure]


class Job:
    """One training process that trains when told to."""

    def __init__(self, width: int, *, is_watched: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "benchmarks.overhead", "--job", str(width)]
        if is_watched:
            run = ["run", "--quiet", "--out", f"{self._folder.name}/run", "--"]
            command = [sys.executable, "-m", "whyidle", *run, *command]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def train(self, steps: int) -> Sample:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        sample: Sample = json.loads(self._process.stdout.readline())
        return sample


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--pairs", type=int, default=60, metavar="N", help="turns (default: 60)")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--step", type=float, action="append", metavar="MS", help="only steps of this length")
    parser.add_argument("--job", metavar="WIDTH", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--calibrate", metavar="MS", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.job:
        serve(arguments.job)
        return 0
    if arguments.calibrate:
        print(width_for(arguments.calibrate))
        return 0
    print(HEAD)
    results = []
    for step_ms in arguments.step or TARGETS:
        results.append(compare(step_ms, arguments.pairs))
        print(table(results[-1]), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0


def compare(step_ms: float, pairs: int) -> dict[str, Any]:
    calibrate = [sys.executable, "-m", "benchmarks.overhead", "--calibrate", str(step_ms)]
    width = int(subprocess.run(calibrate, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    rounds = [
        each for _ in range(GENERATIONS) for each in take_turns(width, step_ms, -(-pairs // GENERATIONS))
    ]
    return {
        "step_ms": step_ms,
        "target_ratio": TARGETS.get(step_ms),
        "bare_ms": median(each.before["fast_ms"] for each in rounds),
        "cost": {measure: [each.cost(measure) for each in rounds] for measure in MEASURES},
        "noise": {measure: [each.noise(measure) for each in rounds] for measure in MEASURES},
    }


def take_turns(width: int, step_ms: float, pairs: int) -> Iterator[Round]:
    with ExitStack() as jobs:
        first = jobs.enter_context(Job(width))
        watched = jobs.enter_context(Job(width, is_watched=True))
        second = jobs.enter_context(Job(width))
        for job in (first, watched, second):
            job.train(round(WARM_UP_S * 1000 / step_ms))
        steps = round(TURN_S * 1000 / step_ms)
        for _ in range(pairs):
            yield Round(first.train(steps), watched.train(steps), second.train(steps))


def table(result: dict[str, Any]) -> str:
    lines = []
    step = f"{result['bare_ms']:>3.2g} ms"
    for kind, title in (("cost", "whyidle / bare"), ("noise", "bare / bare")):
        for measure, name in MEASURES.items():
            ratios = result[kind][measure]
            low, _, high = quantiles(ratios, n=4)
            middle, spread = f"{low:.3f}–{high:.3f}", f"{min(ratios):.2f}–{max(ratios):.2f}"
            target = f"≤ {result['target_ratio']}" if kind == "cost" and result["target_ratio"] else ""
            lines.append(f"{step}  {title:16}{name:20}{median(ratios):>6.3f}  {middle:14}{spread:14}{target}")
    return "\n".join(lines)


# What follows runs in the job.


def width_for(step_ms: float) -> int:
    """The width of the hidden layers that makes a step last about `step_ms`."""
    width = 16
    while width < 8192:
        loop = training(width)
        timed(loop, 20)
        if timed(loop, 40)["fast_ms"] >= step_ms:
            break
        width = round(width * 1.25)
    return width


def serve(width: int) -> None:
    """For each line that holds a number: train so many steps and say how long they took."""
    loop = training(width)
    for line in sys.stdin:
        print(json.dumps(timed(loop, int(line))), flush=True)


def timed(loop: Iterator[None], steps: int) -> Sample:
    next(loop)  # after a wait nothing is in the caches
    cpu_s = time.process_time()
    ends = [time.perf_counter()]
    for _ in range(steps):
        next(loop)
        ends.append(time.perf_counter())
    cpu_s = time.process_time() - cpu_s
    times_ms = sorted((end - begin) * 1000 for begin, end in pairwise(ends))
    return {
        "mean_ms": sum(times_ms) / steps,
        "median_ms": median(times_ms),
        "fast_ms": times_ms[steps // 10],
        "cpu_ms": cpu_s * 1000 / steps,
    }


def training(width: int) -> Iterator[None]:
    """An endless training loop that stops after each step."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = BATCH * 100
    data = TensorDataset(torch.randn(rows, FEATURES), torch.randint(0, 10, (rows,)))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    while True:
        for inputs, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


if __name__ == "__main__":
    sys.exit(main())
