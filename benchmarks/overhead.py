"""What whyidle adds to the steps of a job: `python -m benchmarks.overhead [--pairs N] [--json FILE]`.

A small network trains on batches held in memory, once bare, once under whyidle, once bare again, and
so on in turns. The job times its own steps, so start-up is left out. Each run under whyidle is held
against the mean of its two bare neighbours; the two neighbours held against each other show what this
machine's noise alone makes of a ratio.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {1.0: 1.03, 10.0: 1.01}  # step in ms: what the ratio should stay under
BATCH = 32
FEATURES = 64
# On a machine that others use too, the fastest tenth and the CPU time vary least.
MEASURES = {
    "mean_ms": "wall, mean",
    "median_ms": "wall, median",
    "fast_ms": "wall, fastest tenth",
    "cpu_ms": "CPU time",
}
Sample = dict[str, float]


class Round(NamedTuple):
    before: Sample
    watched: Sample
    after: Sample

    def cost(self, measure: str) -> float:
        return self.watched[measure] / ((self.before[measure] + self.after[measure]) / 2)

    def noise(self, measure: str) -> float:
        return self.after[measure] / self.before[measure]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--pairs", type=int, default=7, metavar="N", help="runs under whyidle (default: 7)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, metavar="S", help="length of a run (default: 5)"
    )
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--job", nargs=2, metavar=("WIDTH", "STEPS"), type=int, help=argparse.SUPPRESS)
    parser.add_argument("--calibrate", metavar="MS", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.calibrate:
        return say({"width": width_for(arguments.calibrate)})
    if arguments.job:
        return say(measure_steps(*arguments.job))
    results = [compare(step_ms, arguments.pairs, arguments.seconds) for step_ms in TARGETS]
    print(table(results))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0


def say(value: dict[str, float]) -> int:
    print(json.dumps(value))
    return 0


def compare(step_ms: float, pairs: int, seconds: float) -> dict[str, Any]:
    width = int(run_job("--calibrate", str(step_ms))["width"])
    job = ("--job", str(width), str(max(200, round(seconds * 1000 / step_ms))))
    rounds = []
    before = run_job(*job)
    for _ in range(pairs):
        watched, after = run_job(*job, is_watched=True), run_job(*job)
        rounds.append(Round(before, watched, after))
        before = after
    return {
        "step_ms": step_ms,
        "target_ratio": TARGETS[step_ms],
        "bare_median_ms": median(each.before["median_ms"] for each in rounds),
        "cost": {measure: [each.cost(measure) for each in rounds] for measure in MEASURES},
        "noise": {measure: [each.noise(measure) for each in rounds] for measure in MEASURES},
    }


def run_job(*words: str, is_watched: bool = False) -> Sample:
    command = [sys.executable, "-m", "benchmarks.overhead", *words]
    with tempfile.TemporaryDirectory() as folder:
        if is_watched:
            command = [
                sys.executable,
                "-m",
                "whyidle",
                "run",
                "--quiet",
                "--out",
                f"{folder}/run",
                "--",
                *command,
            ]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    sample: Sample = json.loads(done.stdout.splitlines()[-1])
    return sample


def table(results: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'step':>6}  {'what':16}{'measure':20}{'median':>6}  {'range':15}target"]
    for result in results:
        for kind, title in (("cost", "whyidle / bare"), ("noise", "bare / bare")):
            for measure, name in MEASURES.items():
                ratios = result[kind][measure]
                spread = f"{min(ratios):.3f}–{max(ratios):.3f}"
                target = f"≤ {result['target_ratio']}" if kind == "cost" else ""
                step = f"{result['bare_median_ms']:>3.2g} ms"
                lines.append(f"{step}  {title:16}{name:20}{median(ratios):>6.3f}  {spread:15}{target}")
    return "\n".join(lines)


# What follows runs in the job.


def width_for(step_ms: float) -> int:
    """The width of the hidden layers that makes a step last about `step_ms`."""
    width = 8.0
    while width < 8192 and measure_steps(round(width), 40)["median_ms"] < step_ms:
        width *= 1.25
    return round(width)


def measure_steps(width: int, steps: int) -> Sample:
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

    def train(count: int) -> list[float]:
        ends: list[float] = []
        while True:
            for inputs, labels in loader:
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                ends.append(time.perf_counter())
                if len(ends) > count:
                    return ends

    train(max(10, steps // 10))  # warm-up
    cpu_s = time.process_time()
    ends = train(steps)
    cpu_s = time.process_time() - cpu_s
    times_ms = sorted((end - begin) * 1000 for begin, end in pairwise(ends))
    return {
        "mean_ms": sum(times_ms) / len(times_ms),
        "median_ms": median(times_ms),
        "fast_ms": times_ms[len(times_ms) // 10],
        "cpu_ms": cpu_s * 1000 / len(times_ms),
    }


if __name__ == "__main__":
    sys.exit(main())
