"""An Experiment in, a Plan out: names become numbers, axes become rows, claims get limits."""

from __future__ import annotations

from collections.abc import Mapping

from kvplan import schema
from kvplan.axes import Axes
from kvplan.binding import Binder, set_document
from kvplan.claims import Claims
from kvplan.context import Context
from kvplan.errors import KvplanError, Problem
from kvplan.records import Binding, Experiment, Plan, RowPlan, TablePlan, Wish
from kvplan.wishes import Wishes
from kvplan.yamltext import Path_


def resolve(experiment: Experiment, overrides: tuple[str, ...] = ()) -> Plan:
    """Everything an experiment names, found; raises KvplanError with all that was not."""
    return _Resolver(experiment).plan(overrides)


class _Resolver:
    def __init__(self, experiment: Experiment) -> None:
        self.context = Context(experiment)
        self.wishes, self.axes = Wishes(self.context), Axes(self.context)
        self.claims = Claims(self.context, self.axes)

    def plan(self, overrides: tuple[str, ...]) -> Plan:
        context, spec = self.context, self.context.spec
        base = context.binder.extend(Binding(), spec.uses, ("uses",))
        if overrides:
            base = self._set(base, overrides)
        wishes = {k: self.wishes.wish(k, w, ("values", k)) for k, w in spec.values.items()}
        self.wishes.link(list(wishes.values()), {})
        self.wishes.check_names(spec.values, list(wishes.values()))
        values = tuple(
            (wish, context.binder.extend(base, spec.values[k].overrides, ("values", k, "with")))
            for k, wish in wishes.items()
        )
        tables = tuple(self._table(n, t, base, wishes) for n, t in spec.tables.items())
        claims = tuple(self.claims.claim(i, c, wishes, tables) for i, c in enumerate(spec.claims))
        if context.problems:
            raise KvplanError(_distinct(context.problems))
        return Plan(context.experiment, base, values, tables, claims, overrides)

    def _set(self, base: Binding, overrides: tuple[str, ...]) -> Binding:
        setting, document = set_document(overrides)
        binder = Binder(self.context.experiment.project, document, self.context.problems)
        return binder.extend(base, setting, ())

    def _table(
        self, name: str, table: schema.Table, base: Binding, values: Mapping[str, Wish]
    ) -> TablePlan:
        path: Path_ = ("tables", name)
        columns = tuple(self._column(path, i, c) for i, c in enumerate(table.columns))
        self.wishes.link(list(columns), values)
        self.wishes.check_names({c.key: c for c in table.columns}, list(columns), values)
        title = table.title or name.replace("_", " ").capitalize()
        rows = tuple(
            RowPlan(address, label, self._cells(path, table, binding))
            for address, label, binding in self.axes.rows(name, table, base, path)
        )
        return TablePlan(name, title, table.note, columns, rows, tuple(table.rows or ()))

    def _column(self, path: Path_, index: int, column: schema.Column) -> Wish:
        here: Path_ = (*path, "columns", index)
        # `- key: {...}` has a step more than the short form `- key`.
        inner = (*here, column.key)
        long = inner in self.context.document.values
        return self.wishes.wish(column.key, column, inner if long else here)

    def _cells(self, path: Path_, table: schema.Table, binding: Binding) -> tuple[Binding, ...]:
        """What is given for each column of a row; the row's own binding where nothing is added."""
        return tuple(
            self.context.binder.extend(binding, c.overrides, (*path, "columns", i, c.key, "with"))
            for i, c in enumerate(table.columns)
        )


def _distinct(problems: list[Problem]) -> list[Problem]:
    return list({(p.place, p.what): p for p in problems}.values())
