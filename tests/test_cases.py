"""Formulas against numbers that kvplan did not compute.

A case in tests/cases/*.yaml says: `quantity`, a name of the registry; `given`, the `uses` of an
experiment; `expect`, the number with its unit; `within`, how far the result may lie from it (when
absent it must be equal); `source`, where the number is from.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvplan import pipeline
from kvplan.registry import load_registry
from kvplan.values.show import parse_quantity

SHELF = Path(__file__).parent / "cases"
CASES = [
    pytest.param(case, id=f"{file.stem}-{number}-{case['quantity']}")
    for file in sorted(SHELF.glob("*.yaml"))
    for number, case in enumerate(yaml.safe_load(file.read_text()), start=1)
]


def computed(case: dict[str, Any], folder: Path) -> Any:
    """The quantity in base units, through an experiment file like a user's."""
    file = folder / "experiments" / "case.yaml"
    file.parent.mkdir()
    experiment = {
        "title": "case",
        "question": "?",
        "uses": case["given"],
        "values": {"wanted": {"of": case["quantity"]}},
    }
    # Without aliases, which an experiment may not use to repeat a mapping.
    file.write_text(yaml.dump(experiment, default_flow_style=False, width=1000))
    return pipeline.run(file).results.values["wanted"].value


@pytest.mark.parametrize("case", CASES)
def test_formula_gives_the_number_of_its_source(case: dict[str, Any], tmp_path: Path) -> None:
    """What a formula computes is what its source says, to the digits that are printed there."""
    unit = load_registry()[case["quantity"]].unit
    expected = parse_quantity(case["expect"], unit, "expect")
    slack = parse_quantity(case["within"], unit, "within") if "within" in case else 0
    found = computed(case, tmp_path)
    assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=slack), f"{found} != {expected}"


def test_every_case_has_a_source() -> None:
    """A number without a source is not a case."""
    assert all(case.values[0]["source"] for case in CASES)  # type: ignore[index]


def test_every_formula_is_reached_by_a_case() -> None:
    """Each formula is a case of its own, or one that a case depends on."""
    registry = load_registry()
    stack = [case.values[0]["quantity"] for case in CASES]  # type: ignore[index]
    reached: set[str] = set()
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack += [need for f in registry[name].variants for need in f.needs]
    formulas = {q.name for q in registry.quantities.values() if q.variants}
    assert formulas - reached == set()
