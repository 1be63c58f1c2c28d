"""`whyidle run -- CMD…`: starts an unchanged job, observes it, reports, and ends as the job ended."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whyidle.cli.run_folder import RunFolder
    from whyidle.probes.launcher import Outcome

SUMMARY = "run a training job, unchanged, and say why its GPU idles"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument(
        "--out", metavar="FOLDER", help="where the record goes; by default whyidle-runs/<time>-<name>"
    )
    parser.add_argument(
        "--lang", choices=("en", "zh"), help="language of the report; by default the locale's"
    )
    parser.add_argument("--quiet", action="store_true", help="no report on the terminal")
    parser.add_argument(
        "--fail-on", metavar="SHARE", type=float, help="exit with 3 when the idle share is above"
    )
    parser.add_argument(
        "command", metavar="-- CMD …", nargs=argparse.REMAINDER, help="the job, as you always start it"
    )


def main(arguments: argparse.Namespace) -> int:
    from whyidle.errors import UsageError
    from whyidle.probes import launcher

    if not arguments.command:
        raise UsageError("there is no job to run", "whyidle run -- python train.py")
    from whyidle.cli.run_folder import RunFolder

    folder = RunFolder.make(arguments.out, arguments.command)
    with folder:
        outcome = launcher.launch(arguments.command, folder.environ(), on_tick=folder.tick)
    report = _report(folder, outcome, arguments)
    if _is_above(report, arguments.fail_on):
        from whyidle.errors import EXIT_FINDINGS

        return EXIT_FINDINGS
    launcher.exit_as(outcome)


def _report(folder: RunFolder, outcome: Outcome, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Whatever goes wrong here costs the report, never the job's own exit status."""
    if folder.path is None:
        return None
    from pathlib import Path

    from whyidle.cli.commands.report import report_on
    from whyidle.cli.output import show_error, show_report
    from whyidle.errors import WhyidleError

    try:
        folder.finish(outcome)
        report = report_on(Path(folder.path))
        if not arguments.quiet:
            show_report(report, arguments.lang, sys.stderr)
        if arguments.json:
            from whyidle.reports.json_report import write

            write(report, arguments.json)
        return report
    except WhyidleError as error:
        show_error(error)
    except Exception as error:
        from whyidle.cli.main import report_defect

        report_defect(error, ["run", *arguments.command])
    return None


def _is_above(report: dict[str, Any] | None, limit: float | None) -> bool:
    if report is None:
        return False
    from whyidle.cli.commands.report import is_above

    return is_above(report, limit)
