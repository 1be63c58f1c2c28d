"""The run's folder from the launcher's side: `run.json`, `host.jsonl`, and the way in for the job."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from whyidle.cli.live_status import LiveStatus
from whyidle.probes.api import default_folder

if TYPE_CHECKING:
    from whyidle.probes.host import HostSampler
    from whyidle.probes.launcher import Outcome
    from whyidle.probes.nvml import NvmlSampler

ENTER_FOLDER = str(Path(__file__).resolve().parent.parent / "probes" / "enter")
HOST_LINES_LIMIT = 20_000  # then every other line is dropped and ticks count half as often


class RunFolder:
    """`path` is None where nothing could be recorded: the job then runs unobserved."""

    def __init__(self, path: str | None, command: Sequence[str]) -> None:
        self.path = path
        self._info: dict[str, Any] = {"command": list(command), "cwd": os.getcwd()}
        self._host: TextIO | None = None
        self._sampler: HostSampler | None = None
        self._gpus: NvmlSampler | None = None
        self._status = LiveStatus(sys.stderr)
        self._ticks = 0
        self._stride = 1
        self._lines = 0

    @classmethod
    def make(cls, wanted: str | None, command: Sequence[str]) -> RunFolder:
        """Make the folder; where that fails, one under the system's temporary folder, else none."""
        first = wanted or default_folder(_name_of(command))
        for candidate in (first, os.path.join(tempfile.gettempdir(), default_folder(_name_of(command)))):
            path = _new_folder(candidate, wanted is not None and candidate == wanted)
            if path is not None:
                if candidate != first or path != os.path.abspath(first):
                    _say(f"{first} cannot take this run; recording to {path}")
                return cls(path, command)
        _say(f"{first} cannot be written; the job runs unobserved")
        return cls(None, command)

    def environ(self) -> Mapping[str, str]:
        environ = dict(os.environ)
        if self.path is not None:
            environ["WHYIDLE_RUN_FOLDER"] = self.path
            environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ENTER_FOLDER, environ.get("PYTHONPATH")]))
        return environ

    def __enter__(self) -> RunFolder:
        if self.path is None:
            return self
        self._info["environment"] = _environment()
        self._write_info()
        try:
            self._host = Path(self.path, "host.jsonl").open("w")
        except OSError:
            self._host = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.clear()
        if self._host is not None:
            try:
                self._host.close()
            except OSError:
                pass

    def tick(self, pid: int) -> None:
        """One line about the process tree; lines grow rarer so that the file stays bounded."""
        self._ticks += 1
        if self._host is None or self._ticks % self._stride:
            return
        if self._sampler is None:
            from whyidle.probes.host import HostSampler
            from whyidle.probes.nvml import NvmlSampler

            self._sampler = HostSampler(pid)
            self._gpus, reason = NvmlSampler.open(os.environ)
            self._info["nvml_missing"] = reason
            self._info["visible_devices_count"] = len(self._gpus.gpus) if self._gpus is not None else None
        line = asdict(self._sampler.sample())
        if self._gpus is not None:
            line["gpus"] = [asdict(gpu) for gpu in self._gpus.sample()]
        self._host.write(json.dumps(line) + "\n")
        self._host.flush()
        self._status.show(line)
        self._lines += 1
        if self._lines % (HOST_LINES_LIMIT // 4) == 0:
            self._stride *= 2

    def finish(self, outcome: Outcome) -> None:
        if self.path is None:
            return
        self._info.update(
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            start_unix_ns=outcome.start_unix_ns,
            start_ns=outcome.start_ns,
            end_ns=outcome.end_ns,
            pid=outcome.pid,
            cpu_ns=outcome.cpu_ns,
            entered=os.path.exists(os.path.join(self.path, "entered")),
            sources=self._sources(),
        )
        self._write_info()

    def _sources(self) -> list[dict[str, Any]]:
        from whyidle.errors import WhyidleError
        from whyidle.probes.sources import collect
        from whyidle.record.reader import read_run

        try:
            run = read_run(Path(self.path or ""))
        except WhyidleError:
            return []
        places = {
            (frame[0], frame[1])
            for process in run.processes
            for note in process.notes_of("stack")
            for frame in note["frames"]
        }
        return collect(places)

    def _write_info(self) -> None:
        target = Path(self.path or "", "run.json")
        partial = target.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(self._info))
            partial.replace(target)
        except OSError as error:
            _remove(partial)
            _say(f"{target} cannot be written ({error.strerror}); the report will lack the job's own times")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass


def _environment() -> dict[str, Any]:
    from whyidle.probes.environment import describe
    from whyidle.probes.host import effective_cores, memory_limit_bytes

    return describe(
        os.environ, "/", effective_cores=effective_cores(), memory_limit_bytes=memory_limit_bytes()
    )


def _new_folder(candidate: str, may_be_there: bool) -> str | None:
    """The folder, made; a numbered neighbour where a run lies already; None where it cannot be made."""
    for serial in range(1, 100):
        path = candidate if serial == 1 else f"{candidate}-{serial}"
        try:
            os.makedirs(path, exist_ok=may_be_there)
        except FileExistsError:
            continue
        except OSError:
            return None
        try:  # whoever makes run.json has the folder: two jobs may be given the same
            os.close(os.open(os.path.join(path, "run.json"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except FileExistsError:
            continue
        except OSError:
            return None
        return os.path.abspath(path)
    return None


def _name_of(command: Sequence[str]) -> str:
    """What the run is about: the script or module, not the interpreter."""
    for word in command[1:]:
        if word.endswith((".py", ".sh")):
            return os.path.basename(word)
    words = [word for word in command if not word.startswith("-")]
    return os.path.basename(words[1] if len(words) > 1 else words[0]) if words else "run"


def _say(text: str) -> None:
    print(f"whyidle: {text}", file=sys.stderr, flush=True)
