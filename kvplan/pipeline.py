"""The stages in order: the file to read first."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kvplan.errors import KvplanError, Place, Problem
from kvplan.evaluate import evaluate
from kvplan.files import write_whole
from kvplan.golden import Golden, differences, golden, golden_text, read_golden
from kvplan.judge import judge
from kvplan.load import load, project_folder
from kvplan.prose import typed_digits
from kvplan.records import Results, Verdict, Wish
from kvplan.render import render, report
from kvplan.resolve import resolve
from kvplan.values.show import plain
from kvplan.yamltext import read


@dataclass(frozen=True)
class Run:
    """One experiment, evaluated and judged."""

    results: Results
    verdicts: tuple[Verdict, ...]

    @property
    def golden(self) -> Golden:
        """Its numbers, as a golden file holds them."""
        return golden(self.results, self.verdicts)

    def text(self, form: str) -> str:
        """Its report, "md" or "html"."""
        experiment = self.results.plan.experiment
        made = report(self.results, self.verdicts)
        return render(made, experiment.spec.template, experiment.project, form)


def run(path: Path, overrides: tuple[str, ...] = ()) -> Run:
    """An experiment file to its results and verdicts."""
    experiment = load(path)
    plan = resolve(experiment, overrides)
    results = evaluate(plan)
    return Run(results, judge(results))


def require_own_files(paths: Iterable[Path], folder: Path | None = None) -> None:
    """Refuses two experiments of one name whose reports or golden files would be the same."""
    written: dict[tuple[Path, str], Path] = {}
    for path in paths:
        first = written.setdefault((folder or project_folder(path), path.stem), path)
        if os.path.realpath(first) != os.path.realpath(path):
            raise KvplanError(
                Problem(
                    f"has the same name as {first.as_posix()}",
                    "what is written for one would replace what is written for the other",
                    "run them one at a time" + (", each to a folder of its own" if folder else ""),
                    Place(path.as_posix()),
                )
            )


def write_reports(path: Path, overrides: tuple[str, ...], folder: Path | None) -> list[Path]:
    """Renders an experiment to Markdown and HTML; the paths written."""
    done = run(path, overrides)
    experiment = done.results.plan.experiment
    target = folder or experiment.project / "reports"
    made = report(done.results, done.verdicts)
    texts = {
        form: render(made, experiment.spec.template, experiment.project, form)
        for form in ("md", "html")
    }
    written = []
    inside = None if folder else experiment.project
    for form, text in texts.items():
        write_whole(target / f"{experiment.id}.{form}", text, inside)
        written.append(target / f"{experiment.id}.{form}")
    return written


def check(path: Path) -> list[str]:
    """What differs from what was reviewed: claims, golden numbers, the committed report."""
    done = run(path)
    experiment = done.results.plan.experiment
    digits = typed_digits(experiment)
    if digits:
        raise KvplanError(digits)
    found = [
        f"{v.plan.place}: claim '{v.plan.id}' {_why(v)}" for v in done.verdicts if not v.as_expected
    ]
    found += _check_golden(experiment.project, experiment.id, done.golden)
    report_file = experiment.project / "reports" / f"{experiment.id}.md"
    return found + _check_report(report_file, experiment.id, done.text("md"))


def _why(verdict: Verdict) -> str:
    if verdict.reason:
        return f"disagrees with its derivation: {verdict.reason}"
    return "does not hold" if verdict.plan.holds else "holds, but is expected to be refuted"


def _check_golden(project: Path, name: str, cells: Golden) -> list[str]:
    shown = f"golden/{name}.json"
    file = project / "golden" / f"{name}.json"
    if not os.path.exists(file):
        return [f"{shown}: missing; after review: kvplan accept experiments/{name}.yaml"]
    found = [f"{shown}: {d}" for d in differences(read_golden(file, shown), cells)]
    return found + ([f"  after review: kvplan accept experiments/{name}.yaml"] if found else [])


def _check_report(file: Path, name: str, text: str) -> list[str]:
    shown = f"reports/{name}.md"
    if not os.path.exists(file):
        return [f"{shown}: missing; run: kvplan render experiments/{name}.yaml"]
    before = read(file, shown, 50_000_000, inside=file.parent.parent)
    if before == text:
        return []
    changed = difflib.unified_diff(
        before.splitlines(), text.splitlines(), shown, "now", n=0, lineterm=""
    )
    lines = [f"  {line}" for line in changed]
    more = [f"  ... {len(lines) - 20} more lines"] if len(lines) > 20 else []
    return [f"{shown}: differs; run: kvplan render experiments/{name}.yaml", *lines[:20], *more]


def orphans(project: Path) -> list[str]:
    """Golden files and reports whose experiment is gone."""
    folder = project / "experiments"
    if not folder.is_dir():
        return []
    known = {file.stem for file in folder.glob("*.yaml")}
    kept = [*(project / "golden").glob("*.json"), *(project / "reports").glob("*.md")]
    return [
        f"{file.parent.name}/{file.name}: no experiment of this name; remove the file"
        for file in sorted(kept)
        if file.stem not in known
    ]


def accept(path: Path) -> list[str]:
    """Rewrites the golden numbers of an experiment; what moved, and by how much."""
    done = run(path)
    experiment = done.results.plan.experiment
    shown = f"golden/{experiment.id}.json"
    file = experiment.project / "golden" / f"{experiment.id}.json"
    before: Golden = {}
    note = []
    if os.path.exists(file):
        try:
            before = read_golden(file, shown)
        except KvplanError as error:
            note = [f"{shown}: {error.problems[0].what}; written anew"]
    moved = differences(before, done.golden)
    if moved or note or not os.path.exists(file):
        write_whole(file, golden_text(experiment.id, done.golden), experiment.project)
    if not before and not note:
        return [f"{shown}: new, {len(done.golden)} cells"]
    return note + [f"{shown}: {d}" for d in moved] or [f"{shown}: nothing moved"]


def show(path: Path, overrides: tuple[str, ...] = ()) -> dict[str, object]:
    """An experiment's numbers as one JSON object."""
    done = run(path, overrides)
    results = done.results
    return {
        "experiment": results.plan.experiment.id,
        **({"overrides": list(overrides)} if overrides else {}),
        "values": {
            key: {"value": cell.shown_value, "unit": _unit(cell.wish)}
            for key, cell in results.values.items()
        },
        "tables": {
            name: {
                "columns": [{"key": w.key, "unit": _unit(w)} for w in table.plan.columns],
                "rows": [{cell.wish.key: cell.shown_value for cell in row} for row in table.rows],
            }
            for name, table in results.tables.items()
        },
        "claims": [
            {
                "id": v.plan.id,
                "says": v.plan.says,
                "holds": v.holds,
                "as_expected": v.as_expected,
                "measured": _claimed(v.measured, v),
                "expected": _expected(v),
            }
            for v in done.verdicts
        ],
    }


def _unit(wish: Wish) -> str | int:
    """The unit as scripts read it: "text", a name, or the number 1 where there is none."""
    if wish.is_text or not wish.unit:
        return "text"
    return 1 if wish.unit.text == "1" else wish.unit.text


def _claimed(value: float, verdict: Verdict) -> object:
    return plain(verdict.plan.unit.from_base(value))


def _expected(verdict: Verdict) -> object:
    limits = verdict.plan.limits
    return _claimed(limits["expect"], verdict) if "expect" in limits else verdict.expected
