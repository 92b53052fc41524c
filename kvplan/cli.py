"""The command line: parse, call the pipeline, print; no arithmetic."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kvplan.errors import KvplanError, Problem

FINE, DIFFERS, WRONG_INPUT, BUG = 0, 1, 2, 3
_F = TypeVar("_F", bound=Callable[..., Any])

files = click.argument(
    "files", nargs=-1, required=True, metavar="FILES...", type=click.Path(path_type=Path)
)
sets = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="NAME=VALUE",
    help="Override an input, for instance --set model=llama-3.1-8b.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="kvplan", prog_name="kvplan")
def cli() -> None:
    """Capacity plans for LLM serving that can be reviewed.

    An experiment is a YAML file with a question, its inputs and the tables and claims that
    answer it.

    \b
    Example:
      kvplan render experiments/*.yaml
    """


def _command(function: _F) -> _F:
    """Registers a command whose KvplanErrors are printed and end with exit code 2."""

    @cli.command()
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        from kvplan.errors import KvplanError

        try:
            code = function(*args, **kwargs) or FINE
        except KvplanError as error:
            _print_problems(error.problems)
            code = WRONG_INPUT
        sys.exit(code)

    return guarded  # type: ignore[no-any-return]


@_command
@files
@sets
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the reports; default reports/ beside experiments/.",
)
def render(files: tuple[Path, ...], overrides: tuple[str, ...], output: Path | None) -> int:
    """Write the report of each experiment as Markdown and HTML.

    \b
    Example:
      kvplan render experiments/token_cost.yaml --set kv_budget="40 GiB" -o build
    """
    from kvplan.pipeline import write_reports

    def one(file: Path) -> int:
        for written in write_reports(file, overrides, output):
            click.echo(_near(written))
        return FINE

    return _each(files, one)


@_command
@files
def check(files: tuple[Path, ...]) -> int:
    """Hold claims, golden numbers and committed reports against what is computed now.

    Writes nothing. Exit code 0: all as reviewed; 1: something differs; 2: an input is wrong.

    \b
    Example:
      kvplan check experiments/*.yaml
    """
    from kvplan import pipeline
    from kvplan.load import project_folder

    def one(file: Path) -> int:
        found = pipeline.check(file)
        for line in found:
            click.echo(line)
        return DIFFERS if found else FINE

    code = _each(files, one)
    lost = [
        line
        for project in dict.fromkeys(project_folder(f) for f in files)
        for line in pipeline.orphans(project)
    ]
    for line in lost:
        click.echo(line)
    code = max(code, DIFFERS if lost else FINE)
    if code == FINE:
        click.echo(f"{len(files)} experiments: claims, golden numbers and reports agree")
    return code


@_command
@files
def accept(files: tuple[Path, ...]) -> int:
    """Make the numbers computed now the reviewed ones, and say what moved.

    Refuses when the environment has CI set: reviewed numbers come from a person.

    \b
    Example:
      kvplan accept experiments/token_cost.yaml
    """
    from kvplan import pipeline
    from kvplan.errors import KvplanError, Problem

    if os.environ.get("CI"):
        raise KvplanError(
            Problem(
                "'accept' does not run in CI (CI is set)",
                "golden numbers are accepted by the person who reviewed them",
                "run it on your machine and commit golden/",
            )
        )

    def one(file: Path) -> int:
        for line in pipeline.accept(file):
            click.echo(line)
        return FINE

    return _each(files, one)


@_command
@click.argument("file", type=click.Path(path_type=Path))
@sets
@as_json
def show(file: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Print the numbers of an experiment: its tables, or one JSON object.

    \b
    Example:
      kvplan show experiments/token_cost.yaml --json
    """
    from kvplan import pipeline

    if as_json:
        click.echo(json.dumps(pipeline.show(file, overrides), ensure_ascii=False, indent=1))
        return FINE
    from kvplan.tables import pipe_table, shown_values, tables

    results = pipeline.run(file, overrides).results
    for title, cell in shown_values(results):
        click.echo(f"{title}: {cell.text}")
    for table in tables(results):
        click.echo(f"\n{table.title}\n\n{pipe_table(table)}")
    return FINE


@_command
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("cell")
@sets
@as_json
def explain(file: Path, cell: str, overrides: tuple[str, ...], as_json: bool) -> int:
    """Print how a value, or a cell table[row].column, comes about.

    \b
    Example:
      kvplan explain experiments/paged_allocation.yaml "page_size_sweep[page=16].batch"
    """
    from dataclasses import asdict

    from kvplan import pipeline
    from kvplan.address import find_cell
    from kvplan.errors import KvplanError, Place, ValueProblem
    from kvplan.explain import explain as steps_of
    from kvplan.explain import tree

    results = pipeline.run(file, overrides).results
    try:
        found = find_cell(results, cell)
    except ValueProblem as error:
        raise KvplanError(error.at(Place("CELL", 1, 1, len(cell), cell))) from None
    step = steps_of(results)(found)
    if as_json:
        click.echo(
            json.dumps({"cell": found.address, **asdict(step)}, ensure_ascii=False, indent=1)
        )
    else:
        click.echo("\n".join([found.address, *tree(step)]))
    return FINE


@_command
@click.argument(
    "what",
    type=click.Choice(
        [
            "models",
            "accelerators",
            "tiers",
            "workloads",
            "dtypes",
            "formulas",
            "functions",
            "experiments",
        ]
    ),
)
@as_json
def list(what: str, as_json: bool) -> int:
    """List what can be named in an experiment.

    \b
    Example:
      kvplan list formulas
    """
    from kvplan.listing import listing

    headers, rows = listing(what)
    if as_json:
        click.echo(
            json.dumps(
                [dict(zip(headers, row, strict=True)) for row in rows], ensure_ascii=False, indent=1
            )
        )
        return FINE
    from tabulate import tabulate

    click.echo(tabulate(rows, headers=headers, tablefmt="plain", disable_numparse=True))
    return FINE


@_command
def schema() -> int:
    """Print the JSON Schema of an experiment file, for editors.

    \b
    Example:
      kvplan schema > experiment.schema.json
    """
    from kvplan.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=1))
    return FINE


@_command
@click.argument("name")
def new(name: str) -> int:
    """Write experiments/NAME.yaml, a commented start that renders at once.

    \b
    Example:
      kvplan new my_question
    """
    from kvplan.starting import start

    click.echo(f"{_near(start(name))} written; next: kvplan render {_near(start_path(name))}")
    return FINE


def start_path(name: str) -> Path:
    """Where `new` puts an experiment."""
    return Path("experiments") / f"{name}.yaml"


def _each(paths: Iterable[Path], action: Callable[[Path], int]) -> int:
    """Runs an action on every file; a file that fails does not keep the others back."""
    from kvplan.errors import KvplanError

    code = FINE
    for path in _with_progress(tuple(paths)):
        try:
            code = max(code, action(path))
        except KvplanError as error:
            _print_problems(error.problems)
            code = WRONG_INPUT
    return code


def _with_progress(paths: tuple[Path, ...]) -> Iterator[Path]:
    """The paths, with a bar once more than a second of work is left and a person watches."""
    started = time.monotonic()
    for done, path in enumerate(paths):
        spent = time.monotonic() - started
        left = spent / done * (len(paths) - done) if done else 0.0
        if left > 1 and sys.stderr.isatty():
            with click.progressbar(paths[done:], file=sys.stderr, label="experiments") as bar:
                yield from bar
            return
        yield path


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        click.echo(str(problem), err=True)


def _near(path: Path) -> str:
    """A path as short as it can be said from here."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def main() -> None:
    """The program; anything but a reported problem is a bug and ends with exit code 3."""
    try:
        cli(prog_name="kvplan")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FINE)
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo("this is a bug in kvplan, not in your input; please report it", err=True)
        sys.exit(BUG)


if TYPE_CHECKING:
    _ = KvplanError
