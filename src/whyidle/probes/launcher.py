"""Runs the user's command as if whyidle were not there, and waits for it.

The job is spawned into the launcher's own process group with its terminal, files, signal mask and
dispositions, so the kernel treats it as it would have without us. The launcher blocks every signal
and takes them one at a time: what was sent to the whole group has reached the job already, what was
sent to the launcher alone is passed on. Only a second member of the group can tell the two apart;
that is the witness.

Call `launch` while the process has a single thread: threads started earlier would not share the mask.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TextIO

from whyidle.errors import UsageError
from whyidle.units import s_to_ns

_POLL_S = 1.0
_GROUP_DELIVERY_S = 0.01  # a sender that walks over processes one by one needs a moment to reach us all
_ANSWER_S = 1.0
_JOIN_S = 1.0
_SI_USER = 0
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127

_STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_OUR_OWN = {  # faults of the launcher itself, and what the kernel does not let anyone block
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
    *(signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU),
}
_TAKEN = signal.valid_signals() - _OUR_OWN


@dataclass(frozen=True)
class Outcome:
    """How the job ended: exactly one of `exit_code` and `signal` is set.

    `start_ns` and `end_ns` are `time.perf_counter_ns`, which on Linux is CLOCK_MONOTONIC, the clock
    of the job's own records. `cpu_ns` counts the job and every descendant that was waited for.
    """

    exit_code: int | None
    signal: int | None
    start_unix_ns: int
    start_ns: int
    end_ns: int
    pid: int
    cpu_ns: int


def launch(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    on_tick: Callable[[int], None],
    tick_s: float = 0.5,
) -> Outcome:
    """Run `command` to its end; `on_tick(pid)` is called at the start and about every `tick_s`.

    The ticks run in a thread of their own, so that a slow or failing one cannot hold up a signal.
    """
    path = _find(command, environ)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
    try:
        return _run(path, command, environ, mask, on_tick, tick_s)
    finally:
        _drain()  # a Ctrl-C that ended the job must not interrupt the report about it
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def exit_as(outcome: Outcome) -> NoReturn:
    """End this process the way the job ended, so that our parent sees the same wait status."""
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    if outcome.signal is None:
        sys.exit(outcome.exit_code)
    _die_of(outcome.signal)


def _flush(stream: TextIO) -> None:
    try:
        stream.flush()
    except ValueError:  # closed already
        pass
    except OSError:  # a reader that left; the interpreter would try again and exit with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _die_of(number: int) -> NoReturn:
    hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    # 0 would still let a core_pattern that pipes have our core; 1 is the kernel's "neither file nor pipe".
    resource.setrlimit(resource.RLIMIT_CORE, (0 if hard_limit == 0 else 1, hard_limit))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # only reached as process 1 of a container, which no default action ends


def _run(
    path: str,
    command: Sequence[str],
    environ: Mapping[str, str],
    mask: Collection[int],
    on_tick: Callable[[int], None],
    tick_s: float,
) -> Outcome:
    before_ours = signal.getsignal(signal.SIGCHLD)
    if before_ours == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel reaps the job and drops its exit code
    early = _drain()
    witness = _Witness.summon(path, command)
    done = threading.Event()
    try:
        start_unix_ns, start_ns = time.time_ns(), time.perf_counter_ns()
        pid = _spawn(path, command, environ, mask)
        for number in early:
            _send(pid, number)
        ticker = threading.Thread(target=_tick, args=(done, pid, on_tick, tick_s), daemon=True)
        ticker.start()
        status, usage = _Wait(pid, witness).until_the_end()
        end_ns = time.perf_counter_ns()
        done.set()
        ticker.join(_JOIN_S)
    finally:
        done.set()
        witness.dismiss()
        if before_ours == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    killed = os.WIFSIGNALED(status)
    return Outcome(
        exit_code=None if killed else os.WEXITSTATUS(status),
        signal=os.WTERMSIG(status) if killed else None,
        start_unix_ns=start_unix_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        pid=pid,
        cpu_ns=s_to_ns(usage.ru_utime + usage.ru_stime),
    )


def _tick(done: threading.Event, pid: int, on_tick: Callable[[int], None], tick_s: float) -> None:
    while not done.is_set():
        try:
            on_tick(pid)
        except Exception:  # the samples are ours to lose, the run is not
            pass
        done.wait(tick_s)


class _Wait:
    """Waits for the job; passes signals on; stops and continues along with the job."""

    def __init__(self, pid: int, witness: _Witness) -> None:
        self._pid = pid
        self._witness = witness
        self._stop_signal: int | None = None
        self._job_is_stopped = False
        # Process 1 of a container inherits every orphan and must reap them all.
        self._reaps = -1 if os.getpid() == 1 else pid

    def until_the_end(self) -> tuple[int, resource.struct_rusage]:
        while True:
            pid, status, usage = os.wait4(self._reaps, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid == self._pid:
                if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                    return status, usage
                self._job_is_stopped = os.WIFSTOPPED(status)
            elif pid == 0:
                self._take_next()
            self._stop_with_the_job()

    def _take_next(self) -> None:
        info = signal.sigtimedwait(_TAKEN, _POLL_S)
        if info is None:
            self._witness.listen()
        elif info.si_signo != signal.SIGCHLD:
            self._take(info)

    def _take(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number in _STOPS:
            self._stop_signal = number
        elif number == signal.SIGCONT:
            self._stop_signal = None
        if not self._witness.has_seen(info):
            _send(self._pid, number)

    def _stop_with_the_job(self) -> None:
        """Stop as the job did, so that the shell sees it; not when the job alone was stopped by hand."""
        if self._stop_signal is None or not self._job_is_stopped:
            return
        number, self._stop_signal, self._job_is_stopped = self._stop_signal, None, False
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.raise_signal(number)
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})


class _Witness:
    """A silent process in the job's group: a signal that it got, the job got as well.

    Neither the sender nor the code in a siginfo tells kill(launcher) from kill(group): `kill %1`,
    a batch system and a session manager reach us in either way.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self._pid = pid
        self._channel = channel
        self._is_answering = pid > 0
        self._seen_s: dict[int, float] = {}

    @classmethod
    def summon(cls, path: str, command: Sequence[str]) -> _Witness:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                pid = os.fork()
            except OSError:
                pid = -1
            if pid == 0:
                ours.close()
                _testify(theirs, path, command)
        ours.settimeout(_ANSWER_S)
        return cls(pid, ours)

    def has_seen(self, info: signal.struct_siginfo) -> bool:
        time.sleep(_GROUP_DELIVERY_S)
        while signal.sigtimedwait({info.si_signo}, 0) is not None:
            pass  # a repeat within the wait merges with the first, as it did for the witness
        self.listen()
        if not self._is_answering:
            return info.si_code != _SI_USER
        seen_s = self._seen_s.pop(info.si_signo, None)
        return seen_s is not None and time.monotonic() - seen_s < _POLL_S / 2

    def listen(self) -> None:
        """Ask now and then without a reason too, lest an old signal vouch for a new one."""
        if not self._is_answering:
            return
        try:
            self._channel.send(b"?")
            numbers = self._channel.recv(256)
        except OSError:
            numbers = b""
        self._is_answering = bool(numbers)
        now_s = time.monotonic()
        self._seen_s.update((number, now_s) for number in numbers if number)

    def dismiss(self) -> None:
        self._channel.close()
        if self._pid <= 0:
            return
        _send(self._pid, signal.SIGKILL)
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass


def _testify(channel: socket.socket, path: str, command: Sequence[str]) -> NoReturn:
    """The witness's whole life: for each question, the signals that arrived since the last one."""
    try:
        _dress_as(path, command)
        while channel.recv(1):
            channel.send(bytes([*_drain(), 0]))
    finally:
        os._exit(0)


def _dress_as(path: str, command: Sequence[str]) -> None:
    """Take the job's name: `pkill -f train.py` must find the witness too, `pkill whyidle` must not."""
    try:
        with open("/proc/self/comm", "wb") as comm:
            comm.write(os.fsencode(os.path.basename(path))[:15])
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rpartition(b") ")[2].split()
        start, end = int(fields[45]), int(fields[46])
        if start and end > start:
            text = b"\0".join(os.fsencode(word) for word in command)[: end - start - 1]
            with open("/proc/self/mem", "r+b", buffering=0) as memory:
                memory.seek(start)
                memory.write(text.ljust(end - start, b"\0"))
    except (OSError, ValueError, IndexError):
        pass


def _drain() -> list[int]:
    numbers = []
    while (info := signal.sigtimedwait(_TAKEN, 0)) is not None:
        if info.si_signo != signal.SIGCHLD:
            numbers.append(info.si_signo)
    return numbers


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # gone, or a setuid program that we may not signal
        pass


def _spawn(path: str, command: Sequence[str], environ: Mapping[str, str], mask: Collection[int]) -> int:
    # What Python itself ignores at its start; all else the job inherits as we found it.
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)
    try:
        return os.posix_spawn(path, tuple(command), environ, setsigmask=mask, setsigdef=defaults)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _not_executable(command[0], error.strerror or str(error)) from error
    # A script without #!: shells run it themselves.
    script = ("sh", path, *command[1:])
    return os.posix_spawn("/bin/sh", script, environ, setsigmask=mask, setsigdef=defaults)


def _find(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The file a shell would run for `command[0]`."""
    if not command or not command[0]:
        raise UsageError("no command to run", "whyidle run python train.py")
    name = command[0]
    if "/" in name:
        found = [name] if os.path.exists(name) else []
    else:
        candidates = (os.path.join(folder, name) for folder in os.get_exec_path(environ))
        found = [path for path in candidates if os.path.isfile(path)]
    for path in found:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    if not found:
        raise _not_found(name)
    raise _not_executable(name, "is a directory" if os.path.isdir(found[0]) else "permission denied")


def _not_found(name: str) -> UsageError:
    is_script = name.endswith(".py") and os.path.exists(name)
    error = UsageError(f"{name}: command not found", _hint(name) if is_script else f"command -v {name}")
    error.exit_code = _NOT_FOUND
    return error


def _not_executable(name: str, reason: str) -> UsageError:
    error = UsageError(f"{name}: cannot be run: {reason}", _hint(name))
    error.exit_code = _NOT_EXECUTABLE
    return error


def _hint(name: str) -> str:
    if name.endswith(".py"):
        return f"whyidle run python {name}"
    return f"ls -l {name}"
