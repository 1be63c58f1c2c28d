"""The command line: a table of commands, each imported only when it is called, and one try/except."""

from __future__ import annotations

import sys

from whyidle import __version__
from whyidle.errors import EXIT_DEFECT, Interrupted, UsageError, WhyidleError

TYPE_CHECKING = False  # typing's own costs 5 ms of every start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

# Name → module and summary. The summaries stand here so that `--help` imports no command.
COMMANDS = {
    "run": ("whyidle.cli.commands.run", "run a training job, unchanged, and say why its GPU idles"),
    "report": ("whyidle.cli.commands.report", "show the report of a recorded run again"),
    "explain": ("whyidle.cli.commands.explain", "explain a cause: what it means and what to do"),
    "demo": ("whyidle.cli.commands.demo", "see whyidle find a planted cause in a small job"),
}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except WhyidleError as error:
        return _expected(error)
    except KeyboardInterrupt:
        return Interrupted.exit_code
    except BrokenPipeError:
        from whyidle.cli.output import hush

        hush(sys.stdout)
        return 0
    except Exception as error:
        return report_defect(error, arguments)


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("--help", "-h"):
        return _say(help_text())
    if first in ("--version", "-V"):
        return _say(f"whyidle {__version__}\n")
    if first not in COMMANDS:
        raise _unknown(first)
    return _call(first, arguments[1:])


def help_text() -> str:
    width = max(map(len, COMMANDS))
    return "\n".join(
        [
            "usage: whyidle COMMAND …",
            "",
            "Why is my GPU idle? Observes an unchanged training job, names the cause with its",
            "line of code and its price.",
            "",
            "commands:",
            *(f"  {name:{width}}  {summary}" for name, (_, summary) in COMMANDS.items()),
            "",
            "options:",
            "  -h, --help     show this help; whyidle COMMAND --help shows that of a command",
            "  -V, --version  show the version",
            "",
            "start here:",
            "  whyidle run -- python train.py",
            "",
        ]
    )


def _say(text: str) -> int:
    from whyidle.cli.output import write

    write(text)
    return 0


def _call(name: str, arguments: list[str]) -> int:
    from importlib import import_module

    command = import_module(COMMANDS[name][0])
    parser = make_parser(name)
    command.configure(parser)
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as done:  # argparse leaves this way after --help
        return int(done.code or 0)
    _drop_dashes(parsed)
    return int(command.main(parsed))


def make_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command, whose complaints are errors like all others."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> object:  # type: ignore[override]
            raise UsageError(message, f"{self.prog} --help shows what it takes")

    summary = COMMANDS[name][1]
    return Parser(
        prog=f"whyidle {name}", description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )


def _drop_dashes(parsed: argparse.Namespace) -> None:
    """`run -- python train.py`: some versions of argparse leave the `--` in front of the job."""
    for name, value in vars(parsed).items():
        if isinstance(value, list) and value[:1] == ["--"]:
            setattr(parsed, name, value[1:])


def _unknown(word: str) -> UsageError:
    from difflib import get_close_matches

    if word.startswith("-"):
        return UsageError(f"there is no option {word}", "whyidle --help shows what there is")
    if word.endswith(".py") or word.startswith("python"):
        return UsageError(f"there is no command {word!r}", f"to observe a job: whyidle run -- {_job(word)}")
    near = get_close_matches(word, COMMANDS, n=1)
    return UsageError(
        f"there is no command {word!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        "whyidle --help lists the commands",
    )


def _job(word: str) -> str:
    return f"python {word}" if word.endswith(".py") else f"{word} …"


def _expected(error: WhyidleError) -> int:
    from whyidle.cli.output import show_error

    show_error(error)
    return error.exit_code


def report_defect(error: Exception, arguments: list[str]) -> int:
    """Our own fault: one line for the user, the rest in a file that can go into an issue."""
    from whyidle.cli.output import write

    kind = type(error).__name__
    try:
        place = f"details for an issue: {_write_log(error, arguments)}"
    except OSError as failure:
        place = f"no log could be written: {failure.strerror}"
    reason = " ".join(str(error).split())[:200]
    write(f"whyidle: a defect in whyidle itself ({kind}: {reason}); {place}\n", sys.stderr)
    return EXIT_DEFECT


def _write_log(error: Exception, arguments: list[str]) -> str:
    import platform
    import tempfile
    import traceback

    lines = [
        f"whyidle {__version__}",
        f"Python {sys.version.split()[0]} on {platform.platform()}",
        *(f"{package} {_version(package)}" for package in ("torch", "numpy", "nvidia-ml-py")),
        f"arguments: {arguments}",
        "",
        "".join(traceback.format_exception(type(error), error, error.__traceback__)),
    ]
    with tempfile.NamedTemporaryFile(
        "w", prefix="whyidle-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as log:
        log.write("\n".join(lines))
    return log.name


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
