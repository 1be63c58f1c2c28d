from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import types
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import whyidle
from whyidle.cli import main as cli
from whyidle.cli import output
from whyidle.errors import MissingHere, UsageError

Behaviour = Callable[[argparse.Namespace], int]


@pytest.fixture
def job_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Behaviour], None]:
    """Installs a command `job` that takes a job as `run` does and behaves as told."""

    def install(behaviour: Behaviour) -> None:
        def configure(parser: argparse.ArgumentParser) -> None:
            parser.add_argument("--out")
            parser.add_argument("job", nargs=argparse.REMAINDER)

        module = types.ModuleType("whyidle.cli.commands.job")
        module.__dict__.update(configure=configure, main=behaviour)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(cli.COMMANDS, "job", (module.__name__, "a job"))

    return install


def raising(error: BaseException) -> Behaviour:
    def behave(_: argparse.Namespace) -> int:
        raise error

    return behave


def test_alone_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    alone = capsys.readouterr().out
    assert cli.main(["--help"]) == 0
    assert capsys.readouterr().out == alone
    for name, (_, summary) in cli.COMMANDS.items():
        assert f"{name} " in alone
        assert summary in alone
    assert max(map(len, alone.splitlines())) <= 80


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"whyidle {whyidle.__version__}\n"


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from whyidle.cli.main import main; main(['--help'])\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stderr.split()
    ours = [name for name in imported if name.split(".")[0] == "whyidle"]
    foreign = [name for name in imported if name.split(".")[0] not in {"whyidle", *sys.stdlib_module_names}]
    assert foreign == []
    assert ours == ["whyidle", "whyidle.cli", "whyidle.cli.main", "whyidle.cli.output", "whyidle.errors"]
    assert not {"argparse", "json", "importlib.resources", "asyncio", "subprocess"} & set(imported)


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_each_command_has_help_and_its_summary_in_the_table(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module, summary = cli.COMMANDS[name]
    assert summary == import_module(module).SUMMARY
    assert cli.main([name, "--help"]) == 0
    assert f"usage: whyidle {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], ["'rnu'", "'run'"]),
        (["frobnicate"], ["'frobnicate'", "whyidle --help"]),
        (["train.py"], ["whyidle run -- python train.py"]),
        (["--nope"], ["--nope", "whyidle --help"]),
        (["explain", "--nope"], ["--nope", "whyidle explain --help"]),
        (["explain", "a", "b"], ["b", "whyidle explain --help"]),
        (["explain", "--lang", "fr"], ["fr"]),
    ],
)
def test_a_wrong_command_line_is_two_lines_and_exit_2(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) <= 3
    for word in words:
        assert word in captured.err


@pytest.mark.parametrize(
    ("arguments", "job"),
    [
        (["--", "python", "train.py", "--out", "x"], ["python", "train.py", "--out", "x"]),
        (["--out", "here", "--", "python", "-m", "pkg", "--help"], ["python", "-m", "pkg", "--help"]),
        (["python", "train.py", "--help", "--", "-x"], ["python", "train.py", "--help", "--", "-x"]),
        (["--out", "here", "python", "train.py", "--o", "--lr=1"], ["python", "train.py", "--o", "--lr=1"]),
        (["--", "env", "--", "x"], ["env", "--", "x"]),
    ],
)
def test_the_job_is_left_untouched(
    arguments: list[str], job: list[str], job_command: Callable[[Behaviour], None]
) -> None:
    seen: list[list[str]] = []

    def behave(parsed: argparse.Namespace) -> int:
        seen.append(parsed.job)
        return 7

    job_command(behave)
    assert cli.main(["job", *arguments]) == 7
    assert seen == [job]


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (UsageError("no such run", "whyidle run -- python train.py"), 2, "no such run"),
        (MissingHere("no driver\nat all", "a\nb\nc\nd"), 5, "no driver"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_what_can_be_expected_ends_quietly(
    error: BaseException,
    code: int,
    shown: str,
    job_command: Callable[[Behaviour], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(output, "hush", lambda stream: None)
    job_command(raising(error))
    assert cli.main(["job"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert shown in captured.err
    assert len(captured.err.splitlines()) <= 3
    assert "Traceback" not in captured.err


def test_a_defect_is_one_line_and_a_log(
    job_command: Callable[[Behaviour], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    job_command(raising(KeyError("lost\nkey")))
    assert cli.main(["job", "--", "训练\udcff"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    (log,) = tmp_path.iterdir()
    assert str(log) in line
    text = log.read_text(encoding="utf-8")
    for part in (whyidle.__version__, sys.version.split()[0], "Traceback", "KeyError"):
        assert part in text


def test_a_defect_is_told_even_where_no_log_can_be_written(
    job_command: Callable[[Behaviour], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    job_command(raising(RuntimeError("boom")))
    assert cli.main(["job"]) == 70
    assert "RuntimeError: boom" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "whyidle", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_falls_back_to_what_the_encoding_can_say() -> None:
    assert output.printable("█░ 3 → 4 µs · data…", "ascii") == "#- 3 > 4 us . data~"
    assert output.printable("数据", "ascii") == "??"
    assert output.printable("数据 █", "utf-8") == "数据 █"
    assert output.printable("█ \udcff", "utf-8") == "█ ?"
    assert output.printable("→", "no-such-encoding") == ">"


class Terminal(io.StringIO):
    encoding = "ascii"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def test_colour_needs_a_terminal_and_consent() -> None:
    assert output.wants_colour(Terminal(), {"TERM": "xterm"})
    assert not output.wants_colour(Terminal(), {"NO_COLOR": "1"})
    assert not output.wants_colour(Terminal(), {"TERM": "dumb"})
    assert not output.wants_colour(io.StringIO(), {})


def test_chinese_by_locale_needs_an_encoding_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert output.words_for(None, Terminal()).language == "en"
    assert output.words_for("zh", Terminal()).language == "zh"
    assert output.words_for(None, sys.__stdout__ or sys.stdout).language in ("en", "zh")


def test_width_is_80_when_piped_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output.width_of(io.StringIO()) == 80
    monkeypatch.setenv("COLUMNS", "132")
    assert output.width_of(io.StringIO()) == 132
