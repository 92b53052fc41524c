"""Tables, Verdicts and Work in, a report as Markdown or HTML out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvplan.errors import KvplanError, Problem
from kvplan.explain import explain, place_text
from kvplan.inventory import InputLine, formulas, inputs
from kvplan.judge import derivation_text
from kvplan.markdown import without_html
from kvplan.prose import Filler, filler
from kvplan.records import Cell, Results, ShownCell, ShownTable, Step, Verdict
from kvplan.sandbox import render_template
from kvplan.schema import ExperimentFile
from kvplan.tables import pipe_table, shown_values, tables
from kvplan.values.show import show_quantity
from kvplan.work import MAX_LINES, MAX_PER_TABLE, Derivation, Work


@dataclass(frozen=True)
class OverrideLine:
    """A word of --set, and what gives that input itself and so keeps its own."""

    word: str
    kept_by: str


@dataclass(frozen=True)
class ClaimLine:
    """One claim of the report; `verdict` is holds, refuted, fails or unrefuted."""

    id: str
    says: str
    verdict: str
    reason: str
    measured: str
    expected: str
    cell: str
    derivation: str
    because: str
    source: str


@dataclass(frozen=True)
class Tally:
    """How many claims came out how."""

    total: int
    holds: int
    refuted: int
    fails: int
    unrefuted: int


@dataclass(frozen=True)
class TableView:
    """One table of the report, its prose, and its Markdown form; a column is header and a cell."""

    table: ShownTable
    columns: tuple[tuple[str, ShownCell], ...]
    note: str
    markdown: str


@dataclass(frozen=True)
class Report:
    """What a template prints. Prose is Markdown with its cells filled in, all else plain text."""

    id: str
    file: str
    title: str
    question: str
    source: str
    overrides: tuple[OverrideLine, ...]
    takeaway: str
    tally: Tally
    inputs: tuple[InputLine, ...]
    formulas: tuple[Step, ...]
    values: tuple[tuple[str, ShownCell], ...]
    tables: tuple[TableView, ...]
    text: str
    caveats: tuple[str, ...]
    claims: tuple[ClaimLine, ...]
    derived: Callable[[], Derived]


@dataclass(frozen=True)
class Derived:
    """The derivations an HTML report opens; `cut` counts the cells without, "" for values."""

    ids: dict[str, str]
    derivations: tuple[Derivation, ...]
    cut: dict[str, int]
    most: int
    lines: int


def report(results: Results, verdicts: tuple[Verdict, ...]) -> Report:
    """The report of one experiment; raises KvplanError when prose names what is not there."""
    plan = results.plan
    experiment, spec = plan.experiment, plan.experiment.spec
    problems: list[Problem] = []
    fill = _prose(filler(experiment, results, problems))
    work = Work(explain(results))
    steps = [work.steps_of(cell) for cell in _sample(results)]
    made = Report(
        id=experiment.id,
        file=place_text(experiment.document.place(()), experiment.project).partition(":")[0],
        title=spec.title,
        question=fill(("question",), spec.question),
        source=spec.source or "",
        overrides=tuple(_override(word, spec) for word in plan.overrides),
        takeaway=fill(("takeaway",), spec.takeaway),
        tally=_tally(verdicts),
        inputs=inputs(steps, results),
        formulas=formulas(steps),
        values=shown_values(results),
        tables=tuple(_table_view(table, fill) for table in tables(results)),
        text=fill(("text",), spec.text),
        caveats=tuple(fill(("caveats", i), c) for i, c in enumerate(spec.caveats)),
        claims=tuple(_claim(v, i, fill) for i, v in enumerate(verdicts)),
        derived=lambda: _derived(work, results),
    )
    if problems:
        raise KvplanError(problems)
    return made


def _override(word: str, spec: ExperimentFile) -> OverrideLine:
    """A word of --set, and where the experiment gives that input itself, which stays."""
    name = word.partition("=")[0].strip()
    own = [f"the value {key}" for key, wanted in spec.values.items() if name in wanted.overrides]
    for key, table in spec.tables.items():
        cases = [case or {} for case in (table.cases or {}).values()]
        columns = [column.overrides for column in table.columns]
        if name in (table.rows or {}) or any(name in given for given in (*cases, *columns)):
            own.append(f"the table {key}")
    return OverrideLine(word, ", ".join(own))


def render(made: Report, template: str, project: Path, form: str) -> str:
    """The report as `form`, "md" or "html", through templates/<template>.<form>.j2."""
    # `kept` is where the filter `once` keeps what it printed.
    context: dict[str, object] = {"report": made, "kept": {}}
    if form == "html":
        context["work"] = made.derived()
    text = render_template(f"{template}.{form}.j2", project, context)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(_without_gaps(lines)) + "\n"


def _without_gaps(lines: list[str]) -> list[str]:
    """Lines with one blank between blocks, however many a template's branches leave."""
    return [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]


def _prose(fill: Filler) -> Filler:
    return lambda path, text: without_html(fill(path, text)).strip()


def _sample(results: Results) -> list[Cell]:
    """The cells whose derivations stand for all: values, a telling row of every table, others."""
    found = list(results.values.values())
    tables_ = results.tables.values()
    for table in tables_:
        found += next((row for row in table.rows if all(c.value != 0 for c in row)), table.rows[0])
    for table in tables_:
        for row in table.rows[: max(1, MAX_PER_TABLE // len(table.plan.columns))]:
            found += row
    return found


def _derived(work: Work, results: Results) -> Derived:
    left = {"": work.add(results.values.values())}
    left |= {
        name: work.add(cell for row in table.rows for cell in row)
        for name, table in results.tables.items()
    }
    cut = {name: count for name, count in left.items() if count}
    return Derived(work.ids, tuple(work.derivations.values()), cut, MAX_PER_TABLE, MAX_LINES)


def _table_view(table: ShownTable, fill: Filler) -> TableView:
    note = fill(("tables", table.name, "note"), table.note) if table.note else ""
    columns = tuple(zip(table.headers, table.rows[0], strict=True))
    return TableView(table, columns, note, pipe_table(table))


def _verdict(verdict: Verdict) -> str:
    if verdict.reason:
        return "fails"
    if verdict.plan.holds:
        return "holds" if verdict.holds else "fails"
    return "unrefuted" if verdict.holds else "refuted"


def _tally(verdicts: tuple[Verdict, ...]) -> Tally:
    count = Counter(_verdict(verdict) for verdict in verdicts)
    words = ("holds", "refuted", "fails", "unrefuted")
    return Tally(len(verdicts), *(count[word] for word in words))


def _claim(verdict: Verdict, index: int, fill: Filler) -> ClaimLine:
    claim = verdict.plan
    measured = show_quantity(verdict.measured, claim.unit)
    if claim.constant:
        measured = "constant" if verdict.holds else f"varies by {verdict.measured:.3g} of itself"
    return ClaimLine(
        claim.id,
        claim.says,
        _verdict(verdict),
        verdict.reason,
        measured,
        verdict.expected,
        claim.cell or claim.constant or "",
        derivation_text(verdict) if claim.derivation else "",
        fill(("claims", index, "because"), claim.because),
        claim.source or "",
    )
