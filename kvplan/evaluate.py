"""A Plan in, Results out: formulas run for every cell, or once over a whole swept axis."""

from __future__ import annotations

import ast
import graphlib
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvplan.errors import KvplanError, Problem, ValueProblem
from kvplan.records import Binding, Cell, Plan, Results, TablePlan, TableResult, Wish
from kvplan.registry import Quantity, Registry, load_registry
from kvplan.values.expression import Expression
from kvplan.values.ops import OPS, is_array
from kvplan.workloads.lengths import Lengths

ARRAY_ROWS = 64
LARGEST = 1e300
EXACT = 2.0**53 - 1
MAX_SECONDS = 120.0


def evaluate(plan: Plan) -> Results:
    """A value for every cell; raises KvplanError with every cell that has none."""
    problems = _Faults()
    values: dict[str, Cell] = {}
    by_key = {wish.key: (wish, binding) for wish, binding in plan.values}

    def value_named(key: str) -> Any:
        if key not in values:
            wish, binding = by_key[key]
            value = _evaluate_wish(wish, Numbers(binding), value_lookup(key))
            values[key] = Cell(key, wish, binding, value)
        return values[key].value

    def value_lookup(own: str) -> Mapping[str, Any]:
        return _Lazy(by_key, value_named, own)

    # In order of dependence, so that a long chain is no deep recursion.
    needs = {k: [n for n in w.names if n in by_key and n != k] for k, (w, _) in by_key.items()}
    for key in graphlib.TopologicalSorter(needs).static_order():
        _guard(problems, by_key[key][0], "", value_named, key)
    seen = names_seen_by_rows(plan)
    outer = _Lazy({k: k for k in by_key if k in seen}, value_named)
    tables = {t.name: _table(t, outer, problems) for t in plan.tables}
    if problems:
        # A fault of a column is told once, for the first row that has it.
        raise KvplanError(list({(p.place, p.what): p for p in reversed(problems)}.values()))
    ordered = {key: values[key] for key in by_key}
    return Results(plan, ordered, tables)


def names_seen_by_rows(plan: Plan) -> set[str]:
    """Values that expressions of tables see.

    One that only repeats a quantity must not hide what a row gives for that quantity.
    """
    return {w.key for w, b in plan.values if w.quantity != w.key or b is not plan.binding}


class _Faults(list[Problem]):
    """The faults found so far, and until when cells may be computed."""

    def __init__(self) -> None:
        super().__init__()
        self.until = time.monotonic() + MAX_SECONDS

    def check_time(self, wish: Wish) -> None:
        """Ends an evaluation that would go on and on."""
        if time.monotonic() > self.until:
            what = f"the experiment takes more than {MAX_SECONDS:g} s to evaluate"
            fix = "use fewer rows or fewer requests"
            raise KvplanError([*self, Problem(what, "it stopped at this cell", fix, wish.place)])


class _Lazy(Mapping[str, Any]):
    """Values computed when first asked for."""

    def __init__(self, keys: Mapping[str, Any], compute: Any, without: str = "") -> None:
        self._keys, self._compute, self._without = keys, compute, without

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise KeyError(key)
        return self._compute(key)

    def __contains__(self, key: object) -> bool:
        return key in self._keys and key != self._without

    def __iter__(self) -> Any:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class Numbers:
    """The quantities of one binding, computed when first asked for and kept."""

    def __init__(self, binding: Binding, swept: Mapping[str, Any] | None = None) -> None:
        self.binding, self.swept = binding, swept or {}
        self.registry: Registry = load_registry()
        self._known: dict[str, Any] = {}
        self._group_known: list[dict[str, Any]] = [{} for _ in binding.groups]

    def value(self, name: str) -> Any:
        """A quantity of the whole model; for one per layer group, the tuple over the groups."""
        if name not in self._known:
            self._known[name] = self._compute(self.registry[name])
        return self._known[name]

    def known(self) -> list[Any]:
        """What was computed so far."""
        return [v for known in (self._known, *self._group_known) for v in known.values()]

    def _compute(self, quantity: Quantity) -> Any:
        if quantity.per == "layer_group":
            if not self.binding.groups:
                raise ValueProblem(f"'{quantity.name}' needs a model", "", "uses: {model: ...}")
            return tuple(
                self.group_value(quantity.name, i) for i in range(len(self.binding.groups))
            )
        if quantity.name in self.swept:
            return self.swept[quantity.name]
        if quantity.name in self.binding.givens:
            value = self.binding.givens[quantity.name].value
            return value.series(quantity.name) if isinstance(value, Lengths) else value
        if quantity.constant is not None:
            return quantity.constant
        if quantity.is_input:
            raise missing_input(quantity)
        formula = self.registry.choose(quantity, None, self.binding.engine, self.binding.givens)
        return self._run(quantity, formula.function, [self.value(n) for n in formula.needs])

    def group_value(self, name: str, index: int) -> Any:
        """A quantity of one layer group; what is not per group is that of the whole model."""
        quantity = self.registry[name]
        if quantity.per != "layer_group":
            return self.value(name)
        known = self._group_known[index]
        if name not in known:
            group = self.binding.groups[index]
            if name in group.givens:
                known[name] = group.givens[name].value
            elif quantity.is_input:
                raise missing_input(quantity, f" (layer group '{group.name}')")
            else:
                formula = self.registry.choose(
                    quantity, group.kind, self.binding.engine, {*group.givens, *self.binding.givens}
                )
                known[name] = self._run(
                    quantity, formula.function, [self.group_value(n, index) for n in formula.needs]
                )
        return known[name]

    def _run(self, quantity: Quantity, function: Any, arguments: list[Any]) -> Any:
        try:
            return function(*arguments)
        except ZeroDivisionError:
            raise ValueProblem(f"'{quantity.name}' divides by zero here", quantity.doc) from None
        except OverflowError:
            raise ValueProblem(f"'{quantity.name}' is too large to compute") from None


def missing_input(quantity: Quantity, where: str = "") -> ValueProblem:
    """An input nobody gave: an error, never a default."""
    sample = "1" if not any(quantity.unit.exponents) else f"1 {quantity.show.text}"
    return ValueProblem(
        f"'{quantity.name}' is not given{where}",
        quantity.doc,
        "give a workload"
        if quantity.per == "request"
        else f'add {quantity.name}: "{sample}" to uses, with or the row',
    )


def sweep(binding: Binding, swept: Mapping[str, Any], names: list[str]) -> list[Any]:
    """Quantities over float64 arrays of some inputs, each formula run once."""
    numbers = Numbers(binding, swept)
    return [numbers.value(name) for name in names]


def _evaluate_wish(wish: Wish, numbers: Numbers, outer: Mapping[str, Any]) -> Any:
    value = _value_of_wish(wish, numbers, outer)
    if isinstance(value, (int, float)):
        require_finite(value, wish)
    return value


def require_finite(value: int | float, wish: Wish) -> None:
    """Refuses a cell that no float can hold, before other cells grow from it."""
    try:
        finite = math.isfinite(value) and abs(value) <= LARGEST
    except OverflowError:
        finite = False
    if not finite:
        raise ValueProblem(f"'{wish.key}' is larger than any number kvplan holds")


def _value_of_wish(wish: Wish, numbers: Numbers, outer: Mapping[str, Any]) -> Any:
    def lookup(name: str) -> Any:
        value = outer[name] if name in outer else numbers.value(name)
        if isinstance(value, tuple):
            import numpy

            return numpy.array(value, dtype=numpy.float64)
        # Products of whole numbers of 64 bit would wrap round in silence.
        return value.astype("float64") if is_array(value) else value

    if wish.quantity:
        value = numbers.value(wish.quantity)
        if isinstance(value, tuple):
            if len(set(value)) != 1:
                raise ValueProblem(
                    f"'{wish.quantity}' differs between the layer groups of the model",
                    "",
                    "ask for a quantity of the whole model",
                )
            return value[0]
        if numbers.registry[wish.quantity].per == "request":
            raise ValueProblem(
                f"'{wish.quantity}' has one value a request",
                "",
                "ask for a quantity of the whole workload",
            )
        return value
    if wish.expression:
        return wish.expression.evaluate(lookup, OPS)
    if wish.choice:
        condition, then, otherwise = wish.choice
        return then if condition.evaluate(lookup, OPS) else otherwise
    if wish.name_list:
        return _names(wish, lookup, numbers.binding, outer)
    return _label(wish, numbers.binding)


def beside(binding: Binding, entry: Binding) -> Binding:
    """A binding with the inputs of one catalog entry laid over it."""
    givens = {**binding.givens, **entry.givens}
    return replace(binding, givens=givens, groups=entry.groups or binding.groups)


def _names(wish: Wish, lookup: Any, row: Binding, outer: Mapping[str, Any]) -> str:
    assert wish.name_list
    found = []
    for binding in wish.name_list.bindings:
        # What follows from the entry's own inputs must follow from this entry, not from the row's.
        numbers = Numbers(beside(row, binding))

        def inside(name: str, binding: Binding = binding, numbers: Numbers = numbers) -> Any:
            is_own = name in binding.givens or name not in outer
            return numbers.value(name) if is_own else lookup(name)

        if wish.name_list.when.evaluate(inside, OPS):
            found.append(binding.shorts[wish.name_list.entity])
    return ", ".join(found) or "none"


def _label(wish: Wish, binding: Binding) -> str:
    label = wish.label or ""
    if label not in binding.labels:
        raise ValueProblem(
            f"there is no '{label}' to label the row with",
            "",
            "labels: " + ", ".join(binding.labels),
        )
    return binding.labels[label]


def _guard(problems: _Faults, wish: Wish, where: str, action: Any, *arguments: Any) -> Any:
    """Runs an evaluation, turning its fault into a Problem at the wish's place."""
    problems.check_time(wish)
    try:
        return action(*arguments)
    except ValueProblem as error:
        hint = f"in {where}" if where else ""
        why = "\n".join(part for part in (error.why, hint) if part)
        found = error.at(wish.place)
        problems.append(Problem(found.what, why, found.fix, found.place))
        return None


def _table(plan: TablePlan, outer: Mapping[str, Any], problems: _Faults) -> TableResult:
    if len(plan.rows) >= ARRAY_ROWS and _can_sweep(plan):
        try:
            return _swept_table(plan, outer)
        except ValueProblem:
            pass  # the scalar path names the row that fails
    rows = tuple(_row(plan, index, outer, problems) for index in range(len(plan.rows)))
    return TableResult(plan, rows)


def _row(
    plan: TablePlan, index: int, outer: Mapping[str, Any], problems: _Faults
) -> tuple[Cell, ...]:
    row = plan.rows[index]
    shared: dict[int, Numbers] = {}
    done: dict[str, Any] = {}
    wishes = {w.key: i for i, w in enumerate(plan.columns)}

    def compute(key: str) -> Any:
        if key not in done:
            column = wishes[key]
            wish, binding = plan.columns[column], row.bindings[column]
            numbers = shared.setdefault(id(binding), Numbers(binding))
            done[key] = _evaluate_wish(wish, numbers, names_around(key))
        return done[key]

    def names_around(own: str) -> Mapping[str, Any]:
        keys = {k: k for k in (*wishes, *outer) if k != own}
        return _Lazy(keys, lambda k: compute(k) if k in wishes else outer[k])

    cells = []
    for wish, binding in zip(plan.columns, row.bindings, strict=True):
        address = f"{plan.name}[{row.address}].{wish.key}"
        value = _guard(problems, wish, f"{plan.name}[{row.address}]", compute, wish.key)
        cells.append(Cell(address, wish, binding, value))
    # The functions above hold each other, so the series of a row would stay until a collection.
    shared.clear()
    return tuple(cells)


def _can_sweep(plan: TablePlan) -> bool:
    """Whether the rows differ only in numbers and every formula can take arrays."""
    registry = load_registry()
    plain_columns = all(len({id(b) for b in row.bindings}) == 1 for row in plan.rows)
    numeric = all(a in registry and registry[a].per is None for a in plan.axes)
    if not plan.axes or not plain_columns or not numeric or any(w.is_text for w in plan.columns):
        return False
    needed: set[str] = set()
    for wish in plan.columns:
        expression = wish.expression
        needed.update(expression.names if expression else (wish.quantity or "",))
        if expression and not is_elementwise(expression):
            return False
    return takes_arrays(registry, needed)


def takes_arrays(registry: Registry, names: set[str]) -> bool:
    """Whether quantities can be computed over arrays of their inputs, all points at once."""
    known = [registry[name] for name in _closure(registry, names)]
    functions = [f.function for quantity in known for f in quantity.variants]
    called = {name for function in functions for name in function.__code__.co_names}
    return not any(quantity.per == "request" for quantity in known) and not any(
        OPS[name].scalar_only for name in called & set(OPS)
    )


def is_elementwise(expression: Expression) -> bool:
    """Whether an expression means for an array what it means for each of its numbers."""
    calls = [node for node in ast.walk(expression.tree) if isinstance(node, ast.Call)]
    return all(isinstance(call.func, ast.Name) and OPS[call.func.id].elementwise for call in calls)


def _closure(registry: Registry, names: set[str]) -> set[str]:
    """The names and all that they can depend on."""
    seen: set[str] = set()
    stack = [n for n in names if n in registry]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack += [n for f in registry[name].variants for n in f.needs]
    return seen


def _swept_table(plan: TablePlan, outer: Mapping[str, Any]) -> TableResult:
    import numpy

    first = plan.rows[0].bindings[0]
    swept = {
        axis: numpy.array(
            [row.bindings[0].givens[axis].value for row in plan.rows], dtype=numpy.float64
        )
        for axis in plan.axes
    }
    columns = sweep_columns(plan.columns, first, swept, outer)
    lists = [numpy.broadcast_to(c, (len(plan.rows),)).tolist() for c in columns]
    rows = tuple(
        tuple(
            Cell(f"{plan.name}[{row.address}].{w.key}", w, row.bindings[i], lists[i][r])
            for i, w in enumerate(plan.columns)
        )
        for r, row in enumerate(plan.rows)
    )
    return TableResult(plan, rows)


def sweep_columns(
    wishes: tuple[Wish, ...], binding: Binding, swept: Mapping[str, Any], outer: Mapping[str, Any]
) -> list[Any]:
    """The columns of a table over arrays of its axes; raises ValueProblem if not finite."""
    import numpy

    numbers = Numbers(binding, swept)
    done: dict[str, Any] = {}
    by_key = {w.key: w for w in wishes}

    def compute(key: str) -> Any:
        if key not in done:
            keys = {k: k for k in (*by_key, *outer) if k != key}
            around = _Lazy(keys, lambda k: compute(k) if k in by_key else outer[k])
            done[key] = _evaluate_wish(by_key[key], numbers, around)
        return done[key]

    with numpy.errstate(divide="ignore", invalid="ignore", over="ignore"):
        columns = [compute(w.key) for w in wishes]
    if not all(numpy.isfinite(column).all() for column in columns):
        raise ValueProblem("a cell of the table is not a finite number")
    used = [*swept.values(), *columns, *(v for v in numbers.known() if is_array(v))]
    if any(numpy.abs(column).max() > EXACT for column in used):
        raise ValueProblem("a number of the table is too large to be whole in an array")
    return columns


__all__ = ["Expression", "Numbers", "evaluate", "missing_input", "sweep", "sweep_columns"]
