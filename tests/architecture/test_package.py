"""What a user installs and imports."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

import whyidle

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS_LIMIT = 6


def test_the_public_names_are_pinned() -> None:
    assert sorted(whyidle.__all__) == ["__version__", "phase", "watch"]
    for name in whyidle.__all__:
        assert getattr(whyidle, name)
    with pytest.raises(AttributeError, match="nothing"):
        whyidle.nothing  # noqa: B018


def test_version_is_said_once() -> None:
    assert f'version = "{whyidle.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {whyidle.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_base_install_is_small() -> None:
    assert len(installed_with("whyidle")) <= DISTRIBUTIONS_LIMIT


def installed_with(name: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """The distribution and all that it needs without extras."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    found = seen | {name.lower()}
    try:
        wanted = [requirement(text) for text in requires(name) or []]
    except PackageNotFoundError:
        return found
    for each in wanted:
        is_wanted = each.marker is None or each.marker.evaluate({"extra": ""})
        if is_wanted and each.name.lower() not in found:
            found = installed_with(each.name, found)
    return found


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_one_package_and_nothing_else(wheel_names: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names} == {
        "whyidle",
        f"whyidle-{whyidle.__version__}.dist-info",
    }
    assert not [name for name in wheel_names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_holds_every_file_of_the_package(wheel_names: set[str]) -> None:
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "whyidle").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= wheel_names
    for name in ("py.typed", "probes/enter/sitecustomize.py", "reports/text/zh.json", "demos/photos.py"):
        assert f"whyidle/{name}" in wheel_names
