"""Units: read from text, converted to base units, and computed with to check formulas."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from kvplan.errors import ValueProblem, suggest

BASE = ("B", "token", "s", "FLOP", "element", "usd", "W")
_SI = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
_TIME = {"min": 60, "h": 3600, "day": 86400}
# Which prefixes a base unit is written with: a kilotoken or a "GiFLOP" is nobody's unit.
_PREFIXES = {
    "B": [*_BINARY, "k", "M", "G", "T", "P", "E"],
    "FLOP": ["k", "M", "G", "T", "P", "E"],
    "s": ["n", "u", "m"],
    "W": ["m", "k", "M"],
    "token": [],
    "element": [],
    "usd": [],
}
MAX_LENGTH = 60
_PLAIN = {"1": Fraction(1), "x": Fraction(1), "%": Fraction(1, 100)}


@dataclass(frozen=True)
class Unit:
    """Exponents of the base units, the factor to them, and the text it is shown with.

    `spread` names what a value has one of each for ("layer_group", "request"); only the unit
    check uses it.
    """

    exponents: tuple[int, ...] = (0,) * len(BASE)
    factor: Fraction = Fraction(1)
    text: str = "1"
    spread: str | None = None

    __array_ufunc__ = None

    @property
    def dimension(self) -> str:
        """The base unit as text: what values are held in inside kvplan."""
        above = [_power(n, e) for n, e in zip(BASE, self.exponents, strict=True) if e > 0]
        below = [_power(n, -e) for n, e in zip(BASE, self.exponents, strict=True) if e < 0]
        return "/".join(["*".join(above) or "1", *below])

    @property
    def _words(self) -> str:
        return "a plain number" if self.dimension == "1" else self.dimension

    def same_dimension(self, other: Unit) -> bool:
        """Whether the two can be added."""
        return self.exponents == other.exponents

    def to_base(self, number: int | float | Fraction) -> int | float:
        """A number in this unit as a number in base units; an int when it is whole."""
        exact = Fraction(number) * self.factor
        return exact.numerator if exact.denominator == 1 else float(exact)

    def from_base(self, number: Any) -> Any:
        """A number (or array) in base units as one in this unit."""
        if self.factor == 1:
            return number
        if self.factor.numerator == 1:
            return number * self.factor.denominator
        return number / (
            self.factor.numerator if self.factor.denominator == 1 else float(self.factor)
        )

    def _combine(self, other: Any, sign: int) -> Unit:
        if not isinstance(other, Unit):
            return self
        exponents = tuple(
            a + sign * b for a, b in zip(self.exponents, other.exponents, strict=True)
        )
        return Unit(exponents, spread=_merge(self, other))

    def __mul__(self, other: Any) -> Unit:
        return self._combine(other, 1)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Unit:
        return self._combine(other, -1)

    def __rtruediv__(self, other: Any) -> Unit:
        return Unit(spread=self.spread)._combine(self, -1)

    def _like(self, other: Any, verb: str) -> Unit:
        right = other if isinstance(other, Unit) else Unit()
        if not self.same_dimension(right):
            raise ValueProblem(f"cannot {verb} {self._words} and {right._words}")
        return Unit(self.exponents, spread=_merge(self, right))

    def __add__(self, other: Any) -> Unit:
        return self._like(other, "add")

    __radd__ = __add__
    __sub__ = __add__
    __rsub__ = __add__

    def __neg__(self) -> Unit:
        return self

    def _compare(self, other: Any) -> Unit:
        return Condition(spread=self._like(other, "compare").spread)

    __lt__ = __le__ = __gt__ = __ge__ = _compare


class Condition(Unit):
    """The unit of a comparison: none, and not to be branched on."""

    def __bool__(self) -> bool:
        raise ValueProblem("a formula may not branch with `if`; use where(condition, a, b)")


def _merge(a: Unit, b: Unit) -> str | None:
    if a.spread and b.spread and a.spread != b.spread:
        raise ValueProblem(f"mixes values per {a.spread} with values per {b.spread}")
    return a.spread or b.spread


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


@lru_cache(maxsize=512)
def parse_unit(text: str) -> Unit:
    """A unit from text such as "GiB", "GB/s", "KiB/token", "TFLOP/s", "%".

    Raises ValueProblem when a part is unknown or means bits.
    """
    cleaned = text.strip()
    if not cleaned:
        raise ValueProblem("the unit is empty")
    if len(cleaned) > MAX_LENGTH:
        raise ValueProblem(f"the unit has more than {MAX_LENGTH} characters")
    result, sign = Unit(), 1
    for part in re.split(r"([*/·])", cleaned):
        if part in ("*", "·", "/"):
            sign = -1 if part == "/" else 1
            continue
        unit = _factor_of(part.strip(), cleaned)
        factor = result.factor * unit.factor if sign > 0 else result.factor / unit.factor
        result = replace(result._combine(unit, sign), factor=factor)
        sign = 1
    return replace(result, text=cleaned)


def _factor_of(part: str, whole: str) -> Unit:
    name, _, power = part.partition("^")
    exponent = int(power) if re.fullmatch(r"-?[1-9]", power) else 1 if not power else None
    if exponent is None:
        raise ValueProblem(f"'^{power}' in the unit '{whole}' is not a small whole power")
    factor, exponents = _simple(name, whole)
    return Unit(tuple(e * exponent for e in exponents), factor**exponent)


def _simple(name: str, whole: str) -> tuple[Fraction, tuple[int, ...]]:
    zero = Unit().exponents
    if name in _PLAIN:
        return _PLAIN[name], zero
    if name in _TIME:
        return Fraction(_TIME[name]), _exponents("s")
    for base in BASE:
        if not name.endswith(base):
            continue
        prefix = name[: -len(base)]
        if not prefix:
            return Fraction(1), _exponents(base)
        if prefix in _PREFIXES[base]:
            return _prefix(prefix), _exponents(base)
    raise _unknown(name, whole)


def _prefix(prefix: str) -> Fraction:
    if prefix in _BINARY:
        return Fraction(2) ** _BINARY[prefix]
    return Fraction(10) ** _SI[prefix]


def _exponents(base: str) -> tuple[int, ...]:
    return tuple(int(name == base) for name in BASE)


def _unknown(name: str, whole: str) -> ValueProblem:
    what = f"unknown unit '{name}'" + (f" in '{whole}'" if name != whole else "")
    if re.fullmatch(r"[KMGTP]i?b(ps)?|[kmgtp]bps|bit|bits", name):
        return ValueProblem(
            what, "kvplan counts bytes (B), not bits (b)", "divide by 8: 200 Gb/s is 25 GB/s"
        )
    if re.fullmatch(r"[kmgtp]ib", name, re.IGNORECASE):
        return ValueProblem(what, "", f"did you mean '{name[0].upper()}iB'?")
    if name in ("KB", "Kb", "kb", "mb", "gb", "K", "M", "G"):
        return ValueProblem(
            what,
            "1 GB is 10^9 B and 1 GiB is 2^30 B: say which is meant",
            "write kB, MB, GB (powers of ten) or KiB, MiB, GiB (powers of two)",
        )
    if name in ("FLOPS", "FLOPs", "TFLOPS", "TFLOPs", "GFLOPS", "PFLOPS"):
        return ValueProblem(what, "a rate needs its time", "write TFLOP/s")
    names = [p + b for b, prefixes in _PREFIXES.items() for p in ["", *prefixes]]
    names += [*_PLAIN, *_TIME]
    if not name.isascii() or len(name) > 20:
        return ValueProblem(what, "", "units are made of " + ", ".join(BASE))
    return ValueProblem(what, "", suggest(name, names) or "units are made of " + ", ".join(BASE))
