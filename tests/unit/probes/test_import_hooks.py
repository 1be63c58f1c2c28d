"""Probes are attached right after the import of what they watch, and imports behave as they always do."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from whyidle.probes.import_hooks import ImportHooks
from whyidle.probes.recorder import Recorder


class Rig:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorder = Recorder(str(folder))
        self.hooks = ImportHooks(self.recorder)
        self.attached: list[str] = []

    def watch(self, name: str, text: str = "value = 1\n") -> None:
        path = self.folder / "modules" / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.hooks.add(name, self.attach)

    def attach(self, recorder: Recorder, module: ModuleType) -> None:
        assert recorder is self.recorder
        self.attached.append(module.__name__)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    made = Rig(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield made
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_attached_once_after_import(rig: Rig) -> None:
    rig.watch("watched")
    rig.hooks.install()
    assert rig.attached == []
    module = importlib.import_module("watched")
    importlib.reload(module)
    assert module.value == 1
    assert rig.attached == ["watched"]


def test_attached_at_once_to_what_is_there(rig: Rig) -> None:
    rig.hooks.add("json", rig.attach)
    rig.hooks.install()
    assert rig.attached == ["json"]


def test_asking_for_a_spec_attaches_nothing(rig: Rig) -> None:
    rig.watch("watched")
    rig.hooks.install()
    assert importlib.util.find_spec("watched") is not None
    assert importlib.util.find_spec("watched_too") is None
    assert rig.attached == []
    importlib.import_module("watched")
    assert rig.attached == ["watched"]


def test_a_failing_probe_is_noted_and_not_raised(rig: Rig) -> None:
    def fail(recorder: Recorder, module: ModuleType) -> None:
        raise RuntimeError("broken probe")

    rig.watch("watched")
    rig.hooks.add("watched", fail)
    rig.hooks.install()
    assert importlib.import_module("watched").value == 1
    (note,) = rig.recorder._notes
    assert (note["id"], "broken probe" in note["detail"]) == ("probe_failed", True)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 cannot take a frame out of a traceback")
def test_a_failing_import_fails_as_always(rig: Rig) -> None:
    rig.watch("broken", "import json\n1 / 0\n")
    rig.hooks.install()
    with pytest.raises(ZeroDivisionError) as caught:
        import broken  # type: ignore[import-not-found]  # noqa: F401
    files = [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == ["test_import_hooks.py", "broken.py"]
    assert "broken" not in sys.modules
    assert rig.attached == []


def test_a_missing_module_is_missing(rig: Rig) -> None:
    rig.hooks.add("no_such_module", rig.attach)
    rig.hooks.install()
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_module'"):
        importlib.import_module("no_such_module")


def test_submodules_are_watched_by_their_full_name(rig: Rig) -> None:
    rig.watch("package.inner")
    (rig.folder / "modules/package/__init__.py").write_text("from package.inner import value\n")
    rig.hooks.install()
    assert importlib.import_module("package").value == 1
    assert rig.attached == ["package.inner"]


def test_older_finders_are_asked_too(rig: Rig) -> None:
    class Without:
        pass

    sys.meta_path.insert(0, Without())  # type: ignore[arg-type]
    rig.watch("watched")
    rig.hooks.install()
    assert rig.hooks.find_spec("watched", None) is not None
