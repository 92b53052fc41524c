"""The reviewed numbers of an experiment: written one a line, compared as numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Place, Problem
from kvplan.records import Results, Verdict
from kvplan.values.show import plain
from kvplan.yamltext import read

RELATIVE = 1e-9
MAX_GOLDEN_BYTES = 50_000_000

Golden = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    """One cell that is not what was reviewed."""

    address: str
    expected: str
    obtained: str
    relative: str

    def __str__(self) -> str:
        return f"{self.address}: expected {self.expected}, obtained {self.obtained}" + (
            f" ({self.relative})" if self.relative else ""
        )


def golden(results: Results, verdicts: tuple[Verdict, ...]) -> Golden:
    """All numbers and texts of an experiment by address, and what became of its claims."""
    cells = [
        *results.values.values(),
        *(cell for table in results.tables.values() for row in table.rows for cell in row),
    ]
    found: Golden = {}
    for cell in cells:
        unit = cell.wish.unit.text if cell.wish.unit and not cell.wish.is_text else "text"
        found[cell.address] = {"value": _rounded(cell.shown_value), "unit": unit}
    for verdict in verdicts:
        word = "holds" if verdict.holds else "refuted"
        found[f"claim {verdict.plan.id}"] = {"value": word, "unit": "text"}
    return found


def _rounded(value: Any) -> Any:
    number = plain(value)
    return plain(float(f"{number:.12g}")) if isinstance(number, float) else number


def golden_text(name: str, cells: Golden) -> str:
    """The file: one cell a line, in the order of the experiment."""
    lines = [
        f" {json.dumps(address, ensure_ascii=False)}: {json.dumps(cell, ensure_ascii=False)}"
        for address, cell in cells.items()
    ]
    head = f'{{\n"experiment": {json.dumps(name)},\n"cells": {{\n'
    return head + ",\n".join(lines) + "\n}\n}\n"


def read_golden(path: Path, shown: str) -> Golden:
    """The reviewed numbers; raises KvplanError when the file is not whole."""
    text = read(path, shown, MAX_GOLDEN_BYTES, inside=path.parent.parent)
    try:
        data = json.loads(text)
        cells = data["cells"]
        assert all(set(cell) == {"value", "unit"} for cell in cells.values())
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        AssertionError,
        RecursionError,
    ) as error:
        line = getattr(error, "lineno", 1)
        raise KvplanError(
            Problem(
                "not a whole golden file",
                "it is cut short or was edited by hand",
                "restore it from version control, or: kvplan accept",
                Place(shown, line, 1),
            )
        ) from None
    return dict(cells)


def differences(expected: Mapping[str, Any], obtained: Mapping[str, Any]) -> list[Difference]:
    """The cells that differ, as numbers (relative 1e-9) or exactly as text."""
    return list(_differences(expected, obtained))


def _differences(expected: Mapping[str, Any], obtained: Mapping[str, Any]) -> Iterator[Difference]:
    for address, cell in obtained.items():
        before = expected.get(address)
        if before is None:
            yield Difference(address, "nothing", _text(cell), "new")
        elif not _same(before, cell):
            yield Difference(address, _text(before), _text(cell), _relative(before, cell))
    for address, cell in expected.items():
        if address not in obtained:
            yield Difference(address, _text(cell), "nothing", "gone")


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    if a["unit"] != b["unit"]:
        return False
    x, y = a["value"], b["value"]
    if _number(x) and _number(y):
        return math.isclose(x, y, rel_tol=RELATIVE, abs_tol=1e-300)
    return bool(x == y)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(cell: Mapping[str, Any]) -> str:
    unit = "" if cell["unit"] in ("text", "1") else f" {cell['unit']}"
    return f"{cell['value']}{unit}"


def _relative(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    x, y = a["value"], b["value"]
    if not _number(x) or not _number(y) or a["unit"] != b["unit"] or x == 0:
        return ""
    return f"{(y - x) / abs(x) * 100:+.3g} %"
