"""Whichever way a job is started, whyidle enters its processes, or says why it could not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.lab import Lab, Observed

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

LOOP = """
import sys
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(2 * steps or 2, 4)), 2):
    if not steps:
        break
    model(x).sum().backward()
    optimizer.step()
print("done")
"""
RANK = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 4)), 2):
    model(x).sum().backward()
    optimizer.step()
value = torch.ones(1)
dist.all_reduce(value)
print(value.item())
dist.destroy_process_group()
"""


def sees(observed: Observed, steps: int = 5) -> bool:
    return (observed.exit_code, observed.stdout, observed.stderr, observed.steps) == (0, "done\n", "", steps)


def test_script(lab: Lab) -> None:
    observed = lab.observed(sys.executable, lab.write("x.py", LOOP))
    assert sees(observed)
    assert observed.problems == ["too_short"] or observed.problems == []
    assert observed.report["ranks"][0]["steps"] == 5


def test_module(lab: Lab) -> None:
    lab.write("pkg/__init__.py", "")
    lab.write("pkg/__main__.py", LOOP)
    assert sees(lab.observed(sys.executable, "-m", "pkg"))


def test_shell_script_and_console_script(lab: Lab) -> None:
    script = lab.write("train", f"#!{sys.executable}\n{LOOP}")
    script.chmod(0o755)
    shell = lab.write("train.sh", 'export PYTHONPATH="$PWD/extra:$PYTHONPATH"\n./train "$@"\nexit $?\n')
    assert sees(lab.observed("bash", shell))


def test_code_from_the_command_line_and_from_stdin(lab: Lab) -> None:
    assert sees(lab.observed(sys.executable, "-c", LOOP))


@pytest.mark.parametrize("steps", [0, 1])
def test_hardly_any_steps(lab: Lab, steps: int) -> None:
    observed = lab.observed(sys.executable, lab.write("x.py", LOOP), steps)
    assert (observed.exit_code, observed.stdout, observed.stderr) == (0, "done\n", "")
    assert observed.problems == [["no_steps"], ["one_step"]][steps]


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_options_that_keep_it_out(lab: Lab, option: str) -> None:
    observed = lab.observed(sys.executable, option, "-c", "print('done')")
    assert (observed.exit_code, observed.stdout, observed.stderr) == (0, "done\n", "")
    assert observed.problems == ["not_entered"]


def test_no_python_at_all(lab: Lab) -> None:
    observed = lab.observed("sh", "-c", "echo done; exit 3")
    assert (observed.exit_code, observed.stdout) == (3, "done\n")
    assert sorted(observed.problems) == ["job_failed", "not_entered"]


@pytest.mark.parametrize("text", ["", "print('done')", "import logging; logging.warning('x'); print('y')"])
def test_without_torch(lab: Lab, text: str) -> None:
    bare, observed = lab.both(sys.executable, "-c", text)
    assert (observed.stdout, observed.stderr) == (bare.stdout, bare.stderr)
    assert observed.problems == ["no_torch"]


def test_torch_that_is_only_looked_for_starts_nothing(lab: Lab) -> None:
    looks = (
        "import os, importlib.util as u; print(not u.find_spec('torch'), len(os.listdir('/proc/self/task')))"
    )
    observed = lab.observed(sys.executable, "-c", looks)
    assert observed.stdout == "False 1\n"
    assert observed.problems == ["no_torch"]


def test_torch_without_a_loop(lab: Lab) -> None:
    observed = lab.observed(sys.executable, "-c", "import torch; print('done')")
    assert observed.problems == ["no_steps"]


SITECUSTOMIZE = """
import sys
if "whyidle" in sys.orig_argv:  # whyidle's own process
    raise ImportError(name="sitecustomize")
print("site", [entry for entry in sys.path if "enter" in entry], __name__, __file__)
sys.path.append("/added")
"""
PATHS = "import sys, sitecustomize as s; print(sys.path, s.__file__, sys.modules['sitecustomize'] is s)"


def test_a_sitecustomize_of_the_user_runs_as_always(lab: Lab) -> None:
    lab.write("mine/sitecustomize.py", SITECUSTOMIZE)
    bare, observed = lab.both(sys.executable, "-c", PATHS, PYTHONPATH=str(lab.folder / "mine"))
    assert (observed.stdout, observed.stderr) == (bare.stdout, bare.stderr)
    assert observed.stdout.startswith("site []")
    assert observed.problems == ["no_torch"]


@pytest.mark.parametrize("text", ["1 / 0", "import no_such_module", "raise ImportError('own')"])
def test_a_broken_sitecustomize_fails_as_always(lab: Lab, text: str) -> None:
    lab.write("mine/sitecustomize.py", f"import sys\nif 'whyidle' not in sys.orig_argv:\n    {text}")
    bare, observed = lab.both(sys.executable, "-c", "print('done')", PYTHONPATH=str(lab.folder / "mine"))
    assert (observed.stdout, observed.stderr, observed.exit_code) == (
        bare.stdout,
        bare.stderr,
        bare.exit_code,
    )
    assert observed.problems == ["no_torch"]


def test_nothing_becomes_importable_that_was_not(lab: Lab) -> None:
    """An interpreter without whyidle, and with a package of the user's that has the name of one of ours."""
    lab.write("psutil.py", "print('mine')\n")
    lab.write(
        "x.py", "import sys, psutil, importlib.util as u\nprint([p for p in sys.path if 'whyidle' in p])\n"
    )
    bare, observed = lab.both(sys.executable, "x.py")
    assert (observed.stdout, observed.stderr) == (bare.stdout, bare.stderr)


def test_an_interpreter_without_whyidle(lab: Lab) -> None:
    """A job's own environment: torch, but no whyidle nor what it needs."""
    bin_folder = lab.folder / "venv" / "bin"
    bin_folder.mkdir(parents=True)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    (bin_folder / "python").symlink_to(base)
    site = lab.folder / "venv" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    lab.write("venv/pyvenv.cfg", f"home = {base.parent}\n")
    import torch

    source = Path(torch.__file__).parent.parent
    for name in (
        "torch",
        "torchgen",
        "functorch",
        "typing_extensions.py",
        "sympy",
        "networkx",
        "jinja2",
        "filelock",
        "mpmath",
        "numpy",
    ):
        if (source / name).exists():
            (site / name).symlink_to(source / name)
    for info in source.glob("numpy.libs"):
        (site / info.name).symlink_to(info)
    script = lab.write("x.py", "import importlib.util as u\n" + LOOP)
    observed = lab.observed(bin_folder / "python", "-P" if sys.version_info >= (3, 11) else "-u", script)
    assert sees(observed), observed.stderr


def test_old_interpreters_are_left_alone(lab: Lab) -> None:
    old = next(iter(sorted(Path("~/.pyenv/versions").expanduser().glob("3.[6-9].*/bin/python"))), None)
    if old is None:
        pytest.skip("no interpreter older than 3.10 here")
    observed = lab.observed(old, "-c", "print('done')")
    assert (observed.exit_code, observed.stdout, observed.stderr) == (0, "done\n", "")


def test_torchrun(lab: Lab) -> None:
    script = lab.write("ranks.py", RANK)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--standalone"]
    observed = lab.observed(*launcher, script, OMP_NUM_THREADS="1")
    assert observed.exit_code == 0, observed.stderr
    assert observed.stdout.split() in (["2.0", "2.0"], ["2.02.0"])
    ranks = observed.report["ranks"]
    assert [(rank["rank"], rank["steps"]) for rank in ranks] == [(0, 8), (1, 8)]
    assert ranks[0]["pid"] != ranks[1]["pid"]


def test_accelerate_launch(lab: Lab) -> None:
    pytest.importorskip("accelerate")
    script = lab.write("x.py", LOOP)
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", 1]
    options = ["--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no"]
    observed = lab.observed(*launcher, *options, script, HF_HOME=str(lab.folder))
    assert observed.exit_code == 0, observed.stderr
    assert observed.steps == 5


def test_modules_that_entering_imports_are_torchs_own(lab: Lab) -> None:
    """A file of the user's that hides a module of the standard library must be found as it is without us."""
    show = "import sys; print(*sorted(n for n in sys.modules if not n.startswith('whyidle')))"
    entered = set(lab.observed(sys.executable, "-c", show).stdout.split())
    alone = set(lab.bare(sys.executable, "-c", f"import torch; {show}").stdout.split())
    assert entered - alone <= {"sitecustomize"}


def test_a_record_names_its_processes(lab: Lab) -> None:
    text = LOOP.replace("4)), 2)", "4)), 2, num_workers=2)")
    observed = lab.observed(sys.executable, lab.write("x.py", text))
    assert sees(observed)
    roles = sorted(process.header["role"] for process in observed.record.processes)
    assert roles == ["main", "worker", "worker"]
    assert all(process.has_ended for process in observed.record.processes)
