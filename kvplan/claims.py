"""Claims as typed in, ClaimPlans out: the cell found, limits in base units, derivation parsed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kvplan import schema
from kvplan.axes import Axes
from kvplan.context import Context
from kvplan.errors import one_of, suggest
from kvplan.records import ClaimPlan, TablePlan, Wish
from kvplan.values.expression import Expression, parse_expression
from kvplan.values.plain import PLAIN_FUNCTIONS
from kvplan.values.show import parse_quantity
from kvplan.values.unit import Unit, parse_unit
from kvplan.yamltext import Path_


class Claims:
    """Makes plans of claims."""

    def __init__(self, context: Context, axes: Axes) -> None:
        self.context, self.axes = context, axes

    def claim(
        self,
        index: int,
        claim: schema.Claim,
        values: Mapping[str, Wish],
        tables: tuple[TablePlan, ...],
    ) -> ClaimPlan:
        path: Path_ = ("claims", index)
        place = self.context.document.place((*path, "id"))
        unit = Unit()
        if bool(claim.cell) == bool(claim.constant):
            self.context.fail(
                f"the claim '{claim.id}' needs 'cell' or 'constant', one of them", "", "", place
            )
        elif claim.cell:
            unit = self._claimed_unit(claim.cell, values, tables, (*path, "cell"))
        over = self._constant(claim, path) if claim.constant else {}
        limits = self._limits(claim, unit, path)
        derivation, derivation_unit = self._derivation(claim, unit, path)
        return ClaimPlan(
            claim.id,
            claim.says,
            place,
            claim.cell,
            unit,
            limits,
            derivation,
            derivation_unit,
            claim.constant,
            over,
            claim.holds,
            claim.because,
            claim.source,
        )

    def _claimed_unit(
        self, cell: str, values: Mapping[str, Wish], tables: tuple[TablePlan, ...], path: Path_
    ) -> Unit:
        name, _, rest = cell.partition("[")
        known = {t.name: t for t in tables}
        place = self.context.place(*path)
        if not rest:
            if name not in values:
                self.context.fail(
                    f"no value '{name}'",
                    one_of(values),
                    suggest(name, [*values, *known]) or "a table's cell is table[row].column",
                    place,
                )
                return Unit()
            return values[name].unit or Unit()
        column = cell.rpartition("].")[2]
        if name not in known:
            self.context.fail(f"no table '{name}'", one_of(known), suggest(name, known), place)
            return Unit()
        wishes = {w.key: w for w in known[name].columns}
        if column not in wishes:
            self.context.fail(
                f"no column '{column}' in the table '{name}'",
                one_of(wishes),
                suggest(column, wishes),
                place,
            )
            return Unit()
        return wishes[column].unit or Unit()

    def _limits(self, claim: schema.Claim, unit: Unit, path: Path_) -> dict[str, float]:
        found: dict[str, float] = {}
        for key in ("expect", "within", "at_least", "at_most", "more_than", "less_than"):
            raw = getattr(claim, key)
            if raw is None:
                continue
            place = self.context.document.place((*path, key))
            expected = unit
            if key == "within" and isinstance(raw, str) and raw.strip().endswith("%"):
                expected, key = Unit(), "within_share"
            if key == "within" and unit.text == "%":
                key = "within"
            value = self.context.attempt(
                place,
                partial(parse_quantity, raw, expected, key),
            )
            if value is not None:
                found[key] = value
        bounds = {"at_least", "at_most", "more_than", "less_than"} & set(found)
        if claim.cell and not bounds and "expect" not in found and claim.expect is None:
            self.context.fail(
                f"the claim '{claim.id}' says no number",
                "a claim can be checked only against one",
                "expect:, at_least:, at_most:, more_than: or less_than:",
                self.context.document.place((*path, "id")),
            )
        return found

    def _derivation(
        self, claim: schema.Claim, unit: Unit, path: Path_
    ) -> tuple[Expression | None, Unit]:
        place = self.context.document.place((*path, "derivation"))
        if claim.derivation is None:
            if claim.cell:
                self.context.fail(
                    f"the claim '{claim.id}' has no derivation",
                    "a claim is checked by arithmetic that does not use the formula it checks",
                    'derivation: "2 * 80 * 8 * 128 * 2"',
                    self.context.document.place((*path, "id")),
                )
            return None, unit
        expression = self.context.attempt(
            place, lambda: parse_expression(claim.derivation or "", PLAIN_FUNCTIONS)
        )
        for name in expression.names if expression else ():
            if name not in self.context.registry or not (
                self.context.registry[name].is_input or name in self.context.spec.uses
            ):
                inputs = [n for n, q in self.context.registry.quantities.items() if q.is_input]
                self.context.fail(
                    f"'{name}' is not an input",
                    "a derivation may use literals and inputs only, "
                    "so that a wrong formula cannot confirm itself",
                    suggest(name, inputs),
                    place,
                )
        shown = (
            self.context.attempt(
                self.context.document.place((*path, "unit")), lambda: parse_unit(claim.unit)
            )
            if claim.unit
            else unit
        )
        if shown and not shown.same_dimension(unit):
            self.context.fail(
                f"the cell is in {unit.dimension}, the derivation in {shown.dimension}",
                "",
                "",
                self.context.document.place((*path, "unit")),
            )
        return expression, shown or unit

    def _constant(
        self, claim: schema.Claim, path: Path_
    ) -> dict[str, tuple[float, float, int, str]]:
        name = claim.constant or ""
        if name not in self.context.registry:
            self.context.fail(
                f"unknown quantity '{name}'",
                "",
                self.context.registry.nearest(name),
                self.context.document.place((*path, "constant")),
            )
        if not claim.over:
            self.context.fail(
                "'constant' needs 'over', the inputs to vary",
                "",
                "over: {prefix: {from: 1 token, to: 1e6 token, points: 1000}}",
                self.context.document.place((*path, "id")),
            )
        found = {}
        for axis, steps in (claim.over or {}).items():
            where = (*path, "over", axis)
            if axis not in self.context.registry:
                self.context.fail(
                    f"unknown quantity '{axis}'",
                    "",
                    self.context.registry.nearest(axis),
                    self.context.document.place(where, key=True),
                )
                continue
            bounds = self.axes.bounds(axis, steps, where)
            if bounds:
                found[axis] = bounds
        return found
