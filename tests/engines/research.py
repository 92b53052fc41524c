"""The shared research data, where it is at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
_BESIDE = [parent / "shared" / "research" for parent in HERE.parents]
RESEARCH = Path(
    os.environ.get("KVPLAN_RESEARCH") or next((p for p in _BESIDE if p.is_dir()), _BESIDE[0])
)
OUT_OF_SCOPE: dict[str, dict[str, str]] = yaml.safe_load(
    (HERE / "out_of_scope.yaml").read_text(encoding="utf-8")
)


def read_cases(name: str) -> list[dict[str, Any]]:
    """The cases of a file, or none where the file is absent."""
    path = RESEARCH / name
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    cases: list[dict[str, Any]] = json.loads(text)["cases"]
    return cases


def agrees(given: Any, expected: Any) -> bool:
    """Exact, but for figures an engine printed: an interval, or two decimals as printed."""
    if isinstance(given, tuple) and len(given) == 2:
        return bool(given[0] <= expected <= given[1])
    if isinstance(given, range):
        return expected in given
    if isinstance(given, float) and isinstance(expected, float) and given != expected:
        return round(expected, 2) == expected == round(given, 2)
    return bool(given == expected)
