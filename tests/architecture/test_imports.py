"""Who may import whom, and what must not be imported at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "whyidle"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "demos" not in path.parts)
NAMES_OF_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "core"}


def imported(path: Path) -> Iterator[str]:
    """Top-level names that the file imports, wherever in it; not those of its own package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def foreign(path: Path) -> set[str]:
    return set(imported(path)) - sys.stdlib_module_names - {"whyidle"}


def test_the_import_contracts_hold() -> None:
    pytest.importorskip("importlinter")
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_module_has_a_name_that_says_something() -> None:
    assert [path for path in PACKAGE.rglob("*") if path.stem in NAMES_OF_NOTHING] == []


def test_a_third_party_module_is_imported_in_one_file() -> None:
    importers = defaultdict(set)
    for path in FILES:
        for name in foreign(path):
            importers[name].add(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in importers.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("folder", ["probes", "record"])
def test_inside_the_job_nothing_is_imported_but_the_standard_library(folder: str) -> None:
    """Frameworks are handed to the probes by the import hooks; NVML is read from outside the job."""
    outside = {"probes/nvml.py": {"pynvml"}}
    for path in FILES:
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith(f"{folder}/"):
            assert foreign(path) <= outside.get(place, set()), place


def test_only_the_command_line_and_the_terminal_report_print() -> None:
    for path in FILES:
        place = path.relative_to(PACKAGE).as_posix()
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        ]
        if any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls):
            assert place.startswith("cli/") or place == "reports/terminal.py", place


@pytest.mark.parametrize(
    "statement", ["import whyidle", "from whyidle.cli.main import main; main(['--help'])"]
)
def test_a_start_imports_no_third_party_module(statement: str) -> None:
    code = f"import sys; old = set(sys.modules)\n{statement}\nprint(*set(sys.modules) - old, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name.split(".")[0] for name in done.stderr.split()}
    assert names - sys.stdlib_module_names == {"whyidle"}


def test_entering_a_job_imports_no_third_party_module(tmp_path: Path) -> None:
    environ = {"PYTHONPATH": str(PACKAGE / "probes" / "enter"), "WHYIDLE_RUN_FOLDER": str(tmp_path)}
    code = (
        "import sys; print(*[name for name in sys.modules if getattr(sys.modules[name], '__file__', None)])"
    )
    run = {
        state: subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        for state, env in (("bare", {}), ("observed", environ))
    }
    added = {name.split(".")[0] for name in run["observed"].stdout.split()}
    added -= {name.split(".")[0] for name in run["bare"].stdout.split()}
    assert "whyidle" in added
    own = {"whyidle", "sitecustomize"}
    assert {name for name in added - sys.stdlib_module_names if not name.startswith("_sysconfigdata")} <= own
