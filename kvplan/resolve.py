"""An Experiment in, a Plan out: names become numbers, axes become rows, claims get limits."""

from __future__ import annotations

import graphlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from kvplan import schema
from kvplan.binding import Binder, set_document
from kvplan.errors import KvplanError, Place, Problem, ValueProblem, one_of, suggest
from kvplan.records import (
    Binding,
    ClaimPlan,
    Experiment,
    NameList,
    Plan,
    RowPlan,
    TablePlan,
    Wish,
)
from kvplan.registry import load_registry
from kvplan.values.expression import Expression, parse_expression
from kvplan.values.ops import OPS
from kvplan.values.plain import PLAIN_FUNCTIONS
from kvplan.values.show import parse_quantity, plain, show_number
from kvplan.values.unit import Unit, parse_unit
from kvplan.yamltext import Path_

MAX_CELLS = 100_000


def resolve(experiment: Experiment, overrides: tuple[str, ...] = ()) -> Plan:
    """Everything an experiment names, found; raises KvplanError with all that was not."""
    return _Resolver(experiment).plan(overrides)


class _Resolver:
    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.spec = experiment, experiment.spec
        self.document = experiment.document
        self.registry = load_registry()
        self.problems: list[Problem] = []
        self.binder = Binder(experiment.project, self.document, self.problems)

    def plan(self, overrides: tuple[str, ...]) -> Plan:
        base = self.binder.extend(Binding(), self.spec.uses, ("uses",))
        if overrides:
            setting, document = set_document(overrides)
            base = Binder(self.experiment.project, document, self.problems).extend(
                base, setting, ()
            )
        wishes = {k: self._wish(k, w, ("values", k)) for k, w in self.spec.values.items()}
        self._link(list(wishes.values()), {})
        self.values = wishes
        values = tuple(
            (wish, self.binder.extend(base, self.spec.values[k].overrides, ("values", k, "with")))
            for k, wish in wishes.items()
        )
        tables = tuple(self._table(name, table, base) for name, table in self.spec.tables.items())
        claims = tuple(self._claim(i, c, wishes, tables) for i, c in enumerate(self.spec.claims))
        if self.problems:
            raise KvplanError(_distinct(self.problems))
        return Plan(self.experiment, base, values, tables, claims, overrides)

    def _place(self, *path: str | int, key: bool = False) -> Place:
        return self.document.place(path, key)

    def _try(self, place: Place, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except ValueProblem as error:
            self.problems.append(error.at(place))
            return None

    # Wishes: values and columns

    def _wish(self, key: str, wanted: schema.Wanted, path: Path_) -> Wish:
        place = self.document.place(path, key=True)
        ways = [w for w in ("of", "derive", "when", "names", "label") if getattr(wanted, w)]
        if len(ways) != 1:
            self.problems.append(
                Problem(
                    f"'{key}' needs exactly one of: of, derive, when, names, label",
                    f"it has {', '.join(ways)}" if ways else "it has none",
                    "",
                    place,
                )
            )
            return Wish(key, key, place)
        title = wanted.title or key.replace("_", " ")
        wish = Wish(key, title, place, digits=wanted.digits)
        unit = (
            self._try(self.document.place((*path, "unit")), lambda: parse_unit(wanted.unit))
            if wanted.unit
            else None
        )
        make = getattr(self, f"_wish_{ways[0]}")
        made: Wish = make(replace(wish, unit=unit), wanted, path)
        return made

    def _wish_of(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        name = wanted.of or ""
        place = self.document.place((*path, "of"))
        if name not in self.registry:
            what = "quantity" if wish.key != name else "quantity or column"
            self.problems.append(
                Problem(
                    f"unknown {what} '{name}'",
                    "kvplan list formulas names them",
                    self.registry.nearest(name),
                    place,
                )
            )
            return wish
        quantity = self.registry[name]
        if wish.unit and not wish.unit.same_dimension(quantity.unit):
            self.problems.append(
                Problem(
                    f"'{name}' is in {quantity.unit.dimension} and cannot be shown in "
                    f"{wish.unit.text}",
                    "",
                    f"for instance {quantity.show.text}",
                    self.document.place((*path, "unit")),
                )
            )
        digits = wish.digits if wish.digits is not None or wish.unit else quantity.digits
        return replace(wish, quantity=name, unit=wish.unit or quantity.show, digits=digits)

    def _wish_derive(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        expression = self._expression(wanted.derive, (*path, "derive"))
        return replace(wish, expression=expression, unit=wish.unit or Unit())

    def _wish_when(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        if wanted.then is None or wanted.otherwise is None:
            self.problems.append(Problem("'when' needs 'then' and 'otherwise'", "", "", wish.place))
        expression = self._expression(wanted.when, (*path, "when"))
        if expression is None:
            return replace(wish, label="case")
        return replace(wish, choice=(expression, wanted.then or "", wanted.otherwise or ""))

    def _wish_label(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        return replace(wish, label=wanted.label)

    def _wish_names(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        names = wanted.names
        assert names
        expression = self._expression(names.when, (*path, "names", "when"))
        bindings = tuple(
            self.binder.extend(Binding(), {names.entity: raw}, (*path, "names", "among", i))
            for i, raw in enumerate(names.among)
        )
        if expression is None:
            return replace(wish, label="case")
        return replace(wish, name_list=NameList(names.entity, bindings, expression))

    def _expression(self, text: str | None, path: Path_) -> Expression | None:
        found: Expression | None = self._try(
            self.document.place(path), lambda: parse_expression(text or "", OPS)
        )
        return found

    def _link(self, wishes: list[Wish], outer: Mapping[str, Wish]) -> None:
        """Checks that expressions use known names, no cycle, and give the unit they declare."""
        own = {w.key: w for w in wishes}
        graph = {w.key: [n for n in _names_of(w) if n in own and n != w.key] for w in wishes}
        for wish in wishes:
            expression = wish.expression or (wish.choice and wish.choice[0])
            if expression and wish.key in expression.names and wish.key not in self.registry:
                graph[wish.key].append(wish.key)
        try:
            order = tuple(graphlib.TopologicalSorter(graph).static_order())
        except graphlib.CycleError as error:
            names = " -> ".join(error.args[1])
            self.problems.append(
                Problem(
                    f"these are derived from each other: {names}",
                    "none of them can be computed first",
                    "derive one of them from quantities",
                    own[error.args[1][0]].place,
                )
            )
            return
        units: dict[str, Unit] = {k: w.unit or Unit() for k, w in outer.items()}
        for key in order:
            units[key] = self._linked_unit(own[key], units, {**outer, **own})

    def _linked_unit(self, wish: Wish, units: dict[str, Unit], known: Mapping[str, Wish]) -> Unit:
        parts = [
            wish.expression,
            wish.choice and wish.choice[0],
            wish.name_list and wish.name_list.when,
        ]

        def unit_of(name: str) -> Unit:
            if name in known and name in units and name != wish.key:
                if known[name].is_text:
                    raise ValueProblem(f"'{name}' is text and cannot be computed with")
                return Unit(units[name].exponents)
            if name in self.registry:
                return Unit(self.registry[name].unit.exponents)
            names = [*known, *self.registry.quantities]
            raise ValueProblem(
                f"unknown name '{name}' in '{wish.key}'",
                "names are columns, values and quantities",
                suggest(name, names),
            )

        for part in parts:
            if not part:
                continue
            got = self._try(wish.place, lambda part=part: part.evaluate(unit_of, OPS))
            if isinstance(got, Unit) and part is wish.expression:
                declared = wish.unit or Unit()
                if not got.same_dimension(declared):
                    self.problems.append(
                        Problem(
                            f"'{wish.key}' is declared in {declared.text}, but it gives "
                            f"{got.dimension}",
                            "",
                            f"unit: {got.dimension}",
                            wish.place,
                        )
                    )
        return wish.unit or Unit()

    # Tables

    def _table(self, name: str, table: schema.Table, base: Binding) -> TablePlan:
        path: Path_ = ("tables", name)
        columns = tuple(
            self._wish(c.key, c, (*path, "columns", i, *self._inner(path, i, c.key)))
            for i, c in enumerate(table.columns)
        )
        self._link(list(columns), self.values)
        if (table.rows is None) == (table.cases is None):
            self.problems.append(
                Problem(
                    f"the table '{name}' needs 'rows' or 'cases', one of them",
                    "rows: the product of axes; cases: named variants",
                    "",
                    self._place(*path, key=True),
                )
            )
            return TablePlan(name, "", None, columns, (), ())
        rows = (
            self._rows(table, base, path)
            if table.rows is not None
            else self._cases(table, base, path)
        )
        overrides = [c.overrides for c in table.columns]
        plans = []
        for address, label, binding, _where in rows:
            cells = tuple(
                self.binder.extend(binding, o, (*path, "columns", i, columns[i].key, "with"))
                if o
                else binding
                for i, o in enumerate(overrides)
            )
            plans.append(RowPlan(address, label, cells))
            if self.problems and len(self.problems) > 50:
                break
        axes = tuple(table.rows or ())
        title = table.title or name.replace("_", " ").capitalize()
        return TablePlan(name, title, table.note, columns, tuple(plans), axes)

    def _inner(self, path: Path_, index: int, key: str) -> tuple[str, ...]:
        """The step into `- key: {...}`, absent in the short form `- key`."""
        here = (*path, "columns", index, key)
        return (key,) if here in self.document.values else ()

    def _cases(
        self, table: schema.Table, base: Binding, path: Path_
    ) -> Iterable[tuple[str, str, Binding, Path_]]:
        cases = table.cases or {}
        if not cases:
            self.problems.append(
                Problem("'cases' is empty", "", "name at least one", self._place(*path, "cases"))
            )
        for label, overrides in cases.items():
            where = (*path, "cases", label)
            binding = self.binder.extend(base, overrides or {}, where)
            yield (
                _quoted(label),
                label,
                replace(binding, labels={**binding.labels, "case": label}),
                where,
            )

    def _rows(
        self, table: schema.Table, base: Binding, path: Path_
    ) -> Iterable[tuple[str, str, Binding, Path_]]:
        axes = {
            axis: self._axis(axis, raw, (*path, "rows", axis))
            for axis, raw in (table.rows or {}).items()
        }
        if not axes:
            self.problems.append(
                Problem(
                    "'rows' has no axis", "", "rows: {page: [16 token]}", self._place(*path, "rows")
                )
            )
            return
        count = math.prod(len(points) for points in axes.values()) * len(table.columns)
        if count > MAX_CELLS:
            sizes = " x ".join(str(len(points)) for points in axes.values())
            self.problems.append(
                Problem(
                    f"the table would have {count:,} cells",
                    f"rows {sizes}, columns {len(table.columns)}; the limit is {MAX_CELLS:,} cells",
                    "use fewer points on an axis",
                    self._place(*path, "rows", key=True),
                )
            )
            return
        for combination in product(*axes.values()):
            overrides = {axis: raw for axis, (raw, _, _) in zip(axes, combination, strict=True)}
            shown = [
                f"{axis}={_quoted(text)}"
                for axis, (_, text, _) in zip(axes, combination, strict=True)
            ]
            places = {axis: where for axis, (_, _, where) in zip(axes, combination, strict=True)}
            binding = self.binder.extend_axes(base, overrides, places)
            yield ", ".join(shown), ", ".join(t for _, t, _ in combination), binding, path

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
            self.problems.append(
                Problem(
                    f"the axis '{axis}' must be a list",
                    "",
                    f"{axis}: [a, b]",
                    self.document.place(path),
                )
            )
            return []
        if not raw:
            self.problems.append(
                Problem(
                    f"the axis '{axis}' is empty",
                    "a table without rows says nothing",
                    "give it at least one point",
                    self.document.place(path),
                )
            )
        return [(item, self._point(axis, item), (*path, i)) for i, item in enumerate(raw)]

    def _point(self, axis: str, raw: object) -> str:
        if axis in self.registry:
            quantity = self.registry[axis]
            try:
                base = parse_quantity(raw, quantity.unit, axis)
            except ValueProblem:
                return str(raw)
            return show_number(quantity.show.from_base(base)).replace(",", "")
        if isinstance(raw, dict):
            return str(raw.get("title", raw.get("use", "inline")))
        return str(raw)

    def _stepped(self, axis: str, raw: dict[str, Any], path: Path_) -> list[tuple[Any, str, Path_]]:
        if set(raw) - {"from", "to", "points", "spacing"} or axis not in self.registry:
            self.problems.append(
                Problem(
                    f"the axis '{axis}' cannot be read",
                    "",
                    "a list, or {from: .., to: .., points: ..}",
                    self.document.place(path),
                )
            )
            return []
        try:
            steps = schema.Steps.model_validate(raw)
        except ValueError:
            self.problems.append(
                Problem(
                    f"the axis '{axis}' needs from, to and points (2 or more)",
                    "",
                    "{from: 1 token, to: 4096 token, points: 13}",
                    self.document.place(path),
                )
            )
            return []
        bounds = self._bounds(axis, steps, path)
        if bounds is None:
            return []
        quantity, found = self.registry[axis], []
        for value in step_points(*bounds):
            number = round(value) if quantity.whole else value
            text = f"{number!r} {quantity.unit.dimension}"
            found.append(
                (text, show_number(quantity.show.from_base(number)).replace(",", ""), path)
            )
        return found

    def _bounds(
        self, axis: str, steps: schema.Steps, path: Path_
    ) -> tuple[float, float, int, str] | None:
        unit = self.registry[axis].unit
        place = self.document.place(path)
        start = self._try(place, lambda: parse_quantity(steps.start, unit, axis))
        end = self._try(place, lambda: parse_quantity(steps.end, unit, axis))
        if start is None or end is None:
            return None
        if not start < end or (steps.spacing == "log" and start <= 0):
            self.problems.append(
                Problem(
                    f"the axis '{axis}' must rise from 'from' to 'to'",
                    "",
                    "log spacing starts above zero",
                    place,
                )
            )
            return None
        return start, end, steps.points, steps.spacing

    # Claims

    def _claim(
        self,
        index: int,
        claim: schema.Claim,
        values: Mapping[str, Wish],
        tables: tuple[TablePlan, ...],
    ) -> ClaimPlan:
        path: Path_ = ("claims", index)
        place = self.document.place((*path, "id"))
        unit = Unit()
        if bool(claim.cell) == bool(claim.constant):
            self.problems.append(
                Problem(
                    f"the claim '{claim.id}' needs 'cell' or 'constant', one of them", "", "", place
                )
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
        place = self.document.place(path)
        if not rest:
            if name not in values:
                self.problems.append(
                    Problem(
                        f"no value '{name}'",
                        one_of(values),
                        suggest(name, [*values, *known]) or "a table's cell is table[row].column",
                        place,
                    )
                )
                return Unit()
            return values[name].unit or Unit()
        column = cell.rpartition("].")[2]
        if name not in known:
            self.problems.append(
                Problem(f"no table '{name}'", one_of(known), suggest(name, known), place)
            )
            return Unit()
        wishes = {w.key: w for w in known[name].columns}
        if column not in wishes:
            self.problems.append(
                Problem(
                    f"no column '{column}' in the table '{name}'",
                    one_of(wishes),
                    suggest(column, wishes),
                    place,
                )
            )
            return Unit()
        return wishes[column].unit or Unit()

    def _limits(self, claim: schema.Claim, unit: Unit, path: Path_) -> dict[str, float]:
        found: dict[str, float] = {}
        for key in ("expect", "within", "at_least", "at_most", "more_than", "less_than"):
            raw = getattr(claim, key)
            if raw is None:
                continue
            place = self.document.place((*path, key))
            expected = unit
            if key == "within" and isinstance(raw, str) and raw.strip().endswith("%"):
                expected, key = Unit(), "within_share"
            if key == "within" and unit.text == "%":
                key = "within"
            value = self._try(
                place,
                lambda raw=raw, expected=expected, key=key: parse_quantity(raw, expected, key),
            )
            if value is not None:
                found[key] = value
        bounds = {"at_least", "at_most", "more_than", "less_than"} & set(found)
        if claim.cell and not bounds and "expect" not in found and claim.expect is None:
            self.problems.append(
                Problem(
                    f"the claim '{claim.id}' says no number",
                    "a claim can be checked only against one",
                    "expect:, at_least:, at_most:, more_than: or less_than:",
                    self.document.place((*path, "id")),
                )
            )
        return found

    def _derivation(
        self, claim: schema.Claim, unit: Unit, path: Path_
    ) -> tuple[Expression | None, Unit]:
        place = self.document.place((*path, "derivation"))
        if claim.derivation is None:
            if claim.cell:
                self.problems.append(
                    Problem(
                        f"the claim '{claim.id}' has no derivation",
                        "a claim is checked by arithmetic that does not use the formula it checks",
                        'derivation: "2 * 80 * 8 * 128 * 2"',
                        self.document.place((*path, "id")),
                    )
                )
            return None, unit
        expression = self._try(
            place, lambda: parse_expression(claim.derivation or "", PLAIN_FUNCTIONS)
        )
        for name in expression.names if expression else ():
            if name not in self.registry or not (
                self.registry[name].is_input or name in self.spec.uses
            ):
                inputs = [n for n, q in self.registry.quantities.items() if q.is_input]
                self.problems.append(
                    Problem(
                        f"'{name}' is not an input",
                        "a derivation may use literals and inputs only, "
                        "so that a wrong formula cannot confirm itself",
                        suggest(name, inputs),
                        place,
                    )
                )
        shown = (
            self._try(self.document.place((*path, "unit")), lambda: parse_unit(claim.unit))
            if claim.unit
            else unit
        )
        if shown and not shown.same_dimension(unit):
            self.problems.append(
                Problem(
                    f"the cell is in {unit.dimension}, the derivation in {shown.dimension}",
                    "",
                    "",
                    self.document.place((*path, "unit")),
                )
            )
        return expression, shown or unit

    def _constant(
        self, claim: schema.Claim, path: Path_
    ) -> dict[str, tuple[float, float, int, str]]:
        name = claim.constant or ""
        if name not in self.registry:
            self.problems.append(
                Problem(
                    f"unknown quantity '{name}'",
                    "",
                    self.registry.nearest(name),
                    self.document.place((*path, "constant")),
                )
            )
        if not claim.over:
            self.problems.append(
                Problem(
                    "'constant' needs 'over', the inputs to vary",
                    "",
                    "over: {prefix: {from: 1 token, to: 1e6 token, points: 1000}}",
                    self.document.place((*path, "id")),
                )
            )
        found = {}
        for axis, steps in (claim.over or {}).items():
            where = (*path, "over", axis)
            if axis not in self.registry:
                self.problems.append(
                    Problem(
                        f"unknown quantity '{axis}'",
                        "",
                        self.registry.nearest(axis),
                        self.document.place(where, key=True),
                    )
                )
                continue
            bounds = self._bounds(axis, steps, where)
            if bounds:
                found[axis] = bounds
        return found


def step_points(start: float, end: float, points: int, spacing: str) -> list[float]:
    """Evenly spaced points from start to end, both included."""
    if spacing == "log":
        low, high = math.log(start), math.log(end)
        inner = [math.exp(low + (high - low) * i / (points - 1)) for i in range(1, points - 1)]
        return [start, *inner, end]
    return [start + (end - start) * i / (points - 1) for i in range(points)]


def _names_of(wish: Wish) -> tuple[str, ...]:
    expression = (
        wish.expression
        or (wish.choice and wish.choice[0])
        or (wish.name_list and wish.name_list.when)
    )
    return expression.names if expression else ()


def _quoted(text: str) -> str:
    plain_text = str(plain(text))
    return f'"{plain_text}"' if any(c in plain_text for c in ',]="[') else plain_text


def _distinct(problems: list[Problem]) -> list[Problem]:
    return list({(p.place, p.what): p for p in problems}.values())
