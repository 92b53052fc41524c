"""Tables, Verdicts and Work in, a report as Markdown or HTML out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Problem
from kvplan.explain import explain, flat, lines
from kvplan.judge import derivation_text
from kvplan.prose import Filler, filler
from kvplan.records import Cell, Results, ShownCell, ShownTable, Step, Verdict
from kvplan.sandbox import render_template
from kvplan.tables import escape, pipe_table, shown_values, tables
from kvplan.values.show import show_quantity

MAX_EXPLAINED_CELLS = 2_000


@dataclass(frozen=True)
class InputLine:
    """One input of the report: what it is, its value, where it is from."""

    symbol: str
    name: str
    shown: str
    source: str
    url: str
    doc: str


@dataclass(frozen=True)
class ClaimLine:
    """One claim of the report, in words."""

    id: str
    says: str
    verdict: str
    good: bool
    measured: str
    expected: str
    derivation: str
    because: str
    source: str


@dataclass(frozen=True)
class TableView:
    """One table of the report, in both forms, with a derivation for each cell."""

    table: ShownTable
    markdown: str
    note: str
    work: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """Everything a template prints; text is Markdown, filled in."""

    id: str
    title: str
    question: str
    source: str
    overrides: tuple[str, ...]
    inputs: tuple[InputLine, ...]
    formulas: tuple[Step, ...]
    values: tuple[tuple[str, ShownCell], ...]
    value_work: Mapping[str, str]
    tables: tuple[TableView, ...]
    takeaway: str
    text: str
    caveats: tuple[str, ...]
    claims: tuple[ClaimLine, ...]


def report(results: Results, verdicts: tuple[Verdict, ...]) -> Report:
    """The report of one experiment; raises KvplanError when prose names what is not there."""
    plan = results.plan
    experiment, spec = plan.experiment, plan.experiment.spec
    problems: list[Problem] = []
    fill = filler(experiment, results, problems)
    steps_of = explain(results)
    made = Report(
        id=experiment.id,
        title=escape(spec.title),
        question=fill(("question",), spec.question),
        source=escape(spec.source or ""),
        overrides=plan.overrides,
        inputs=_inputs(results, steps_of),
        formulas=_formulas(results, steps_of),
        values=shown_values(results),
        value_work={c.address: "\n".join(lines(steps_of(c))) for c in results.values.values()},
        tables=tuple(_table_view(results, t, fill, steps_of) for t in tables(results)),
        takeaway=fill(("takeaway",), spec.takeaway),
        text=fill(("text",), spec.text),
        caveats=tuple(fill(("caveats", i), c) for i, c in enumerate(spec.caveats)),
        claims=tuple(_claim(v, i, fill) for i, v in enumerate(verdicts)),
    )
    if problems:
        raise KvplanError(problems)
    return made


def render(made: Report, template: str, project: Path, form: str) -> str:
    """The report as `form`, "md" or "html", through templates/<template>.<form>.j2."""
    text = render_template(f"{template}.{form}.j2", project, {"report": made})
    lines_ = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(lines_) + "\n"


def _table_view(results: Results, table: ShownTable, fill: Filler, steps_of: Any) -> TableView:
    cells = [cell for row in results.tables[table.name].rows for cell in row]
    work = {
        cell.address: "\n".join(lines(steps_of(cell)))
        for cell in cells[:MAX_EXPLAINED_CELLS]
        if not cell.wish.label
    }
    note = fill(("tables", table.name, "note"), table.note) if table.note else ""
    return TableView(table, pipe_table(table), note, work)


def _sample_cells(results: Results) -> list[Cell]:
    """The values, and the first row of every table: what the formulas are shown on."""
    return [
        *results.values.values(),
        *(cell for table in results.tables.values() for cell in table.rows[0]),
    ]


def _all_steps(results: Results, steps_of: Any) -> list[Step]:
    found: dict[str, Step] = {}
    for cell in _sample_cells(results):
        if cell.wish.quantity:
            for step in flat(steps_of(cell)):
                found.setdefault(step.name, step)
    return list(found.values())


def _formulas(results: Results, steps_of: Any) -> tuple[Step, ...]:
    return tuple(step for step in _all_steps(results, steps_of) if step.numbers)


def _inputs(results: Results, steps_of: Any) -> tuple[InputLine, ...]:
    binding = results.plan.binding
    groups = {name: given for group in binding.groups for name, given in group.givens.items()}
    found = []
    for step in _all_steps(results, steps_of):
        if step.symbols or step.numbers or not step.doc or step.steps:
            continue
        given = binding.givens.get(step.name) or groups.get(step.name)
        fixed = given is not None or not step.place
        source = given.source if given else None
        found.append(
            InputLine(
                step.symbol,
                step.name,
                step.shown if fixed else "varied in the tables",
                (str(source) if source else step.source) if fixed else "given in the experiment",
                source.url if source else "",
                step.doc,
            )
        )
    return tuple(found)


def _claim(verdict: Verdict, index: int, fill: Filler) -> ClaimLine:
    claim = verdict.plan
    word = "holds" if verdict.holds else "refuted"
    if not verdict.as_expected:
        word = "FAILS" if claim.holds else "HOLDS, expected to be refuted"
    if verdict.reason:
        word = "FAILS: " + verdict.reason
    measured = (
        ("constant" if verdict.holds else "not constant")
        if claim.constant
        else show_quantity(verdict.measured, claim.unit)
    )
    return ClaimLine(
        claim.id,
        escape(claim.says),
        word,
        verdict.as_expected,
        measured,
        verdict.expected,
        derivation_text(verdict),
        fill(("claims", index, "because"), claim.because),
        escape(claim.source or ""),
    )
