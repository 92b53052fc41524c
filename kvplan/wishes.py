"""Values and columns as typed in, Wishes out: quantities found, expressions linked and checked."""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from kvplan import schema
from kvplan.context import Context
from kvplan.errors import ValueProblem, suggest
from kvplan.records import Binding, NameList, Wish
from kvplan.values.expression import Expression, parse_expression
from kvplan.values.ops import OPS
from kvplan.values.unit import Condition, Unit, parse_unit
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
        unit = None
        if wanted.unit is not None:
            place = self.context.place(*path, "unit")
            unit = self.context.attempt(place, partial(parse_unit, wanted.unit))
            if unit is None:
                return Wish(key, key, place)
        title = wanted.title or key.replace("_", " ")
        wish = Wish(key, title, self.context.place(*path, ways[0]), digits=wanted.digits, unit=unit)
        make = getattr(self, f"_wish_{ways[0]}")
        made: Wish = make(wish, wanted, path)
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
            return wish
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
            return wish
        wish = replace(wish, place=self.context.place(*path, "names", "when"))
        return replace(wish, name_list=NameList(names.entity, bindings, expression))

    def _expression(self, text: str | None, path: Path_) -> Expression | None:
        found: Expression | None = self.context.attempt(
            self.context.place(*path), lambda: parse_expression(text or "", OPS)
        )
        return found

    def link(self, wishes: list[Wish], outer: Mapping[str, Wish]) -> None:
        """Checks that expressions use known names, no cycle, and give the unit they declare."""
        own = {w.key: w for w in wishes}
        graph = {w.key: [n for n in w.names if n in own and n != w.key] for w in wishes}
        for wish in wishes:
            expression = wish.expression or _condition(wish)
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

    def check_names(
        self,
        wanted: Mapping[str, schema.Wanted],
        made: list[Wish],
        outer: Mapping[str, Wish] | None = None,
    ) -> None:
        """Checks that each name of an expression can mean one thing only."""
        for wish in made:
            changed, others = wanted[wish.key].overrides, {*wanted} - {wish.key}
            # A value that only repeats a quantity stands back behind the quantity of a row.
            values = {name for name in outer or () if not self._repeats(name)} - others
            unsure = [n for n in wish.names if n in values and n in self.context.registry]
            taken = [n for n in wish.names if n in others | values]
            unheard = [n for n in changed if n in taken]
            what = "value" if outer is None or unheard and unheard[0] not in others else "column"
            if unsure:
                self.context.fail(
                    f"'{unsure[0]}' in '{wish.key}' is a value and also a quantity of the row",
                    "the two can differ",
                    f"rename the value '{unsure[0]}', or make a column '{unsure[0]}'",
                    wish.place,
                )
            elif unheard:
                self.context.fail(
                    f"'with' gives '{unheard[0]}', but '{wish.key}' takes it from elsewhere",
                    f"a {what} has this name, and is computed for itself",
                    f"rename the {what} '{unheard[0]}'",
                    wish.place,
                )
            elif changed and wish.names and len(taken) == len(wish.names):
                self.context.fail(
                    f"'with' changes nothing of '{wish.key}'",
                    "all its names are values or columns, which are computed for themselves",
                    "give 'with' to those",
                    wish.place,
                )

    def _repeats(self, name: str) -> bool:
        value = self.context.spec.values[name]
        return value.of == name and not value.overrides

    def _linked_unit(self, wish: Wish, units: dict[str, Unit], known: Mapping[str, Wish]) -> Unit:
        """The unit a wish declares, which its expression must give."""
        expression = wish.expression or _condition(wish)
        declared = wish.unit or Unit()
        if not expression:
            return declared
        unit_of = self._unit_lookup(wish, units, known)
        got = self.context.attempt(wish.place, partial(expression.evaluate, unit_of, OPS))
        if got is None:
            return declared
        given = got if isinstance(got, Unit) else Unit()
        compares = isinstance(got, (Condition, bool))
        if given.spread:
            self.context.fail(
                f"'{wish.key}' has one value per {given.spread.replace('_', ' ')}",
                "a cell holds one number",
                "total(...) it, or name a quantity of the whole",
                wish.place,
            )
        elif wish.is_text and not compares:
            self.context.fail(
                f"'{expression.text}' is not a comparison",
                "",
                "write for instance a > b",
                wish.place,
            )
        elif compares and not wish.is_text:
            self.context.fail(
                f"'{expression.text}' is a comparison, not a number",
                "",
                "{when: a > b, then: yes, otherwise: no}",
                wish.place,
            )
        elif wish.expression and not given.same_dimension(declared):
            self.context.fail(
                f"'{wish.key}' is declared in {declared.text}, but it gives {given.dimension}",
                "",
                f"unit: {given.dimension}",
                wish.place,
            )
        return declared

    def _unit_lookup(
        self, wish: Wish, units: dict[str, Unit], known: Mapping[str, Wish]
    ) -> Callable[[str], Unit]:
        registry = self.context.registry

        def unit_of(name: str) -> Unit:
            if name in known and name in units and name != wish.key:
                if known[name].is_text:
                    raise ValueProblem(f"'{name}' is text and cannot be computed with")
                return Unit(units[name].exponents)
            if name in registry:
                return Unit(registry[name].unit.exponents, spread=registry[name].per)
            raise ValueProblem(
                f"unknown name '{name}' in '{wish.key}'",
                "names are columns, values and quantities",
                suggest(name, [*known, *registry.quantities]),
            )

        return unit_of


def _condition(wish: Wish) -> Expression | None:
    if wish.choice:
        return wish.choice[0]
    return wish.name_list.when if wish.name_list else None
