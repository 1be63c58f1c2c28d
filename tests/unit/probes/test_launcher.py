"""The launcher against real processes: a driver script launches a job, and we are its parent."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from whyidle.errors import UsageError
from whyidle.probes.launcher import Outcome, launch

DRIVER = """
import os, sys
from whyidle.probes.launcher import exit_as, launch

def tick(pid):
    with open(os.environ["TICKS"], "a") as ticks:
        ticks.write(f"{pid}\\n")
    if os.environ.get("FAIL"):
        raise RuntimeError("a tick failed")

exit_as(launch(sys.argv[1:], os.environ, on_tick=tick, tick_s=0.05))
"""

# Notes each signal in a file, as raw writes: nothing here may be lost to a buffer.
LISTENER = """
import os, signal, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(number, frame):
    os.write(log, (signal.Signals(number).name + "\\n").encode())
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), note)
os.write(log, b"ready\\n")
end = time.monotonic() + 10
while time.monotonic() < end and not os.path.exists(sys.argv[1] + ".stop"):
    time.sleep(0.02)
"""


class Rig:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "signals"
        self.ticks = folder / "ticks"
        self.driver = folder / "driver.py"
        self.driver.write_text(DRIVER)
        (folder / "listener.py").write_text(LISTENER)
        self.environ = {**os.environ, "TICKS": str(self.ticks)}
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, new_session: bool = True, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, str(self.driver), *command],
            env=self.environ,
            start_new_session=new_session,
            **options,
        )
        self.started.append(process)
        return process

    def run(self, *command: str, **options: Any) -> int:
        return self.start(*command, **options).wait(20)

    def python(self, source: str, **options: Any) -> int:
        return self.run(sys.executable, "-c", textwrap.dedent(source), **options)

    def listen(self, *names: str, **options: Any) -> subprocess.Popen[bytes]:
        listener = str(self.folder / "listener.py")
        process = self.start(sys.executable, listener, str(self.log), *names, **options)
        until(lambda: self.log.exists() and "ready" in self.log.read_text())
        return process

    def heard(self) -> list[str]:
        return self.log.read_text().split()[1:]

    def stop(self, process: subprocess.Popen[bytes]) -> int:
        time.sleep(0.2)  # long enough for a second delivery to show
        Path(f"{self.log}.stop").touch()
        return process.wait(20)


def until(condition: Callable[[], bool], limit_s: float = 10) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    Path(f"{rig.log}.stop").touch()
    for process in rig.started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_exit_code_passes_through(rig: Rig, code: int) -> None:
    assert rig.python(f"raise SystemExit({code})") == code


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGINT", "SIGABRT"])
def test_the_parent_sees_the_signal_that_killed_the_job(rig: Rig, name: str) -> None:
    source = f"""
    import os, signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.{name})
    """
    assert rig.python(source) == -getattr(signal, name)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT"])
def test_signal_to_the_launcher_alone_reaches_the_job_once(rig: Rig, name: str) -> None:
    process = rig.listen(name)
    process.send_signal(getattr(signal, name))
    until(lambda: bool(rig.heard()))
    assert rig.stop(process) == 0
    assert rig.heard() == [name]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1"])
def test_signal_to_the_group_reaches_the_job_once(rig: Rig, name: str) -> None:
    process = rig.listen(name)
    os.killpg(process.pid, getattr(signal, name))
    until(lambda: bool(rig.heard()))
    assert rig.stop(process) == 0
    assert rig.heard() == [name]


def test_each_of_several_signals_arrives(rig: Rig) -> None:
    process = rig.listen("SIGUSR1", "SIGTERM")
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1):
        process.send_signal(number)
        time.sleep(0.1)
        os.killpg(process.pid, number)
        time.sleep(0.1)
    assert rig.stop(process) == 0
    assert rig.heard() == ["SIGUSR1"] * 2 + ["SIGTERM"] * 2 + ["SIGUSR1"] * 2


def test_signal_sent_to_every_process_one_by_one_reaches_the_job_once(rig: Rig) -> None:
    process = rig.listen("SIGTERM")
    members = _members(process.pid)
    assert len(members) == 3  # launcher, witness, job
    for pid in members:
        os.kill(pid, signal.SIGTERM)
    assert rig.stop(process) == 0
    assert rig.heard() == ["SIGTERM"]


def _members(group: int) -> list[int]:
    return [pid for pid in (int(path.name) for path in Path("/proc").glob("[1-9]*")) if _group(pid) == group]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def test_the_witness_looks_like_the_job_and_leaves_with_it(rig: Rig) -> None:
    process = rig.listen("SIGTERM")
    job = [sys.executable, str(rig.folder / "listener.py"), str(rig.log), "SIGTERM"]
    members = _members(process.pid)
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") for pid in members]
    assert lines.count("\0".join(job).encode()) == 2
    assert rig.stop(process) == 0
    assert not _members(process.pid)


def test_unhandled_term_to_the_launcher_kills_the_job_and_then_it(rig: Rig) -> None:
    process = rig.listen()
    process.terminate()
    assert process.wait(20) == -signal.SIGTERM


def test_stops_and_continues_with_the_job(rig: Rig) -> None:
    # A group that is orphaned, as each new session is, cannot be stopped from the keyboard.
    process = rig.listen(new_session=False, preexec_fn=os.setpgrp)
    os.killpg(process.pid, signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert os.WSTOPSIG(status) == signal.SIGTSTP
    os.killpg(process.pid, signal.SIGCONT)
    _, status = os.waitpid(process.pid, os.WCONTINUED)
    assert os.WIFCONTINUED(status)
    assert rig.stop(process) == 0


def test_stop_of_the_launcher_alone_stops_the_job(rig: Rig) -> None:
    process = rig.listen(new_session=False, preexec_fn=os.setpgrp)
    process.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    assert rig.stop(process) == 0


def test_stays_awake_when_the_job_alone_is_stopped_by_hand(rig: Rig) -> None:
    process = rig.listen()
    job_pid = int(rig.ticks.read_text().split()[0])
    os.kill(job_pid, signal.SIGSTOP)
    time.sleep(0.2)
    assert os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED) == (0, 0)
    os.kill(job_pid, signal.SIGCONT)
    assert rig.stop(process) == 0


def test_terminal_and_its_interrupt_belong_to_the_job(rig: Rig) -> None:
    source = """
    import os, sys, time
    assert all(os.isatty(number) for number in range(3)) and os.tcgetpgrp(0) == os.getpgrp()
    try:
        print("ready", flush=True)
        time.sleep(10)
    except KeyboardInterrupt:
        time.sleep(0.3)
        print("one interrupt", flush=True)
    """
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, str(rig.driver), sys.executable, "-c", textwrap.dedent(source)]
        os.execve(sys.executable, command, rig.environ)
    _read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    _read_until(terminal, b"one interrupt")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


def _read_until(terminal: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        seen += os.read(terminal, 1024)


def test_standard_streams_are_the_jobs_own(rig: Rig) -> None:
    source = "import sys; print(sys.stdin.read().upper(), end=''); print('error', file=sys.stderr)"
    pipe = subprocess.PIPE
    process = rig.start(sys.executable, "-c", source, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.communicate(b"input", timeout=20) == (b"INPUT", b"error\n")
    assert process.returncode == 0


def test_inherited_files_stay_open(rig: Rig) -> None:
    read_end, write_end = os.pipe()
    assert rig.python(f"import os; os.write({write_end}, b'here')", pass_fds=(write_end,)) == 0
    os.close(write_end)
    assert os.read(read_end, 10) == b"here"
    os.close(read_end)


def _signal_state(rig: Rig, *, under_the_launcher: bool, before: Callable[[], object]) -> str:
    # Without 32 and 33, which belong to the C library: it sets them in each process that it spawns.
    source = """
for line in open("/proc/self/status"):
    name, _, value = line.partition(":")
    if name in ("SigBlk", "SigIgn", "SigCgt"):
        print(name, hex(int(value, 16) & ~(0b11 << 31)))
"""
    command = [sys.executable, "-c", source]
    prefix = [sys.executable, str(rig.driver)] if under_the_launcher else []
    result = subprocess.run(
        prefix + command, env=rig.environ, preexec_fn=before, capture_output=True, text=True, timeout=20
    )
    return result.stdout


def _as_nohup_does() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})


@pytest.mark.parametrize("before", [lambda: None, _as_nohup_does])
def test_mask_and_dispositions_are_those_without_whyidle(rig: Rig, before: Callable[[], object]) -> None:
    states = [_signal_state(rig, under_the_launcher=is_under, before=before) for is_under in (False, True)]
    assert states[0] == states[1] != ""


def test_exit_code_survives_a_parent_that_ignores_its_children(rig: Rig) -> None:
    def ignore_children() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    assert rig.python("raise SystemExit(7)", preexec_fn=ignore_children) == 7


def test_does_not_wait_for_a_daemon(rig: Rig) -> None:
    source = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        time.sleep(5)
        os._exit(0)
    """
    start_s = time.monotonic()
    assert rig.python(source) == 0
    assert time.monotonic() - start_s < 4


def test_failing_ticks_do_not_hurt_the_job(rig: Rig) -> None:
    rig.environ["FAIL"] = "1"
    assert rig.python("import time; time.sleep(0.4); raise SystemExit(5)") == 5
    pids = rig.ticks.read_text().split()
    assert len(pids) >= 3
    assert len(set(pids)) == 1


def test_a_hanging_tick_holds_up_neither_signals_nor_the_end(rig: Rig) -> None:
    rig.driver.write_text(DRIVER.replace("def tick(pid):", "def tick(pid):\n    import time; time.sleep(30)"))
    process = rig.listen("SIGTERM")
    process.terminate()
    until(lambda: rig.heard() == ["SIGTERM"])
    start_s = time.monotonic()
    assert rig.stop(process) == 0
    assert time.monotonic() - start_s < 5


def test_a_lost_reader_does_not_change_the_exit_code(rig: Rig) -> None:
    rig.driver.write_text("print('unread')\n" + DRIVER)
    rig.environ.pop("PYTHONUNBUFFERED", None)
    read_end, write_end = os.pipe()
    os.close(read_end)
    assert rig.python("raise SystemExit(9)", stdout=write_end) == 9
    os.close(write_end)


def _launch(*command: str, **environ: str) -> Outcome:
    return launch(command, {**os.environ, **environ}, on_tick=lambda pid: None)


def test_outcome_tells_when_and_how_much() -> None:
    before_ns = time.perf_counter_ns()
    source = "import time\nwhile time.process_time() < 0.3: pass\nraise SystemExit(3)"
    outcome = _launch(sys.executable, "-c", source)
    assert before_ns <= outcome.start_ns < outcome.end_ns <= time.perf_counter_ns()
    assert abs(outcome.start_unix_ns - time.time_ns()) < 20_000_000_000
    assert (outcome.exit_code, outcome.signal) == (3, None)
    assert 300_000_000 <= outcome.cpu_ns <= 10_000_000_000
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def test_clock_is_the_jobs_clock() -> None:
    clocks = time.get_clock_info("perf_counter"), time.get_clock_info("monotonic")
    assert clocks[0].implementation == clocks[1].implementation == "clock_gettime(CLOCK_MONOTONIC)"


def test_command_is_found_along_the_jobs_path(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text("#!/bin/sh\nexit 12\n")
    script.chmod(0o755)
    assert _launch("train", PATH=str(tmp_path)).exit_code == 12


def test_script_without_an_interpreter_line_is_run_by_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text('exit "$1"\n')
    script.chmod(0o755)
    assert _launch(str(script), "13").exit_code == 13


def test_what_cannot_be_run_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("pass")
    Path("broken").write_text("#!/no/such/interpreter\n")
    Path("broken").chmod(0o755)
    cases = {"no-such-command": 127, "./none": 127, "train.py": 127, "./train.py": 126}
    for name, exit_code in {**cases, "/": 126, "./broken": 126}.items():
        with pytest.raises(UsageError) as raised:
            _launch(name)
        assert raised.value.exit_code == exit_code, name
        assert name in raised.value.message
        assert raised.value.hint
        assert ("whyidle run python" in raised.value.hint) == name.endswith(".py")


def test_no_command_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        launch([], {}, on_tick=lambda pid: None)
