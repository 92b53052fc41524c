"""The rows of a table: a product of axes, or named cases, each with what is given there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from kvplan import schema
from kvplan.context import Context
from kvplan.errors import ValueProblem
from kvplan.records import Binding
from kvplan.values.show import byte_prefix, parse_quantity, plain, show_number
from kvplan.yamltext import Path_

MAX_CELLS = 100_000
MAX_LABEL = 120
Row = tuple[str, str, Binding]
Point = tuple[Any, str, Path_]


class Axes:
    """Makes the rows of tables and the ranges that claims sweep over."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def rows(self, name: str, table: schema.Table, base: Binding, path: Path_) -> Iterator[Row]:
        """The rows of a table: address, label and binding."""
        if (table.rows is None) == (table.cases is None):
            self.context.fail(
                f"the table '{name}' needs 'rows' or 'cases', and has "
                + ("neither" if table.rows is None else "both"),
                "rows: the product of axes; cases: named variants",
                "",
                self.context.place(*path, key=True),
            )
            return iter(())
        if table.rows is not None:
            return self._product(table, base, path)
        return self._cases(table, base, path)

    def _cases(self, table: schema.Table, base: Binding, path: Path_) -> Iterator[Row]:
        cases = table.cases or {}
        if not cases:
            self.context.fail(
                "'cases' is empty",
                "a table without rows says nothing",
                "name at least one",
                self.context.place(*path, "cases"),
            )
        if not self._few_enough([len(cases)], table, (*path, "cases")):
            return
        for label, overrides in cases.items():
            if not 0 < len(label) <= MAX_LABEL or not label.isprintable():
                self.context.fail(
                    f"a case is named in one line of 1 to {MAX_LABEL} characters",
                    "its name is printed in the table and stands in addresses",
                    "",
                    self.context.place(*path, "cases", label, key=True),
                )
            binding = self.context.binder.extend(base, overrides or {}, (*path, "cases", label))
            labels = {**binding.labels, "case": label}
            yield _quoted(label), label, replace(binding, labels=labels)

    def _product(self, table: schema.Table, base: Binding, path: Path_) -> Iterator[Row]:
        where: Path_ = (*path, "rows")
        # Counted before they are made, which takes time where they are many.
        if not self._few_enough([_size(raw) for raw in (table.rows or {}).values()], table, where):
            return
        axes = {
            axis: self._axis(axis, raw, (*path, "rows", axis))
            for axis, raw in (table.rows or {}).items()
        }
        if not axes:
            self.context.fail(
                "'rows' has no axis",
                "a table without rows says nothing",
                "rows: {page: [16 token]}",
                self.context.place(*where),
            )
        for points in product(*axes.values()):
            overrides = {axis: raw for axis, (raw, _, _) in zip(axes, points, strict=True)}
            places = {axis: place for axis, (_, _, place) in zip(axes, points, strict=True)}
            texts = [text for _, text, _ in points]
            address = ", ".join(f"{a}={_quoted(t)}" for a, t in zip(axes, texts, strict=True))
            binding = self.context.binder.extend_axes(base, overrides, places)
            yield address, ", ".join(texts), binding

    def _few_enough(self, sizes: list[int], table: schema.Table, path: Path_) -> bool:
        count = math.prod(sizes) * len(table.columns)
        if count > MAX_CELLS:
            shown = " x ".join(f"{size:,}" for size in sizes)
            self.context.fail(
                f"the table would have {count:,} cells",
                f"rows {shown}, columns {len(table.columns)}; the limit is {MAX_CELLS:,} cells",
                "use fewer points on an axis",
                self.context.place(*path, key=True),
            )
        return count <= MAX_CELLS

    def _axis(self, axis: str, raw: object, path: Path_) -> list[tuple[Any, str, Path_]]:
        """The points of an axis: what was written, its text in addresses, where it stands."""
        if isinstance(raw, dict) and "values" in raw and set(raw) <= {"values", "unit"}:
            unit = str(raw.get("unit", "1"))
            items = raw["values"] if isinstance(raw["values"], list) else []
            raw = [f"{item} {unit}" for item in items]
            path = (*path, "values")
        elif isinstance(raw, dict):
            return self._stepped(axis, raw, path)
        if not isinstance(raw, list):
            self.context.fail(
                f"the axis '{axis}' must be a list",
                "",
                f"{axis}: [a, b]",
                self.context.place(*path),
            )
            return []
        if not raw:
            self.context.fail(
                f"the axis '{axis}' is empty",
                "a table without rows says nothing",
                "give it at least one point",
                self.context.place(*path),
            )
        points = [(item, self._point(axis, item), (*path, i)) for i, item in enumerate(raw)]
        self._distinct(axis, points)
        return points

    def _distinct(self, axis: str, points: list[Point]) -> None:
        """Each point once, and bytes in powers of two or of ten, not both."""
        seen: set[str] = set()
        kinds: dict[str, str] = {}
        for raw, text, path in points:
            if text in seen:
                self.context.fail(
                    f"the axis '{axis}' has the point {text} twice",
                    "its cells would share one address",
                    "remove one",
                    self.context.place(*path),
                )
            seen.add(text)
            kind = byte_prefix(raw)
            other = {"binary": "decimal", "decimal": "binary"}.get(kind, "")
            if other and other in kinds:
                self.context.fail(
                    f"the axis '{axis}' mixes '{kinds[other]}' and '{raw}'",
                    "1 GB is 10^9 B and 1 GiB is 2^30 B, 7 % more",
                    "write all points in one of them",
                    self.context.place(*path),
                )
                return
            kinds.setdefault(kind, str(raw))

    def _point(self, axis: str, raw: object) -> str:
        if axis in self.context.registry:
            quantity = self.context.registry[axis]
            try:
                base = parse_quantity(raw, quantity.unit, axis)
            except ValueProblem:
                return str(raw)
            return show_number(quantity.show.from_base(base)).replace(",", "")
        if isinstance(raw, dict):
            return str(raw.get("title", raw.get("use", "inline")))
        return str(raw)

    def _stepped(self, axis: str, raw: dict[str, Any], path: Path_) -> list[tuple[Any, str, Path_]]:
        if set(raw) - {"from", "to", "points", "spacing"} or axis not in self.context.registry:
            self.context.fail(
                f"the axis '{axis}' cannot be read",
                "",
                "a list, or {from: .., to: .., points: ..}",
                self.context.place(*path),
            )
            return []
        try:
            steps = schema.Steps.model_validate(raw)
        except ValueError:
            self.context.fail(
                f"the axis '{axis}' needs from, to and points (2 to 1,000,000)",
                "",
                "{from: 1 token, to: 4096 token, points: 13}",
                self.context.place(*path),
            )
            return []
        bounds = self.bounds(axis, steps, path)
        if bounds is None:
            return []
        quantity, found = self.context.registry[axis], []
        for value in step_points(*bounds):
            number = round(value) if quantity.whole else value
            text = f"{number!r} {quantity.unit.dimension}"
            found.append(
                (text, show_number(quantity.show.from_base(number)).replace(",", ""), path)
            )
        texts = [text for _, text, _ in found]
        again = [text for text, after in pairwise(texts) if text == after]
        if again:
            self.context.fail(
                f"the axis '{axis}' comes to the point {again[0]} more than once",
                "points are whole where the quantity is, and are told apart by six figures",
                f"use at most {len(set(texts)):,} points, or a wider range",
                self.context.place(*path),
            )
            return []
        return found

    def bounds(
        self, axis: str, steps: schema.Steps, path: Path_
    ) -> tuple[float, float, int, str] | None:
        unit = self.context.registry[axis].unit
        place = self.context.place(*path)
        start = self.context.attempt(place, lambda: parse_quantity(steps.start, unit, axis))
        end = self.context.attempt(place, lambda: parse_quantity(steps.end, unit, axis))
        if start is None or end is None:
            return None
        if not start < end or (steps.spacing == "log" and start <= 0):
            self.context.fail(
                f"the axis '{axis}' must rise from 'from' to 'to'",
                "",
                "log spacing starts above zero",
                place,
            )
            return None
        return start, end, steps.points, steps.spacing


def _size(raw: object) -> int:
    """How many points an axis asks for; 1 where it asks for none properly."""
    if isinstance(raw, dict):
        raw = raw.get("values", raw.get("points"))
    if isinstance(raw, list):
        return len(raw)
    return raw if isinstance(raw, int) and raw > 0 else 1


def step_points(start: float, end: float, points: int, spacing: str) -> list[float]:
    """Evenly spaced points from start to end, both included."""
    if spacing == "log":
        low, high = math.log(start), math.log(end)
        inner = [math.exp(low + (high - low) * i / (points - 1)) for i in range(1, points - 1)]
        return [start, *inner, end]
    return [start + (end - start) * i / (points - 1) for i in range(points)]


def _quoted(text: str) -> str:
    plain_text = str(plain(text))
    return f'"{plain_text}"' if any(c in plain_text for c in ',]="[') else plain_text
