"""A cell in, its derivation out: each step in symbols, in numbers, with unit and source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.evaluate import Numbers
from kvplan.records import Cell, Given, Group, Results, Step
from kvplan.registry import Quantity, load_registry
from kvplan.values.expression import Expression
from kvplan.values.ops import OPS
from kvplan.values.show import plain, show_number, show_quantity
from kvplan.values.symbolic import Symbolic, leaf, numbers_of
from kvplan.values.unit import Unit
from kvplan.workloads.lengths import Lengths


def explain(results: Results) -> Callable[[Cell], Step]:
    """A function from a cell to the steps it rests on, which keeps what it has computed."""
    rows = {
        id(cell): row for table in results.tables.values() for row in table.rows for cell in row
    }
    kept: dict[int, Numbers] = {}

    def steps_of(cell: Cell) -> Step:
        named = {**results.values, **{c.wish.key: c for c in rows.get(id(cell), ())}}
        around = {key: other for key, other in named.items() if other is not cell}
        numbers = kept.setdefault(id(cell.binding), Numbers(cell.binding))
        return _Explainer(numbers, around, steps_of).wish(cell)

    return steps_of


def lines(step: Step, depth: int = 0) -> list[str]:
    """A derivation as indented lines, each `name: symbol = formula = numbers = value`."""
    parts = [step.symbol, step.symbols, step.numbers, step.shown]
    text = " = ".join(part for part in dict.fromkeys(parts) if part)
    return ["  " * depth + text] + [
        line for inner in step.steps for line in lines(inner, depth + 1)
    ]


def flat(step: Step) -> list[Step]:
    """The steps of a derivation, each once, those it rests on first."""
    found: dict[tuple[str, str], Step] = {}
    for inner in step.steps:
        found.update({(s.name, s.shown): s for s in flat(inner)})
    found[(step.name, step.shown)] = step
    return list(found.values())


class _Explainer:
    def __init__(
        self, numbers: Numbers, around: Mapping[str, Cell], steps_of: Callable[[Cell], Step]
    ) -> None:
        self.numbers, self.binding, self.around = numbers, numbers.binding, around
        self.steps_of = steps_of
        self.registry = load_registry()

    def wish(self, cell: Cell) -> Step:
        wish = cell.wish
        shown = show_quantity(cell.value, wish.unit, wish.digits)
        if wish.quantity:
            step = self.quantity(self.registry[wish.quantity], None)
            return Step(**{**_fields(step), "shown": _with_base(step, cell, shown)})
        expression = (
            wish.expression
            or (wish.choice and wish.choice[0])
            or (wish.name_list and wish.name_list.when)
        )
        if not expression:
            return Step(wish.key, wish.key, "", "", shown, "A label.", "", str(wish.place))
        symbols, numbers, steps = self.expression(expression)
        if wish.choice:
            _, then, otherwise = wish.choice
            symbols = f"{symbols} ? {then} : {otherwise}"
        return Step(
            wish.key,
            wish.key,
            symbols,
            numbers,
            shown,
            "Derived in the experiment.",
            "",
            str(wish.place),
            steps,
        )

    def expression(self, expression: Expression) -> tuple[str, str, tuple[Step, ...]]:
        def lookup(name: str) -> Symbolic:
            if name in self.around:
                return leaf(name, self.around[name].value)
            if name in self.registry and self._computable(name):
                return leaf(self.registry[name].symbol, self.numbers.value(name))
            return Symbolic(name, name)

        made = expression.evaluate(lookup, OPS)
        steps = []
        for name in expression.names:
            if name in self.around:
                steps.append(self.steps_of(self.around[name]))
            elif name in self.registry and self._computable(name):
                steps.append(self.quantity(self.registry[name], None))
        if not isinstance(made, Symbolic):
            return expression.text, numbers_of(made), tuple(steps)
        return made.symbols, made.numbers, tuple(steps)

    def _computable(self, name: str) -> bool:
        """Whether a name in a list over entries has a value here, outside the list."""
        from kvplan.errors import ValueProblem

        try:
            self.numbers.value(name)
        except ValueProblem:
            return False
        return True

    def quantity(self, quantity: Quantity, index: int | None) -> Step:
        """A quantity of the whole model, or of its layer group `index`."""
        if quantity.per == "layer_group" and index is None:
            groups = range(len(self.binding.groups))
            steps = tuple(self.quantity(quantity, i) for i in groups)
            if len(steps) == 1:
                return steps[0]
            shown = ", ".join(step.shown for step in steps)
            return Step(
                quantity.name,
                quantity.symbol,
                "",
                "",
                shown,
                quantity.doc,
                quantity.source,
                "",
                steps,
            )
        group = self.binding.groups[index] if index is not None else None
        given = self._given(quantity.name, group)
        if given:
            return _input(quantity, given, group)
        if quantity.constant is not None:
            return Step(
                quantity.name,
                quantity.symbol,
                "",
                "",
                _shown(quantity.constant, quantity),
                quantity.doc,
                quantity.source,
                "",
            )
        return self._computed(quantity, group, index)

    def _given(self, name: str, group: Group | None) -> Given | None:
        if group and name in group.givens:
            return group.givens[name]
        return self.binding.givens.get(name)

    def _computed(self, quantity: Quantity, group: Group | None, index: int | None) -> Step:
        names = {*(group.givens if group else ()), *self.binding.givens}
        formula = self.registry.choose(
            quantity, group.kind if group else None, self.binding.engine, names
        )
        needs = [self.registry[name] for name in formula.needs]
        leaves = [self._leaf(need, index) for need in needs]
        made = formula.function(*leaves)
        value = self._value(quantity.name, index)
        steps = tuple(
            self.quantity(need, index if need.per == "layer_group" else None) for need in needs
        )
        text = made if isinstance(made, Symbolic) else Symbolic(numbers_of(made), numbers_of(made))
        return Step(
            quantity.name,
            quantity.symbol,
            text.symbols,
            text.numbers,
            _shown(value, quantity),
            formula.doc,
            formula.source,
            "",
            steps,
        )

    def _leaf(self, need: Quantity, index: int | None) -> Symbolic:
        value = self._value(need.name, index if need.per == "layer_group" else None)
        if isinstance(value, tuple):
            text = " + ".join(show_number(item) for item in value)
            return Symbolic(need.symbol, text if len(value) == 1 else f"({text})")
        return leaf(need.symbol, value)

    def _value(self, name: str, index: int | None) -> Any:
        return self.numbers.value(name) if index is None else self.numbers.group_value(name, index)


def _fields(step: Step) -> dict[str, Any]:
    return dict(step.__dict__)


def _with_base(step: Step, cell: Cell, shown: str) -> str:
    """The value as the cell shows it, after the base units the formula is in, if they differ."""
    if not step.numbers or step.shown == shown:
        return shown if not step.numbers else step.shown
    return step.shown if step.shown.endswith(shown) else f"{step.shown} = {shown}"


def _shown(value: Any, quantity: Quantity) -> str:
    if hasattr(value, "__len__"):
        return f"{numbers_of(value)} {quantity.unit.dimension} ({len(value):,} values)"
    base = Unit(quantity.unit.exponents, text=quantity.unit.text)
    return show_quantity(plain(value), base)


def _input(quantity: Quantity, given: Given, group: Group | None) -> Step:
    shown = given.text if isinstance(given.value, Lengths) else _shown(given.value, quantity)
    source = str(given.source) if given.source else "given in the experiment"
    return Step(
        quantity.name,
        quantity.symbol,
        "",
        "",
        shown,
        quantity.doc,
        source,
        str(given.place) if given.place else "",
    )
