"""What is left of a run when the job, the disk or another job gets in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.lab import Lab

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

LOOP = """
import os, resource, signal, sys, time
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train(steps=40):
    for _ in range(steps):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        time.sleep(0.02)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_killed_job_is_reported_up_to_its_end(lab: Lab, name: str) -> None:
    ending = f"train()\ntime.sleep(0.7)\nos.kill(os.getpid(), signal.{name})\ntime.sleep(9)"
    bare, observed = lab.both(sys.executable, lab.write("x.py", LOOP + ending))
    number = getattr(signal, name)
    assert observed.exit_code == bare.exit_code == -number
    assert observed.stderr == bare.stderr
    assert observed.report["signal"] == number
    assert "job_killed" in observed.problems
    assert observed.steps >= 30


def test_os_exit_and_exec(lab: Lab) -> None:
    observed = lab.observed(sys.executable, lab.write("x.py", LOOP + "train()\nos._exit(9)"))
    assert observed.exit_code == 9
    assert observed.steps >= 30
    assert all(process.has_ended for process in observed.record.processes)


def test_a_disk_that_fills_up_costs_the_record_only(lab: Lab) -> None:
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))\ntrain()\ntrain()\nprint('done')"
    observed = lab.observed(sys.executable, lab.write("x.py", LOOP + full))
    assert (observed.exit_code, observed.stdout, observed.stderr) == (0, "done\n", "")
    assert "record_lost" in observed.problems


def test_a_really_full_disk(lab: Lab) -> None:
    disk = lab.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing may be mounted here")
    try:
        fill = f"open({str(disk / 'filler')!r}, 'wb').write(bytes(100_000_000))"
        text = (
            LOOP
            + f"try:\n    {fill}\nexcept OSError as error:\n    print(error.errno)\ntrain()\nprint('done')"
        )
        script = lab.write("x.py", text)
        whyidle = [sys.executable, "-m", "whyidle", "run", "--quiet", "--out", disk / "run", "--"]
        observed = lab.bare(*whyidle, sys.executable, script)
        assert (observed.exit_code, observed.stdout) == (0, "28\ndone\n")
        assert observed.stderr.count("whyidle: ") == 1
        assert observed.stderr.count("\n") == 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("place", ["/proc/nowhere/run", "/dev/null/run"])
def test_a_place_that_cannot_be_written_costs_one_line(lab: Lab, place: str) -> None:
    whyidle = [sys.executable, "-m", "whyidle", "run", "--quiet", "--out", place, "--"]
    observed = lab.bare(*whyidle, sys.executable, "-c", "print('done'); raise SystemExit(6)")
    assert (observed.exit_code, observed.stdout) == (6, "done\n")
    assert observed.stderr.startswith(f"whyidle: {place} cannot ")
    assert observed.stderr.count("\n") == 1


def test_a_folder_that_vanishes_costs_a_few_lines(lab: Lab) -> None:
    vanish = (
        "train(5)\nimport shutil; shutil.rmtree(os.environ['WHYIDLE_RUN_FOLDER'])\ntrain()\nprint('done')"
    )
    whyidle = [sys.executable, "-m", "whyidle", "run", "--out", lab.folder / "run", "--"]
    observed = lab.bare(*whyidle, sys.executable, lab.write("x.py", LOOP + vanish))
    assert (observed.exit_code, observed.stdout) == (0, "done\n")
    assert "Traceback" not in observed.stderr
    assert 1 <= observed.stderr.count("\n") <= 4


def test_two_jobs_at_once_into_one_folder(lab: Lab) -> None:
    script = lab.write("x.py", LOOP + "train(10)\nprint('done')")
    whyidle = [sys.executable, "-m", "whyidle", "run", "--quiet", "--out", str(lab.folder / "run"), "--"]
    both = [
        subprocess.Popen([*whyidle, sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    ended = [job.communicate(timeout=60) for job in both]
    assert [job.returncode for job in both] == [0, 0]
    assert [out for out, _ in ended] == [b"done\n"] * 2
    assert sorted(err.count(b"\n") for _, err in ended) == [0, 1]
    for name in ("run", "run-2"):
        assert len(list((lab.folder / name).glob("main-*.rec"))) == 1


def test_children_that_do_not_train_leave_no_file(lab: Lab) -> None:
    text = """
import os, sys, time
import torch
def files():
    return [name for name in os.listdir(os.environ["WHYIDLE_RUN_FOLDER"]) if name.endswith(".rec")]
for _ in range(3):
    if os.fork() == 0:
        print("x" * 10)
        time.sleep(0.1)
        os._exit(0)
    os.wait()
time.sleep(0.8)
print(len(files()), len(os.listdir("/proc/self/fd")) < 20)
"""
    observed = lab.observed(sys.executable, "-c", text)
    assert observed.stdout == "x" * 10 + "\n" + "1 True\n" or observed.stdout.endswith("1 True\n")
    assert [process.header["role"] for process in observed.record.processes] == ["main"]


def test_the_launcher_cleans_up_after_itself(lab: Lab) -> None:
    observed = lab.observed(sys.executable, lab.write("x.py", LOOP + "train(3)"))
    names = {path.name.split("-")[0] for path in (observed.folder / "run").iterdir()}
    assert names == {"entered", "host.jsonl", "main", "run.json"}
    assert os.access(observed.folder / "report.json", os.R_OK)
    assert not list(Path(observed.folder).glob("*.partial"))
