"""A formula in symbols and the same formula in numbers, built by running it on pairs of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.values.show import show_number

_SUM, _PRODUCT, _ATOM = 1, 2, 9


@dataclass(frozen=True)
class Symbolic:
    """Text of an expression twice over: with symbols, and with the numbers put in.

    Operators keep the author's order of factors; nothing is simplified.
    """

    symbols: str
    numbers: str
    precedence: int = _ATOM

    __array_ufunc__ = None

    def __add__(self, other: Any) -> Symbolic:
        return _join(self, other, " + ", _SUM)

    def __radd__(self, other: Any) -> Symbolic:
        return _join(other, self, " + ", _SUM)

    def __sub__(self, other: Any) -> Symbolic:
        return _join(self, other, " − ", _SUM, tight=True)

    def __rsub__(self, other: Any) -> Symbolic:
        return _join(other, self, " − ", _SUM, tight=True)

    def __mul__(self, other: Any) -> Symbolic:
        return _join(self, other, " · ", _PRODUCT)

    def __rmul__(self, other: Any) -> Symbolic:
        return _join(other, self, " · ", _PRODUCT)

    def __truediv__(self, other: Any) -> Symbolic:
        return _join(self, other, " / ", _PRODUCT, tight=True)

    def __rtruediv__(self, other: Any) -> Symbolic:
        return _join(other, self, " / ", _PRODUCT, tight=True)

    def __neg__(self) -> Symbolic:
        return _join(0, self, " − ", _SUM, tight=True)

    def __lt__(self, other: Any) -> Symbolic:
        return _join(self, other, " < ", 0)

    def __le__(self, other: Any) -> Symbolic:
        return _join(self, other, " ≤ ", 0)

    def __gt__(self, other: Any) -> Symbolic:
        return _join(self, other, " > ", 0)

    def __ge__(self, other: Any) -> Symbolic:
        return _join(self, other, " ≥ ", 0)

    def __bool__(self) -> bool:
        raise TypeError("a formula may not branch with `if`; use where(condition, a, b)")


def leaf(symbol: str, value: Any) -> Symbolic:
    """A named value: its symbol, and its number (long series are named, not listed)."""
    return Symbolic(symbol, numbers_of(value))


def numbers_of(value: Any) -> str:
    """A value inside a formula in numbers."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "(" + ", ".join(numbers_of(item) for item in value) + ")"
    if hasattr(value, "__len__"):
        if len(value) <= 4:
            return "[" + ", ".join(show_number(item) for item in value) + "]"
        return f"[{show_number(value[0])}, …, {show_number(value[-1])}]"
    number = show_number(value)
    return f"({number})" if number.startswith("-") else number


def call(pattern: str, numbers: str, arguments: tuple[Any, ...]) -> Symbolic:
    """An op in text: {0}, {1}, ... of a pattern replaced, once by symbols, once by numbers."""
    parts = [_of(argument) for argument in arguments]
    return Symbolic(
        pattern.format(*(p.symbols for p in parts)), numbers.format(*(p.numbers for p in parts))
    )


def _of(value: Any) -> Symbolic:
    if isinstance(value, Symbolic):
        return value
    text = numbers_of(value)
    return Symbolic(text, text)


def _join(left: Any, right: Any, sign: str, precedence: int, tight: bool = False) -> Symbolic:
    a, b = _of(left), _of(right)
    open_left = a.precedence < precedence
    open_right = b.precedence < precedence or (tight and b.precedence == precedence)

    def both(x: str, y: str) -> str:
        return (f"({x})" if open_left else x) + sign + (f"({y})" if open_right else y)

    return Symbolic(both(a.symbols, b.symbols), both(a.numbers, b.numbers), precedence)
