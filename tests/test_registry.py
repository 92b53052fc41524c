"""The formulas themselves: named, sourced, unit-checked, and faults of theirs found."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

from kvplan.registry import Formula, Quantity, Registry, load_registry

REGISTRY = load_registry()
QUANTITIES = list(REGISTRY.quantities.values())
FORMULAS = [(q, f) for q in QUANTITIES for f in q.variants]


def test_nothing_is_at_fault() -> None:
    """Names, cycles, symbols, sources and units of all formulas."""
    assert REGISTRY.faults() == []


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda q: q.name)
def test_a_quantity_says_what_it_is(quantity: Quantity) -> None:
    """A snake_case name, a symbol of its own, and a sentence."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*", quantity.name)
    assert quantity.symbol
    assert sum(q.symbol == quantity.symbol for q in QUANTITIES) == 1
    assert quantity.doc.rstrip().endswith(".")
    assert quantity.unit.factor == 1, "values are held in base units"
    assert quantity.show.same_dimension(quantity.unit)


@pytest.mark.parametrize(("quantity", "formula"), FORMULAS, ids=lambda x: getattr(x, "name", ""))
def test_a_formula_is_one_expression_with_a_source(quantity: Quantity, formula: Formula) -> None:
    """One return, no branch, no default, and where it is from."""
    assert len(formula.source) > 5
    assert formula.doc
    parameters = inspect.signature(formula.function).parameters.values()
    assert all(p.default is inspect.Parameter.empty for p in parameters)
    (tree,) = ast.parse(inspect.getsource(formula.function)).body
    assert isinstance(tree, ast.FunctionDef)
    body = [node for node in tree.body if not isinstance(node, ast.Expr)]
    assert len(body) == 1 and isinstance(body[0], ast.Return)
    assert not any(
        isinstance(node, (ast.IfExp, ast.BoolOp, ast.Attribute)) for node in ast.walk(body[0])
    )


def test_constants_have_a_source() -> None:
    """A number that no experiment gives says where it is from."""
    assert [q.name for q in QUANTITIES if q.constant is not None and not q.source] == []


def registry() -> Registry:
    """A registry with two inputs."""
    made = Registry()
    made.declare("page", "token", "P", "Slots.")
    made.declare("bytes", "B", "b", "Bytes.")
    return made


def add(made: Registry, source: str, function: Any, **rest: str) -> list[str]:
    """What is at fault once a formula is added."""
    made.formula(**{"unit": "B/token", "symbol": "s", "source": source, **rest})(function)
    return made.faults()


def test_a_wrong_unit_is_found() -> None:
    """A formula that computes another unit than it declares."""

    def rate(page, bytes):  # type: ignore[no-untyped-def]
        return page / bytes

    assert add(registry(), "a book", rate) == ["formula rate: declared B/token, computes token/B"]


def test_an_unknown_name_is_found_with_a_suggestion() -> None:
    """A parameter that nothing defines."""

    def rate(pages, bytes):  # type: ignore[no-untyped-def]
        return bytes / pages

    assert add(registry(), "a book", rate) == [
        "formula rate needs 'pages', which nothing defines; did you mean 'page'?"
    ]


def test_a_cycle_is_found() -> None:
    """Two formulas that need each other."""

    def rate(other):  # type: ignore[no-untyped-def]
        return other

    def other(rate):  # type: ignore[no-untyped-def]
        return rate

    made = registry()
    add(made, "a book", rate)
    (fault,) = add(made, "a book", other, symbol="o")
    assert fault.startswith("formulas need each other: ")
    assert "rate" in fault and "other" in fault


def test_a_missing_source_and_a_shared_symbol_are_found() -> None:
    """Both are told at once."""

    def rate(page, bytes):  # type: ignore[no-untyped-def]
        return bytes / page

    assert add(registry(), "", rate, symbol="P") == [
        "formula rate has no source",
        "rate and page share the symbol 'P'",
    ]
