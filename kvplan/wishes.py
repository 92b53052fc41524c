"""Values and columns as typed in, Wishes out: quantities found, expressions linked and checked."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from kvplan import schema
from kvplan.context import Context
from kvplan.errors import ValueProblem, suggest
from kvplan.records import Binding, NameList, Wish
from kvplan.values.expression import Expression, parse_expression
from kvplan.values.ops import OPS
from kvplan.values.unit import Unit, parse_unit
from kvplan.yamltext import Path_


class Wishes:
    """Makes wishes out of what a value or column says."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def wish(self, key: str, wanted: schema.Wanted, path: Path_) -> Wish:
        place = self.context.document.place(path, key=True)
        ways = [w for w in ("of", "derive", "when", "names", "label") if getattr(wanted, w)]
        if len(ways) != 1:
            self.context.fail(
                f"'{key}' needs exactly one of: of, derive, when, names, label",
                f"it has {', '.join(ways)}" if ways else "it has none",
                "",
                place,
            )
            return Wish(key, key, place)
        title = wanted.title or key.replace("_", " ")
        wish = Wish(key, title, place, digits=wanted.digits)
        unit = (
            self.context.attempt(
                self.context.document.place((*path, "unit")), lambda: parse_unit(wanted.unit)
            )
            if wanted.unit
            else None
        )
        make = getattr(self, f"_wish_{ways[0]}")
        made: Wish = make(replace(wish, unit=unit), wanted, path)
        return made

    def _wish_of(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        name = wanted.of or ""
        place = self.context.document.place((*path, "of"))
        if name not in self.context.registry:
            what = "quantity" if wish.key != name else "quantity or column"
            self.context.fail(
                f"unknown {what} '{name}'",
                "kvplan list formulas names them",
                self.context.registry.nearest(name),
                place,
            )
            return wish
        quantity = self.context.registry[name]
        if wish.unit and not wish.unit.same_dimension(quantity.unit):
            self.context.fail(
                f"'{name}' is in {quantity.unit.dimension} and cannot be shown in {wish.unit.text}",
                "",
                f"for instance {quantity.show.text}",
                self.context.document.place((*path, "unit")),
            )
        digits = wish.digits if wish.digits is not None or wish.unit else quantity.digits
        return replace(wish, quantity=name, unit=wish.unit or quantity.show, digits=digits)

    def _wish_derive(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        expression = self._expression(wanted.derive, (*path, "derive"))
        return replace(wish, expression=expression, unit=wish.unit or Unit())

    def _wish_when(self, wish: Wish, wanted: schema.Wanted, path: Path_) -> Wish:
        if wanted.then is None or wanted.otherwise is None:
            self.context.fail("'when' needs 'then' and 'otherwise'", "", "", wish.place)
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
            self.context.binder.extend(Binding(), {names.entity: raw}, (*path, "names", "among", i))
            for i, raw in enumerate(names.among)
        )
        if expression is None:
            return replace(wish, label="case")
        return replace(wish, name_list=NameList(names.entity, bindings, expression))

    def _expression(self, text: str | None, path: Path_) -> Expression | None:
        found: Expression | None = self.context.attempt(
            self.context.place(*path), lambda: parse_expression(text or "", OPS)
        )
        return found

    def link(self, wishes: list[Wish], outer: Mapping[str, Wish]) -> None:
        """Checks that expressions use known names, no cycle, and give the unit they declare."""
        own = {w.key: w for w in wishes}
        graph = {w.key: [n for n in _names_of(w) if n in own and n != w.key] for w in wishes}
        for wish in wishes:
            expression = wish.expression or (wish.choice and wish.choice[0])
            if (
                expression
                and wish.key in expression.names
                and wish.key not in self.context.registry
            ):
                graph[wish.key].append(wish.key)
        try:
            order = tuple(graphlib.TopologicalSorter(graph).static_order())
        except graphlib.CycleError as error:
            names = " -> ".join(error.args[1])
            self.context.fail(
                f"these are derived from each other: {names}",
                "none of them can be computed first",
                "derive one of them from quantities",
                own[error.args[1][0]].place,
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
            if name in self.context.registry:
                return Unit(self.context.registry[name].unit.exponents)
            names = [*known, *self.context.registry.quantities]
            raise ValueProblem(
                f"unknown name '{name}' in '{wish.key}'",
                "names are columns, values and quantities",
                suggest(name, names),
            )

        for part in parts:
            if not part:
                continue
            got = self.context.attempt(wish.place, partial(part.evaluate, unit_of, OPS))
            if isinstance(got, Unit) and part is wish.expression:
                declared = wish.unit or Unit()
                if not got.same_dimension(declared):
                    self.context.fail(
                        f"'{wish.key}' is declared in {declared.text}, but it gives "
                        f"{got.dimension}",
                        "",
                        f"unit: {got.dimension}",
                        wish.place,
                    )
        return wish.unit or Unit()


def _names_of(wish: Wish) -> tuple[str, ...]:
    expression = (
        wish.expression
        or (wish.choice and wish.choice[0])
        or (wish.name_list and wish.name_list.when)
    )
    return expression.names if expression else ()
