"""The rules of units, strict YAML and the registry."""

import pytest

from kvplan import yamltext
from kvplan.errors import KvplanError, ValueProblem
from kvplan.registry import load_registry
from kvplan.values.show import parse_quantity
from kvplan.values.unit import parse_unit


def test_every_formula_has_the_unit_it_declares() -> None:
    """Running each formula on units finds no fault."""
    assert load_registry().faults() == []


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [("80 GiB", "B", 80 * 2**30), ("25 GB/s", "B/s", 25 * 10**9), ("172.5 GiB", "B", 185220464640)],
)
def test_a_quantity_is_read_exactly(text: str, unit: str, value: int) -> None:
    """Whole numbers of base units stay whole."""
    assert parse_quantity(text, parse_unit(unit), "x") == value


@pytest.mark.parametrize("text", ["80", "80 GiB/s", "80 Gb", "80 KB", "1e400 GiB", "nan GiB"])
def test_a_quantity_that_is_not_one_is_refused(text: str) -> None:
    """Missing, wrong and ambiguous units are errors."""
    with pytest.raises(ValueProblem):
        parse_quantity(text, parse_unit("B"), "x")


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "a: 010", "a: .nan", "a: 1e400", "a: !!python/name:os x", "a:\n\t-", ""]
)
def test_strict_yaml_refuses_what_is_ambiguous(text: str) -> None:
    """Duplicate keys, octal look-alikes, numbers that are not finite, tags, tabs, nothing."""
    with pytest.raises(KvplanError):
        yamltext.parse(text, "x.yaml")


def test_yaml_numbers_and_words() -> None:
    """1e9 is a number; no and on are words."""
    data = yamltext.parse("a: 1e9\nb: no\nc: on", "x.yaml").data
    assert data == {"a": 10**9, "b": "no", "c": "on"}
