"""Every unit case of the research data gives exactly its expected values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines import unit_others, unit_plans, unit_rules
from tests.engines.research import OUT_OF_SCOPE, agrees, read_cases
from tests.engines.unit_cases import FAMILIES

TRANSLATIONS = (unit_others, unit_plans, unit_rules)  # importing them registers the families

CASES = {case["id"]: case for case in read_cases("engine_unit_cases.json")}


def inputs_of(case: dict[str, Any]) -> dict[str, Any]:
    """The inputs, on top of those of the case it refers to."""
    given: dict[str, Any] = case["inputs"]
    return inputs_of(CASES[given["same_as"]]) | given if "same_as" in given else given


@pytest.mark.skipif(not CASES, reason="the research data is not here")
@pytest.mark.parametrize("name", CASES)
def test_unit_case(name: str) -> None:
    """What the engine's test, log or run says is what comes out."""
    if name in OUT_OF_SCOPE["unit_cases"]:
        pytest.skip(OUT_OF_SCOPE["unit_cases"][name])
    case = CASES[name]
    answer = FAMILIES[case["family"]](inputs_of(case))
    wrong = {
        key: (answer.get(key), expected)
        for key, expected in case["expected"].items()
        if not agrees(answer.get(key), expected)
    }
    assert wrong == {}
