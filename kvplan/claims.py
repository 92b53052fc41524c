"""Claims as typed in, ClaimPlans out: the cell found, limits in base units, derivation parsed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from kvplan import schema
from kvplan.address import parse_address
from kvplan.axes import Axes
from kvplan.context import Context
from kvplan.errors import one_of, suggest
from kvplan.records import ClaimPlan, TablePlan, Wish
from kvplan.values.expression import Expression, parse_expression
from kvplan.values.plain import PLAIN_FUNCTIONS
from kvplan.values.show import parse_quantity
from kvplan.values.unit import Unit, parse_unit
from kvplan.yamltext import Path_

MAX_POINTS = 1_000_000


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
        unit: Unit | None = Unit()
        if bool(claim.cell) == bool(claim.constant):
            self.context.fail(
                f"the claim '{claim.id}' needs 'cell' or 'constant', one of them", "", "", place
            )
        elif claim.cell:
            wish = self._claimed_wish(claim.cell, values, tables, (*path, "cell"))
            unit = wish.unit if wish else None
        over = self._constant(claim, path) if claim.constant else {}
        limits = self._limits(claim, unit, path)
        derivation, derivation_unit = self._derivation(claim, unit, path)
        unit = unit or Unit()
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

    def _claimed_wish(
        self, cell: str, values: Mapping[str, Wish], tables: tuple[TablePlan, ...], path: Path_
    ) -> Wish | None:
        """The value or column a claim is about; its row is looked up among the results."""
        place = self.context.place(*path)
        address = self.context.attempt(place, lambda: parse_address(cell))
        if address is None:
            return None
        known = {t.name: {w.key: w for w in t.columns} for t in tables}
        if not address.column:
            wishes, what, hint = dict(values), "value", [*values, *known]
        elif address.name not in known:
            self.context.fail(
                f"no table '{address.name}'", one_of(known), suggest(address.name, known), place
            )
            return None
        else:
            wishes = known[address.name]
            what, hint = f"column in the table '{address.name}'", [*wishes]
        name = address.column or address.name
        if name not in wishes:
            self.context.fail(
                f"no {what} '{name}'"
                if what == "value"
                else f"no column '{name}' in the table '{address.name}'",
                one_of(wishes),
                suggest(name, hint) or ("a table's cell is table[row].column" * (name in known)),
                place,
            )
            return None
        if wishes[name].is_text:
            self.context.fail(f"'{cell}' is text; a claim needs a number", "", "", place)
            return None
        return None if wishes[name].is_broken else wishes[name]

    def _limits(self, claim: schema.Claim, unit: Unit | None, path: Path_) -> dict[str, float]:
        found: dict[str, float] = {}
        if unit is None:
            return found
        for key in ("expect", "within", "at_least", "at_most", "more_than", "less_than"):
            raw = getattr(claim, key)
            if raw is None:
                continue
            place = self.context.document.place((*path, key))
            expected = unit
            percent = isinstance(raw, str) and raw.strip().endswith("%")
            if key == "within" and percent and unit.text != "%":
                # A share of what is expected; where the cell is in % itself, points are meant.
                expected, key = Unit(), "within_share"
            value = self.context.attempt(
                place,
                partial(parse_quantity, raw, expected, key),
            )
            if value is not None:
                found[key] = value
        bounds = (claim.expect, claim.at_least, claim.at_most, claim.more_than, claim.less_than)
        if claim.cell and all(bound is None for bound in bounds):
            self.context.fail(
                f"the claim '{claim.id}' says no number",
                "a claim can be checked only against one",
                "expect:, at_least:, at_most:, more_than: or less_than:",
                self.context.document.place((*path, "id")),
            )
        return found

    def _derivation(
        self, claim: schema.Claim, unit: Unit | None, path: Path_
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
            return None, unit or Unit()
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
        if shown and unit and not shown.same_dimension(unit):
            self.context.fail(
                f"the cell is in {unit.dimension}, the derivation in {shown.dimension}",
                "",
                "",
                self.context.document.place((*path, "unit")),
            )
        return expression, shown or unit or Unit()

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
            if self.context.registry[axis].per or self.context.registry[axis].text:
                self.context.fail(
                    f"'{axis}' cannot be varied by a claim",
                    "it has one value for each layer group or request",
                    "vary an input of the whole model",
                    self.context.document.place(where, key=True),
                )
                continue
            bounds = self.axes.bounds(axis, steps, where)
            if bounds:
                found[axis] = bounds
        points = math.prod(bounds[2] for bounds in found.values())
        if points > MAX_POINTS:
            self.context.fail(
                f"'over' has {points:,} combinations",
                f"the limit is {MAX_POINTS:,}",
                "use fewer points",
                self.context.document.place((*path, "over"), key=True),
            )
        return found
