"""`whyidle report RUN`: the report of a recorded run, in a terminal or as JSON."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

SUMMARY = "show the report of a recorded run again"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", nargs="?", help="a run's folder; by default the newest")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON; - for standard output")
    parser.add_argument("--lang", choices=("en", "zh"), help="language; by default the locale's")
    parser.add_argument(
        "--fail-on", metavar="SHARE", type=float, help="exit with 3 when the idle share is above"
    )


def main(arguments: argparse.Namespace) -> int:
    from whyidle.cli.output import show_report
    from whyidle.errors import EXIT_FINDINGS

    folder = Path(arguments.folder) if arguments.folder else newest_run()
    report = report_on(folder)
    if arguments.json:
        from whyidle.reports.json_report import write

        write(report, arguments.json)
    if arguments.json != "-":
        show_report(report, arguments.lang)
    return EXIT_FINDINGS if is_above(report, arguments.fail_on) else 0


def report_on(folder: Path) -> dict[str, Any]:
    """Read, measure, diagnose.

    Raises:
        UnreadableInput: the folder holds no run.
    """
    from whyidle.analysis.read_facts import run_facts
    from whyidle.causes.diagnose import Diagnosis, diagnose
    from whyidle.record.reader import read_run
    from whyidle.reports.model import build

    run = read_run(folder)
    measured = run_facts(run)
    diagnosis = diagnose(measured.facts) if measured.facts is not None else Diagnosis()
    return build(run, measured, diagnosis)


def is_above(report: dict[str, Any], limit: float | None) -> bool:
    idle_ratio = report["idle_ratio"]
    return limit is not None and idle_ratio is not None and idle_ratio > limit


def newest_run() -> Path:
    from whyidle.errors import UsageError

    runs = [path.parent for path in Path("whyidle-runs").glob("*/run.json")]
    if not runs:
        raise UsageError("no run given, and none in whyidle-runs/", "whyidle run -- python train.py")
    return max(runs, key=lambda path: path.stat().st_mtime_ns)
