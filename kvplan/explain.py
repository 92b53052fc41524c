"""A cell in, its derivation out: each step in symbols, in numbers, with unit and source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Place, Problem, ValueProblem
from kvplan.evaluate import Numbers, beside, names_seen_by_rows
from kvplan.records import Binding, Cell, Given, Group, Results, Step
from kvplan.registry import Quantity, load_registry
from kvplan.values.expression import Expression
from kvplan.values.ops import OPS
from kvplan.values.show import plain, show_quantity
from kvplan.values.symbolic import Symbolic, figures, leaf, numbers_of
from kvplan.values.unit import Unit
from kvplan.workloads.lengths import Lengths

# Bindings whose quantities are kept at once: a row has one or a few, and a series may be large.
KEPT = 16
StepsOf = Callable[[Cell], Step]


def explain(results: Results) -> StepsOf:
    """A function from a cell to the steps it rests on, which keeps what it has computed."""
    experiment = results.plan.experiment
    shelf = _Shelf(experiment.project)
    rows = {
        id(cell): row for table in results.tables.values() for row in table.rows for cell in row
    }
    seen = names_seen_by_rows(results.plan)
    explainers: dict[int, _Explainer] = {}
    made: dict[int, Step] = {}

    def outermost(cell: Cell) -> Step:
        try:
            return steps_of(cell)
        except ValueProblem as error:
            raise KvplanError(error.at(cell.wish.place)) from None
        except RecursionError:
            raise KvplanError(
                Problem(
                    f"'{cell.wish.key}' rests on too many steps, each derived from the next",
                    "",
                    "derive it from quantities",
                    cell.wish.place,
                )
            ) from None

    def steps_of(cell: Cell) -> Step:
        if id(cell) not in made:
            made[id(cell)] = derive(cell)
        return made[id(cell)]

    def derive(cell: Cell) -> Step:
        outer = results.values
        if id(cell) in rows:
            outer = {key: other for key, other in outer.items() if key in seen}
        named = {**outer, **{c.wish.key: c for c in rows.get(id(cell), ())}}
        around = {key: other for key, other in named.items() if other is not cell}
        binding = cell.binding
        if id(binding) not in explainers:
            if len(explainers) >= KEPT:
                del explainers[next(iter(explainers))]
            explainers[id(binding)] = _Explainer(binding, shelf)
        return _cell_step(cell, explainers[id(binding)], around, steps_of)

    return outermost


def tree(step: Step) -> list[str]:
    """A derivation as lines for a terminal; what was derived above is not derived again."""
    return list(_tree(step, "", "", set()))


def _tree(step: Step, first: str, pad: str, done: set[int]) -> Iterator[str]:
    name = "" if step.name == step.symbol else f"{step.name}: "
    if id(step) in done:
        above = " (derived above)" if step.steps else ""
        yield f"{first}{name}{step.parts[0]} = {step.shown}{above}"
        return
    done.add(id(step))
    yield f"{first}{name}{step.equation}"
    guide = "│  " if step.steps else "   "
    if step.doc:
        yield f"{pad}{guide}{step.doc}"
    origin = [step.place, f"source: {step.source}" if step.source else "", step.url]
    if any(origin):
        yield f"{pad}{guide}{', '.join(part for part in origin if part)}"
    for number, inner in enumerate(step.steps, start=1):
        last = number == len(step.steps)
        yield from _tree(
            inner, pad + ("└─ " if last else "├─ "), pad + ("   " if last else "│  "), done
        )


def flat(step: Step) -> list[Step]:
    """The steps of a derivation, each once, those it rests on first."""
    found: dict[int, Step] = {}

    def visit(one: Step) -> None:
        if id(one) not in found:
            for inner in one.steps:
                visit(inner)
            found[id(one)] = one

    visit(step)
    return list(found.values())


def place_text(place: Place | None, project: Path) -> str:
    """`file:line` from the project's folder; never where that folder is on this machine."""
    if place is None:
        return ""
    file = _file_text(place.path, str(project), str(Path.cwd()))
    return f"{file}:{place.line}" if place.line and place.path != "--set" else file


@lru_cache(maxsize=1024)
def _file_text(file: str, project: str, folder: str) -> str:
    path = Path(file)
    if path.is_absolute() or ".." in path.parts:
        whole, root = Path(folder, path).resolve(), Path(project).resolve()
        path = whole.relative_to(root) if whole.is_relative_to(root) else Path(path.name)
    return path.as_posix()


class _Shelf:
    """Steps already made, so that equal derivations are one object however often they occur."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._made: dict[tuple[Any, ...], Step] = {}
        self.inputs: dict[int, Step] = {}

    def step(self, name: str, symbol: str, shown: str, **rest: Any) -> Step:
        fields = {"symbols": "", "numbers": "", "doc": "", "source": "", "place": "", **rest}
        fields["doc"] = " ".join(fields["doc"].split())
        made = Step(name=name, symbol=symbol, shown=shown, **fields)
        inner = tuple(map(id, made.steps))
        key = (made.name, made.equation, made.place, made.source, made.kind, inner)
        return self._made.setdefault(key, made)


def _cell_step(
    cell: Cell, explainer: _Explainer, around: Mapping[str, Cell], steps_of: StepsOf
) -> Step:
    wish, shelf = cell.wish, explainer.shelf
    shown = show_quantity(cell.value, wish.unit, wish.digits)
    place = place_text(wish.place, shelf.project)
    if wish.quantity:
        step = explainer.quantity(explainer.registry[wish.quantity], None)
        return shelf.step(**{**step.__dict__, "shown": _also_shown(step.shown, shown)})
    if wish.name_list:
        steps = tuple(_entry_steps(cell, explainer, around))
        symbols = f"those with {wish.name_list.when.text}"
        return shelf.step(
            wish.key, wish.key, shown, symbols=symbols, place=place, steps=steps, kind="derived"
        )
    expression = wish.expression or (wish.choice and wish.choice[0])
    if not expression:
        return shelf.step(wish.key, wish.key, shown, doc="A label.", place=place, kind="text")
    symbols, numbers, steps = explainer.expression(expression, around, steps_of)
    if wish.choice:
        _, then, otherwise = wish.choice
        symbols = f"{then} if {symbols}, else {otherwise}"
        numbers += " holds" if cell.value == then else " does not hold"
    elif wish.unit:
        shown = _also_shown(_in_base(cell.value, wish.unit), shown)
    return shelf.step(
        wish.key,
        wish.key,
        shown,
        symbols=symbols,
        numbers=numbers,
        place=place,
        steps=steps,
        kind="derived",
    )


def _entry_steps(cell: Cell, explainer: _Explainer, around: Mapping[str, Cell]) -> Iterator[Step]:
    """For a list of entries: the condition for each of them, in numbers."""
    names = cell.wish.name_list
    assert names
    for binding in names.bindings:
        inside = explainer.beside(binding)
        symbols, numbers, _ = inside.expression(names.when, around, None)
        short = binding.shorts[names.entity]
        holds = short in str(cell.value).split(", ")
        used = [g for name in names.when.names if (g := binding.givens.get(name))]
        yield explainer.shelf.step(
            short,
            "",
            f"{numbers} {'holds' if holds else 'does not hold'}",
            symbols=symbols,
            source="; ".join(str(g.source) for g in used if g.source),
            place=", ".join(place_text(g.place, explainer.shelf.project) for g in used),
            kind="derived",
        )


class _Explainer:
    """The derivations of the quantities of one binding, each made once."""

    def __init__(self, binding: Binding, shelf: _Shelf) -> None:
        self.binding, self.shelf = binding, shelf
        self.numbers = Numbers(binding)
        self.registry = load_registry()
        self._known: dict[tuple[str, int | None], Step] = {}

    def beside(self, entry: Binding) -> _Explainer:
        """The same with the inputs of one catalog entry laid over."""
        return _Explainer(beside(self.binding, entry), self.shelf)

    def expression(
        self, expression: Expression, around: Mapping[str, Cell], steps_of: StepsOf | None
    ) -> tuple[str, str, tuple[Step, ...]]:
        """An expression of the experiment in symbols, in numbers, and the steps it rests on."""

        def lookup(name: str) -> Symbolic:
            if name in around:
                return leaf(name, around[name].value)
            if name in self.registry and self._computable(name):
                return leaf(self.registry[name].symbol, self.numbers.value(name))
            return Symbolic(name, name)

        made = expression.evaluate(lookup, OPS)
        steps = []
        for name in expression.names if steps_of else ():
            if name in around and steps_of:
                steps.append(steps_of(around[name]))
            elif name in self.registry and self._computable(name):
                steps.append(self.quantity(self.registry[name], None))
        if not isinstance(made, Symbolic):
            return expression.text, numbers_of(made), tuple(steps)
        return made.symbols, made.numbers, tuple(steps)

    def _computable(self, name: str) -> bool:
        """Whether a name in a list over entries has a value here, outside the list."""
        try:
            self.numbers.value(name)
        except ValueProblem:
            return False
        return True

    def quantity(self, quantity: Quantity, index: int | None) -> Step:
        """A quantity of the whole model, or of its layer group `index`."""
        key = (quantity.name, index)
        if key not in self._known:
            self._known[key] = self._quantity(quantity, index)
        return self._known[key]

    def _quantity(self, quantity: Quantity, index: int | None) -> Step:
        if quantity.per == "layer_group" and index is None:
            groups = range(len(self.binding.groups))
            steps = tuple(self.quantity(quantity, i) for i in groups)
            if len(steps) == 1:
                return steps[0]
            names = [group.name for group in self.binding.groups]
            shown = ", ".join(f"{s.shown} ({n})" for s, n in zip(steps, names, strict=True))
            doc = "One for each layer group of the model."
            return self._step(quantity, shown, "", doc=doc, steps=steps)
        group = self.binding.groups[index] if index is not None else None
        given = group.givens.get(quantity.name) if group else None
        given = given or self.binding.givens.get(quantity.name)
        if given:
            if id(given) not in self.shelf.inputs:
                self.shelf.inputs[id(given)] = self._input(quantity, given)
            return self.shelf.inputs[id(given)]
        if quantity.constant is not None:
            shown = _shown(quantity.constant, quantity)
            return self._step(quantity, shown, quantity.source, kind="constant")
        return self._computed(quantity, group, index)

    def _step(self, quantity: Quantity, shown: str, source: str, **rest: Any) -> Step:
        rest = {"doc": quantity.doc, "source": source, **rest}
        return self.shelf.step(quantity.name, quantity.symbol, shown, **rest)

    def _input(self, quantity: Quantity, given: Given) -> Step:
        return self._step(
            quantity,
            input_text(quantity, given),
            str(given.source or ""),
            place=place_text(given.place, self.shelf.project),
            url=given.source.url if given.source else "",
            kind="input",
        )

    def _computed(self, quantity: Quantity, group: Group | None, index: int | None) -> Step:
        names = {*(group.givens if group else ()), *self.binding.givens}
        formula = self.registry.choose(
            quantity, group.kind if group else None, self.binding.engine, names
        )
        needs = [self.registry[name] for name in formula.needs]
        made = formula.function(*(self._leaf(need, index) for need in needs))
        text = made if isinstance(made, Symbolic) else Symbolic(numbers_of(made), numbers_of(made))
        return self._step(
            quantity,
            _shown(self._value(quantity.name, index), quantity),
            formula.source,
            doc=formula.doc,
            symbols=text.symbols,
            numbers=text.numbers,
            steps=tuple(
                self.quantity(need, index if need.per == "layer_group" else None) for need in needs
            ),
        )

    def _leaf(self, need: Quantity, index: int | None) -> Symbolic:
        value = self._value(need.name, index if need.per == "layer_group" else None)
        if isinstance(value, tuple):
            text = " + ".join(numbers_of(item) for item in value)
            return Symbolic(need.symbol, text if len(value) == 1 else f"({text})")
        return leaf(need.symbol, value)

    def _value(self, name: str, index: int | None) -> Any:
        return self.numbers.value(name) if index is None else self.numbers.group_value(name, index)


def input_text(quantity: Quantity, given: Given) -> str:
    """An input as it was written, and in base units where they are others."""
    if isinstance(given.value, Lengths):
        return given.text
    base = _shown(given.value, quantity)
    written = given.text.strip()
    if written.replace(",", "").replace("_", "") == base.replace(",", ""):
        return base
    number, _, unit = written.partition(" ")
    return f"{number} {unit.strip()} = {base}" if unit else base


def _also_shown(base: str, shown: str) -> str:
    """The value in base units, then as the cell shows it, where that is another text."""
    if base == shown or base.endswith((f"= {shown}", f"≈ {shown}")):
        return base
    if base.startswith(f"{shown} ="):
        return base
    if _exact(base, shown) and base.partition(" ")[2] == shown.partition(" ")[2]:
        return shown  # 0.8 and 0.80
    return f"{base} {'=' if _exact(base, shown) else '≈'} {shown}"


def _exact(base: str, shown: str) -> bool:
    """Whether nothing is rounded away between two texts, told from the digits that are printed."""
    significant = [
        text.split(" ")[0].rstrip("x").replace(",", "").replace(".", "").strip("0")
        for text in (base.split(" = ")[-1], shown)
    ]
    return significant[0] == significant[1]


def _in_base(value: Any, unit: Unit) -> str:
    if isinstance(value, str):
        return value
    dimension = unit.dimension
    return figures(value) + (f" {dimension}" if dimension != "1" else "")


def _shown(value: Any, quantity: Quantity) -> str:
    text = quantity.unit.text or quantity.unit.dimension
    unit = f" {text}" if text != "1" else ""
    if hasattr(value, "__len__"):
        return f"{numbers_of(value)}{unit} ({len(value):,} values)"
    return figures(plain(value)) + unit
