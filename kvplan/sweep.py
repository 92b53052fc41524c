"""An experiment and the range of one input in, what becomes of quantities over all of it out.

Every point is computed, none is searched for: whether something fits may change back and forth
along an axis.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Place, ValueProblem
from kvplan.evaluate import Numbers, is_elementwise, takes_arrays
from kvplan.load import load
from kvplan.registry import Quantity, load_registry
from kvplan.resolve import resolve
from kvplan.values.expression import Expression, parse_expression
from kvplan.values.ops import OPS
from kvplan.values.show import parse_quantity, plain, show_number
from kvplan.values.unit import Unit

MAX_POINTS = 1_000_000
MAX_RANGES = 20


@dataclass(frozen=True)
class Sweep:
    """Arrays in base units: the axis, quantities over it, and where a condition holds."""

    axis: Quantity
    points: Any
    columns: Mapping[str, Any]
    condition: str = ""
    holds: Any = None


def sweep(
    path: Path, overrides: tuple[str, ...], names: tuple[str, ...], over: str, condition: str = ""
) -> Sweep:
    """Quantities of an experiment over `over`, text such as "context=1 token..4096 token"."""
    binding = resolve(load(path), overrides).binding
    axis, points = _at("--over", over, lambda: _axis(over))
    numbers = Numbers(binding, {axis.name: points})
    columns = {
        name: _at("QUANTITY", name, partial(_column, name, numbers, len(points))) for name in names
    }
    holds = _at("--where", condition, lambda: _holds(condition, numbers)) if condition else None
    return Sweep(axis, points, columns, condition, holds)


def _at(word: str, text: str, action: Callable[[], Any]) -> Any:
    """The value of an action; its fault is one of a word of the command line."""
    try:
        return action()
    except ValueProblem as error:
        raise KvplanError(error.at(Place(word, 1, 1, max(1, len(text)), text))) from None


def _quantity(name: str) -> Quantity:
    registry = load_registry()
    if name not in registry:
        fix = registry.nearest(name) or "kvplan list formulas names them"
        raise ValueProblem(f"unknown quantity '{name}'", "", fix)
    return registry[name]


def _axis(over: str) -> tuple[Quantity, Any]:
    """The axis and its points: every whole number where only those make sense, if not too many."""
    import numpy

    name, equals, limits = (part.strip() for part in over.partition("="))
    start_text, dots, end_text = (part.strip() for part in limits.partition(".."))
    if not (equals and dots and start_text and end_text):
        example = 'for instance --over "context=1 token..131072 token"'
        raise ValueProblem(f"'{over}' is not of the form name=from..to", "", example)
    quantity = _quantity(name)
    if quantity.constant is not None or quantity.per:
        raise ValueProblem(f"'{name}' cannot be varied", quantity.doc, "vary an input")
    start = parse_quantity(start_text, quantity.unit, name)
    end = parse_quantity(end_text, quantity.unit, name)
    if not start < end:
        raise ValueProblem("the range must rise", f"it goes from {start_text} to {end_text}")
    _check_limits(quantity, start, end)
    if quantity.whole and end - start < MAX_POINTS:
        return quantity, numpy.arange(start, end + 1, dtype=numpy.float64)
    points = numpy.linspace(start, end, MAX_POINTS)
    return quantity, numpy.unique(numpy.round(points)) if quantity.whole else points


def _check_limits(quantity: Quantity, start: float, end: float) -> None:
    low = (quantity.above is not None and start <= quantity.above) or (
        quantity.at_least is not None and start < quantity.at_least
    )
    if low or (quantity.at_most is not None and end > quantity.at_most):
        raise ValueProblem(f"'{quantity.name}' has no meaning over all of this range", quantity.doc)


def _column(name: str, numbers: Numbers, count: int) -> Any:
    import numpy

    quantity = _quantity(name)
    if quantity.per or not takes_arrays(load_registry(), {name}):
        why = "it takes the requests or layer groups one by one, or draws at random"
        raise ValueProblem(f"'{name}' cannot be swept", why, "give a table rows: with some points")
    with numpy.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = numpy.broadcast_to(numbers.value(name), (count,))
    if not numpy.isfinite(found).all():
        raise ValueProblem(f"'{name}' is not a finite number over all of this range")
    return found


def _holds(text: str, numbers: Numbers) -> Any:
    import numpy

    expression = parse_expression(text, OPS)
    _check_condition(expression)
    (axis,) = numbers.swept.values()
    found = expression.evaluate(lambda name: _column(name, numbers, len(axis)), OPS)
    return numpy.broadcast_to(found, axis.shape)


def _check_condition(expression: Expression) -> None:
    """A condition is one comparison, and its two sides have one unit."""
    if not isinstance(expression.tree, ast.Compare) or not is_elementwise(expression):
        raise ValueProblem(
            f"'{expression.text}' is not a condition that holds or fails at each point",
            "",
            'for instance --where "kv_per_sequence < kv_budget / 16"',
        )
    expression.evaluate(lambda name: Unit(_quantity(name).unit.exponents), OPS)


# What is printed


def summary(found: Sweep) -> dict[str, Any]:
    """First, last, least and most of each quantity, and where the condition holds, for scripts."""
    axis = found.axis
    made: dict[str, Any] = {
        "over": {
            "quantity": axis.name,
            "unit": axis.show.text,
            "from": _shown(axis, found.points[0]),
            "to": _shown(axis, found.points[-1]),
            "points": len(found.points),
        },
        "quantities": {name: _extremes(found, name, c) for name, c in found.columns.items()},
    }
    if found.condition:
        runs = _runs(found.holds)
        made["where"] = {
            "condition": found.condition,
            "points": int(found.holds.sum()),
            "ranges": [[_shown(axis, found.points[i]) for i in run] for run in runs],
        }
    return made


def _extremes(found: Sweep, name: str, column: Any) -> dict[str, Any]:
    quantity = load_registry()[name]
    places = {"first": 0, "last": -1, "least": int(column.argmin()), "most": int(column.argmax())}
    return {"unit": quantity.show.text} | {
        word: {"value": _shown(quantity, column[i]), "at": _shown(found.axis, found.points[i])}
        for word, i in places.items()
    }


def _shown(quantity: Quantity, value: Any) -> Any:
    return plain(quantity.show.from_base(plain(value)))


def _runs(holds: Any) -> list[tuple[int, int]]:
    """First and last index of each unbroken run of points where the condition holds."""
    import numpy

    edges = numpy.diff(numpy.concatenate(([0], holds.astype(numpy.int8), [0])))
    starts, ends = numpy.flatnonzero(edges == 1), numpy.flatnonzero(edges == -1) - 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def lines(found: Sweep) -> list[str]:
    """The summary as text."""
    from tabulate import tabulate

    made = summary(found)
    over = made["over"]
    unit = "" if over["unit"] == "1" else f" {over['unit']}"
    ends = _range([over["from"], over["to"]], unit)
    rows = [_row(name, part) for name, part in made["quantities"].items()]
    headers = ["quantity", "unit", "first", "last", "least", "at", "most", "at"]
    table = tabulate(rows, headers, tablefmt="plain", disable_numparse=True)
    text = [f"{over['points']:,} points of {over['quantity']}, {ends}"]
    text += ["", *(line.rstrip() for line in table.splitlines())] if rows else []
    return [*text, *_where_lines(made, unit)]


def _row(name: str, part: dict[str, Any]) -> list[str]:
    digits = load_registry()[name].digits
    words = ("first", "last", "least", "most")
    first, last, low, high = (show_number(part[word]["value"], digits) for word in words)
    low_at, high_at = (show_number(part[word]["at"]) for word in ("least", "most"))
    return [name, part["unit"], first, last, low, low_at, high, high_at]


def _range(ends: list[Any], unit: str) -> str:
    first, last = (show_number(end) for end in ends)
    return f"{first} to {last}{unit}" if first != last else f"{first}{unit}"


def _where_lines(made: dict[str, Any], unit: str) -> list[str]:
    if "where" not in made:
        return []
    where, total = made["where"], made["over"]["points"]
    ranges = [f"  {_range(ends, unit)}" for ends in where["ranges"]]
    hidden = len(ranges) - MAX_RANGES
    more = [f"  and {hidden:,} more ranges; --json has them all"] if hidden > 0 else []
    head = f"{where['condition']} holds at {where['points']:,} of {total:,} points"
    return ["", head + (":" if ranges else ""), *ranges[:MAX_RANGES], *more]
