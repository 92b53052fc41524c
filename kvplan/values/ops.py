"""The functions a formula may call: each has a value, a text pattern and a unit rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kvplan.errors import ValueProblem
from kvplan.values.symbolic import Symbolic, call
from kvplan.values.unit import Unit

UnitRule = Callable[..., Unit]


@dataclass(frozen=True)
class Op:
    """A named function with three readings.

    `scalar_only` ops cannot run on swept axes; `elementwise` ones have one result for each number,
    where the others take all of a series together.
    """

    name: str
    function: Callable[..., Any]
    pattern: str
    numbers: str
    unit_rule: UnitRule
    doc: str
    scalar_only: bool
    elementwise: bool

    def __call__(self, *arguments: Any) -> Any:
        if any(isinstance(argument, Unit) for argument in arguments):
            return self.unit_rule(*(a if isinstance(a, Unit) else Unit() for a in arguments))
        if any(isinstance(argument, Symbolic) for argument in arguments):
            return call(self.pattern, self.numbers, arguments)
        return self.function(*arguments)


OPS: dict[str, Op] = {}


def op(
    pattern: str,
    unit: UnitRule,
    scalar_only: bool = False,
    numbers: str = "",
    elementwise: bool = False,
) -> Callable[[Callable[..., Any]], Op]:
    """Registers a function as an op; `numbers` is the pattern with numbers, where it differs."""

    def register(function: Callable[..., Any]) -> Op:
        made = Op(
            function.__name__,
            function,
            pattern,
            numbers or pattern,
            unit,
            function.__doc__ or "",
            scalar_only,
            elementwise,
        )
        OPS[made.name] = made
        return made

    return register


def _same(*units: Unit) -> Unit:
    first = units[0]
    for other in units[1:]:
        first = first + other
    return first


def _collapse(*units: Unit) -> Unit:
    """The unit of a sum over groups or requests: the values' own, no longer one of each."""
    return replace(units[0], spread=None)


def _ratio(a: Unit, b: Unit) -> Unit:
    return a / b


def _count(*units: Unit) -> Unit:
    return Unit()


def _count_against(values: Unit, limit: Unit) -> Unit:
    """A count of values held against a limit, which is of their unit."""
    _same(values, limit)
    return Unit()


def _first_of(values: Unit, number: Unit) -> Unit:
    """A sum of so many values: the number of them has no unit."""
    _same(number, Unit())
    return _collapse(values)


def _where(condition: Unit, a: Unit, b: Unit) -> Unit:
    both = a + b
    return replace(both, spread=both.spread or condition.spread)


def is_array(value: Any) -> bool:
    """Whether a value is a NumPy array, asked without importing NumPy."""
    return type(value).__module__ == "numpy" and getattr(value, "ndim", 0) > 0


@op("⌈{0} / {1}⌉", _ratio, elementwise=True)
def ceil_div(a: Any, b: Any) -> Any:
    """The quotient rounded up to a whole number; exact for whole numbers."""
    return -(-a // b)


@op("⌊{0} / {1}⌋", _ratio, elementwise=True)
def floor_div(a: Any, b: Any) -> Any:
    """The quotient rounded down to a whole number; exact for whole numbers."""
    quotient = a // b
    return int(quotient) if isinstance(quotient, float) else quotient


@op("min({0}, {1})", _same, elementwise=True)
def minimum(a: Any, b: Any) -> Any:
    """The smaller of two values, element by element for arrays."""
    if is_array(a) or is_array(b):
        import numpy

        return numpy.minimum(a, b)
    return a if a <= b else b


@op("max({0}, {1})", _same, elementwise=True)
def maximum(a: Any, b: Any) -> Any:
    """The larger of two values, element by element for arrays."""
    if is_array(a) or is_array(b):
        import numpy

        return numpy.maximum(a, b)
    return a if a >= b else b


@op("[{0} ? {1} : {2}]", _where, elementwise=True)
def where(condition: Any, a: Any, b: Any) -> Any:
    """The first value where the condition holds, else the second."""
    if is_array(condition):
        import numpy

        return numpy.where(condition, a, b)
    return a if condition else b


@op("Σ {0}", _collapse, numbers="{0}")
def total(values: Any) -> Any:
    """The sum over the layer groups of a model, or over all requests of a workload."""
    if is_array(values) and not isinstance(values, tuple):
        return _whole(values.sum())
    return sum(values)


@op("#{0}", _count)
def count(values: Any) -> int:
    """How many values there are."""
    return len(values)


@op("fit({0} → {1})", _count_against, scalar_only=True)
def count_fitting(sizes: Any, budget: Any) -> int:
    """How many requests, taken in order of arrival, fit before the first that does not."""
    import numpy

    return int(numpy.searchsorted(numpy.cumsum(sizes), budget, side="right"))


@op("Σ first {1} of {0}", _first_of, scalar_only=True)
def sum_first(values: Any, number: Any) -> Any:
    """The sum of the first `number` values, in order of arrival."""
    if not 0 <= number <= len(values) or number != int(number):
        raise ValueProblem(
            f"the first {number:,} requests are asked for, of {len(values):,}",
            "a whole number of them can be, up to those of the workload",
            "give a workload of as many requests",
        )
    return _whole(values[: int(number)].sum())


@op("share({0} > {1})", _count_against, scalar_only=True)
def share_above(values: Any, limit: Any) -> float:
    """The fraction of the values that are larger than the limit."""
    return float((values > limit).mean())


@op("{0} ≤ {1}", _same, scalar_only=True)
def keep_at_most(values: Any, limit: Any) -> Any:
    """The values that are not larger than the limit, in their order."""
    return values[values <= limit]


def _whole(number: Any) -> Any:
    value = number.item()
    return int(value) if float(value).is_integer() else value


def require_small(number: Any, most: int, what: str) -> int:
    """A repetition count within its limit, so that no input runs without end."""
    if not 0 <= number <= most:
        raise ValueProblem(f"{what} is {number:,}; at most {most:,} are computed")
    return int(number)
