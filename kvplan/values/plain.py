"""Functions for derivations of claims: ordinary arithmetic that shares nothing with the ops."""

from __future__ import annotations

import math
from typing import Any


def _each(function: Any, values: Any) -> Any:
    """Applies a function to a number, or to every number of a series."""
    return [function(v) for v in values] if _is_series(values) else function(values)


def _is_series(values: Any) -> bool:
    return hasattr(values, "__len__")


class Series(list[Any]):
    """Numbers of all requests, with arithmetic request by request, in plain Python."""

    def _with(self, other: Any, function: Any) -> Series:
        if _is_series(other):
            return Series(function(a, b) for a, b in zip(self, other, strict=True))
        return Series(function(a, other) for a in self)

    def __add__(self, other: Any) -> Series:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Series:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Series:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Series:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Series:
        return self._with(other, lambda a, b: a / b)

    def __le__(self, other: Any) -> Series:  # type: ignore[override]
        return self._with(other, lambda a, b: a <= b)

    def __lt__(self, other: Any) -> Series:  # type: ignore[override]
        return self._with(other, lambda a, b: a < b)

    def __ge__(self, other: Any) -> Series:  # type: ignore[override]
        return self._with(other, lambda a, b: a >= b)

    def __gt__(self, other: Any) -> Series:  # type: ignore[override]
        return self._with(other, lambda a, b: a > b)


def _ceil(values: Any) -> Any:
    return Series(_each(math.ceil, values)) if _is_series(values) else math.ceil(values)


def _floor(values: Any) -> Any:
    return Series(_each(math.floor, values)) if _is_series(values) else math.floor(values)


def _running_sum(values: Any) -> Series:
    sums, so_far = Series(), 0
    for value in values:
        so_far += value
        sums.append(so_far)
    return sums


def _first(values: Any, number: Any) -> Series:
    if not 0 <= number <= len(values):
        raise ValueError(f"{number} of {len(values)}")
    return Series(values[: int(number)])


def _median(values: Any) -> Any:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _larger(a: Any, b: Any) -> Any:
    return Series(max(x, b) for x in a) if _is_series(a) else max(a, b)


def _smaller(a: Any, b: Any) -> Any:
    return Series(min(x, b) for x in a) if _is_series(a) else min(a, b)


# `count(x <= y)` counts the entries that hold.
PLAIN_FUNCTIONS: dict[str, Any] = {
    "ceil": _ceil,
    "floor": _floor,
    "sum": sum,
    "count": sum,
    "running_sum": _running_sum,
    "first": _first,
    "median": _median,
    "max": _larger,
    "min": _smaller,
    "abs": abs,
}
