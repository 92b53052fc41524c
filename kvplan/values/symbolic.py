"""A formula in symbols and the same formula in numbers, built by running it on pairs of both."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kvplan.values.show import plain

_COMPARISON, _SUM, _PRODUCT, _ATOM = 0, 1, 2, 9
# Enough that a result worked out from what is printed agrees with what is printed.
FIGURES = 9
_PLACEHOLDER = re.compile(r"\{(\d)\}")


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
        return _join(self, other, " < ", _COMPARISON)

    def __le__(self, other: Any) -> Symbolic:
        return _join(self, other, " ≤ ", _COMPARISON)

    def __gt__(self, other: Any) -> Symbolic:
        return _join(self, other, " > ", _COMPARISON)

    def __ge__(self, other: Any) -> Symbolic:
        return _join(self, other, " ≥ ", _COMPARISON)

    def __bool__(self) -> bool:
        raise TypeError("a formula may not branch with `if`; use where(condition, a, b)")


def leaf(symbol: str, value: Any) -> Symbolic:
    """A named value: its symbol, and its number (long series are named, not listed)."""
    return Symbolic(symbol, numbers_of(value))


def numbers_of(value: Any) -> str:
    """A value inside a formula in numbers: whole numbers exactly, others to nine figures."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "(" + ", ".join(numbers_of(item) for item in value) + ")"
    if hasattr(value, "__len__"):
        if len(value) <= 4:
            return "[" + ", ".join(numbers_of(item) for item in value) + "]"
        return f"[{numbers_of(value[0])}, …, {numbers_of(value[-1])}]"
    text = figures(value)
    return f"({text})" if text.startswith("-") else text


def figures(value: Any) -> str:
    """A number of a derivation, where a rounded one could contradict its own formula."""
    number = plain(value)
    if not isinstance(number, (int, float)):
        return str(number)
    if isinstance(number, int):
        return f"{number:,}" if abs(number) < 10**18 else f"{number:.{FIGURES}g}"
    size = abs(number)
    if size != 0 and (size >= 1e15 or size < 1e-4):
        return f"{number:.{FIGURES}g}"
    decimals = max(0, FIGURES - 1 - math.floor(math.log10(size))) if size else 0
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def call(pattern: str, numbers: str, arguments: tuple[Any, ...]) -> Symbolic:
    """An op in text: {0}, {1}, ... of a pattern replaced, once by symbols, once by numbers.

    An argument is put in brackets where the pattern would bind tighter than its own sign does.
    """
    parts = [_of(argument) for argument in arguments]
    written = parts[0].numbers
    if numbers == "{0}" and written.startswith("["):
        numbers = pattern  # a series is not written out as a sum
    elif numbers == "{0}" and written.startswith("(") and " + " in written:
        numbers = written[1:-1]
    return Symbolic(
        _filled(pattern, [(p.symbols, p.precedence) for p in parts]),
        _filled(numbers, [(p.numbers, p.precedence) for p in parts]),
        _pattern(pattern)[1],
    )


def _filled(pattern: str, parts: list[tuple[str, int]]) -> str:
    needed = _pattern(pattern)[0]

    def put(match: re.Match[str]) -> str:
        text, precedence = parts[int(match[1])]
        return text if precedence >= needed[match.start()] else f"({text})"

    return _PLACEHOLDER.sub(put, pattern)


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> tuple[dict[int, int], int]:
    """What each place of a pattern needs an argument to bind, and how the whole binds."""
    needed = {}
    for match in _PLACEHOLDER.finditer(pattern):
        before, after = pattern[: match.start()], pattern[match.end() :]
        if before.endswith(("/ ", "#")):
            needed[match.start()] = _PRODUCT + 1
        elif before.endswith(("Σ ", " of ")) or after.startswith(" /"):
            needed[match.start()] = _PRODUCT
        else:
            needed[match.start()] = _COMPARISON
    if pattern[0] in "⌈⌊[#" or re.match(r"\w+\(", pattern) or pattern == "{0}":
        return needed, _ATOM
    return needed, _SUM if pattern.startswith("Σ") else _COMPARISON


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
