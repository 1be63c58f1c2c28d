"""What whyidle costs before it does anything: `python -m benchmarks.startup [--rounds N] [--json FILE]`.

The bare interpreter and each command start in turns. The figures are medians, and what they lie above
the bare interpreter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "import whyidle": ("-c", "import whyidle"),
    "whyidle --help": ("-m", "whyidle", "--help"),
    "whyidle run --help": ("-m", "whyidle", "run", "--help"),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25, metavar="N", help="starts of each (default: 25)")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON")
    arguments = parser.parse_args(words)
    times_ms = measure(arguments.rounds)
    print(table(times_ms))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(times_ms, indent=2) + "\n")
    return 0


def measure(rounds: int) -> dict[str, list[float]]:
    times_ms: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):
        for name, words in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
            times_ms[name].append((time.perf_counter() - begin) * 1000)
    return {name: times[1:] for name, times in times_ms.items()}  # the first round fills caches


def table(times_ms: dict[str, list[float]]) -> str:
    bare = times_ms["python -c pass"]
    lines = [f"{'':20}{'median':>12}{'over bare':>12}{'fastest':>12}{'over bare':>12}"]
    for name, times in times_ms.items():
        middle, least = median(times), min(times)
        figures = (middle, middle - median(bare), least, least - min(bare))
        lines.append(f"{name:20}" + "".join(f"{figure:>9.1f} ms" for figure in figures))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
