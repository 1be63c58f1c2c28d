"""Holds a report against docs/report.schema.json."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))


def strict(schema: Any) -> Any:
    """The schema with no key allowed that it does not name."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if "properties" in closed and isinstance(closed.get("required"), list):
        closed.setdefault("additionalProperties", False)
    return closed


def complaints(report: dict[str, Any]) -> list[str]:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(strict(deepcopy(SCHEMA)))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(report)]
