"""Calls a probe right after the library it watches has been imported, or at once if it already is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False  # importing typing costs every process of the job
if TYPE_CHECKING:
    from importlib.abc import Loader
    from typing import Any

    from whyidle.probes.recorder import Recorder

Attach = Callable[["Recorder", ModuleType], None]


class ImportHooks:
    """A finder that finds nothing itself: it lets the others find, and wraps what their loader does."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._attach: dict[str, Attach] = {}

    def add(self, module_name: str, attach: Attach) -> None:
        self._attach[module_name] = attach

    def install(self) -> None:
        sys.meta_path.insert(0, self)
        for name in list(self._attach):
            module = sys.modules.get(name)
            if module is not None:
                self._call(name, module)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._attach:
            return None
        spec = self._find_elsewhere(fullname, path, target)
        # A loader that is a class (BuiltinImporter) is shared by all modules of its kind.
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, type):
            self._wrap(spec.loader, fullname)
        return spec

    def _find_elsewhere(self, name: str, path: Any, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap(self, loader: Loader, name: str) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if name == "torch":  # whether torch is there is often asked; only its import begins a record
                self._recorder.start()
            try:
                execute(module)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            self._call(name, module)

        try:
            loader.exec_module = exec_module  # type: ignore[method-assign]
        except AttributeError:  # a loader with __slots__: its module goes unobserved
            pass

    def _call(self, name: str, module: ModuleType) -> None:
        attach = self._attach.pop(name, None)
        if attach is None:
            return
        try:
            attach(self._recorder, module)
        except Exception as error:
            self._recorder.note("problem", id="probe_failed", detail=f"{name}: {error!r}")
