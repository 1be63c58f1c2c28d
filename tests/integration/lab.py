"""Runs small jobs twice, bare and under whyidle, so that tests can compare them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whyidle.record.reader import RunRecord, read_run

JOBS = Path(__file__).parent / "jobs"
TIMEOUT_S = 60


@dataclass(frozen=True)
class Ended:
    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Observed(Ended):
    folder: Path

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return report

    @property
    def record(self) -> RunRecord:
        return read_run(self.folder / "run")

    @property
    def problems(self) -> list[str]:
        return [problem["id"] for problem in self.report["problems"]]

    @property
    def steps(self) -> int:
        """All of them; on a busy machine the report may tell a slow first one apart as warm-up."""
        return self.report["ranks"][0]["steps"] if self.report["ranks"] else 0


class Lab:
    """One folder in which jobs run; every job sees the same environment but for whyidle's part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = 0

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def bare(self, *command: Any, **environ: str) -> Ended:
        ended = self._run([str(word) for word in command], environ)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def command(self, *command: Any, options: tuple[str, ...] = ("--quiet",)) -> tuple[Path, list[str]]:
        """The observed command line and the folder that its record and report go to."""
        self._runs += 1
        out = self.folder / f"observed-{self._runs}"
        out.mkdir()
        whyidle = [sys.executable, "-m", "whyidle", "run", *options, "--json", out / "report.json"]
        return out, [str(word) for word in [*whyidle, "--out", out / "run", "--", *command]]

    def observed(self, *command: Any, options: tuple[str, ...] = ("--quiet",), **environ: str) -> Observed:
        out, words = self.command(*command, options=options)
        ended = self._run(words, environ)
        return Observed(ended.returncode, ended.stdout, ended.stderr, out)

    def both(self, *command: Any, **environ: str) -> tuple[Ended, Observed]:
        return self.bare(*command, **environ), self.observed(*command, **environ)

    def _run(self, command: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", **environ},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
