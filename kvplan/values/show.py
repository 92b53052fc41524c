"""Numbers with units, from text and to text: the two edges where units are converted."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

from kvplan.errors import ValueProblem
from kvplan.values.unit import Unit, parse_unit

# Commas stand between thousands only: "172,5" is a decimal comma somewhere, and would be 1725.
_WHOLE = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])|[0-9]+(?:_[0-9]+)*)"
_NUMBER = rf"[-+]?(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
# Counts read off a model card are plain numbers there and here.
_BARE = ("1", "element", "element/token")
LARGEST = 10**100
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z%].*|1)?", re.DOTALL)


def parse_quantity(raw: object, expected: Unit, name: str) -> int | float:
    """A YAML value such as "80 GiB" as a number in base units.

    Raises ValueProblem when the unit is missing, of another dimension, or the number not finite.
    """
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        shown = (
            "nothing"
            if raw is None
            else "yes/no"
            if isinstance(raw, bool)
            else type(raw).__name__.replace("dict", "a mapping").replace("list", "a list")
        )
        raise ValueProblem(f"'{name}' needs a quantity, not {shown}", "", _example(expected))
    number, unit_text = _split(raw, name)
    if abs(number) > LARGEST:
        raise ValueProblem(f"'{str(raw)[:60]}' is out of the range of numbers kvplan can hold")
    unit = parse_unit(unit_text) if unit_text else None
    if unit is None and expected.dimension not in _BARE:
        raise ValueProblem(
            f"'{name}' needs a unit",
            f"it is a quantity in {expected.dimension}",
            _example(expected, str(raw)),
        )
    if unit is None:
        return Unit().to_base(number)
    if not unit.same_dimension(expected):
        raise ValueProblem(
            f"'{name}' is in {expected.dimension}, but '{raw}' is in {unit.dimension}",
            "",
            _example(expected),
        )
    return unit.to_base(number)


def _split(raw: str | int | float, name: str) -> tuple[Fraction, str]:
    if not isinstance(raw, str):
        if not math.isfinite(raw):
            raise ValueProblem(f"'{name}' is not a finite number")
        return Fraction(raw), ""
    match = _QUANTITY.fullmatch(raw)
    if not match:
        raise ValueProblem(
            f"'{raw[:60]}' is not a number with a unit", "", 'write for instance "80 GiB"'
        )
    digits = match[1].replace(",", "").replace("_", "")
    mantissa, _, exponent = digits.lower().partition("e")
    if exponent and abs(int(exponent)) > 300:
        raise ValueProblem(f"'{raw[:60]}' is out of the range of numbers kvplan can hold")
    if len(mantissa) > 40:
        raise ValueProblem(f"'{raw[:60]}' has more than 40 digits")
    return Fraction(digits), (match[2] or "").strip()


def _example(unit: Unit, raw: str = "") -> str:
    samples = {"B": "GiB", "B/s": "GB/s", "FLOP/s": "TFLOP/s", "token": "token", "s": "ms"}
    shown = raw if re.fullmatch(_NUMBER, raw) else "80"
    if unit.dimension in _BARE:
        return "write a plain number"
    return f'write for instance "{shown} {samples.get(unit.dimension, unit.dimension)}"'


def byte_prefix(raw: object) -> str:
    """Whether bytes were written with powers of two ("GiB") or of ten ("GB"); else nothing."""
    match = re.search(r"[kKMGTP](i?)B\s*$", raw) if isinstance(raw, str) else None
    return ("binary" if match[1] else "decimal") if match else ""


def plain(value: Any) -> Any:
    """A number as JSON should hold it: whole numbers as int, NumPy scalars as Python's own."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return int(number)
    return number


def show_number(value: Any, digits: int | None = None) -> str:
    """A number for people: thousands separated, `digits` decimals or about six figures."""
    number = plain(value)
    if not isinstance(number, (int, float)):
        return str(number)
    if digits is None:
        return _significant(number)
    text = f"{number:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def _significant(number: int | float) -> str:
    if isinstance(number, int) and abs(number) < 10**15:
        return f"{number:,}"
    size = abs(number)
    if size != 0 and (size >= 1e15 or size < 1e-4):
        return f"{number:.6g}"
    decimals = max(0, 5 - math.floor(math.log10(size))) if size else 0
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_quantity(value: Any, unit: Unit | None, digits: int | None = None) -> str:
    """A value in base units as text in `unit`: "9.69 GiB", "0.54 %", "6.0x"; text as it is."""
    if isinstance(value, str) or unit is None:
        return str(value)
    number = show_number(unit.from_base(value), digits)
    if unit.text == "1":
        return number
    return number + ("x" if unit.text == "x" else f" {unit.text}")
