"""The command line: parse, call the pipeline, print; no arithmetic."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kvplan import __version__
from kvplan.arguments import LISTS, ExperimentFile, entry_names, found_files
from kvplan.progress import Progress

FINE, DIFFERS, WRONG_INPUT, BUG = 0, 1, 2, 3
# What a shell reports for Ctrl-C and for a reader that went away.
STOPPED, NO_READER = 130, 141
Outcome = tuple[int, list[str]]

files = click.argument("files", nargs=-1, required=True, metavar="FILES...", type=ExperimentFile())
one_file = click.argument("file", type=ExperimentFile())
sets = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="NAME=VALUE",
    help='Override an input, for instance --set model=llama-3.1-8b --set kv_budget="40 GiB".',
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


class _InOrder(click.Group):
    """Commands in the order they are used in, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands]


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kvplan")
def cli() -> None:
    """Capacity plans for LLM serving that can be reviewed.

    An experiment is a YAML file with a question, its inputs, and the tables and claims that
    answer it. kvplan computes it, writes its report and holds its numbers against those that
    were reviewed.

    \b
    Examples:
      kvplan new my_question
      kvplan render experiments/*.yaml
      kvplan explain experiments/token_cost.yaml kv_bytes_per_token

    \b
    Exit codes:
      0  fine
      1  a claim, a golden number or a report differs from what was reviewed
      2  the input is wrong; nothing was written for it
      3  a bug in kvplan
    """


def _command(name: str, group: click.Group = cli) -> Callable[[Callable[..., int]], click.Command]:
    """Registers a command; what it returns is the exit code."""

    def register(function: Callable[..., int]) -> click.Command:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            from kvplan.errors import KvplanError

            try:
                code = function(*args, **kwargs)
            except KvplanError as error:
                _print_problems(error)
                code = WRONG_INPUT
            except BrokenPipeError:
                _drop_output()
                code = NO_READER
            sys.exit(code)

        return group.command(name)(guarded)

    return register


@_command("new")
@click.argument("name")
def new(name: str) -> int:
    """Write a first experiment, commented, that renders at once.

    It goes to experiments/NAME.yaml, which must not exist yet. NAME becomes the experiment's id:
    small letters, digits and _.

    \b
    Example:
      kvplan new my_question
    """
    from kvplan.starting import start

    written = start(name)
    for path in written:
        _say(f"{_near(path)} written")
    here = _near(written[0])
    _say(
        f"next: kvplan render {here}   writes reports/{name}.md and .html\n"
        f"      kvplan accept {here}   keeps the numbers, once you have read them\n"
        f"      kvplan check {here}    says from then on what moved"
    )
    return FINE


@_command("render")
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

    Each file is the old one or the whole new one, whatever happens. With --set the report says
    at its top what was overridden; write it to another folder with -o.

    \b
    Examples:
      kvplan render experiments/*.yaml
      kvplan render experiments/token_cost.yaml --set kv_budget="40 GiB" -o build
    """
    from kvplan.pipeline import require_own_files, write_reports

    require_own_files(found_files(files), output)

    def one(file: Path) -> Outcome:
        return FINE, [_near(path) for path in write_reports(file, overrides, output)]

    return _each(files, one)


@_command("check")
@files
def check(files: tuple[Path, ...]) -> int:
    """Say what differs from the reviewed numbers, claims and reports.

    Everything is computed anew and nothing is written. Exit code 0: all as reviewed; 1: something
    differs; 2: an input is wrong.

    \b
    Example:
      kvplan check experiments/*.yaml
    """
    from kvplan import pipeline
    from kvplan.load import project_folder

    def one(file: Path) -> Outcome:
        found = pipeline.check(file)
        return (DIFFERS if found else FINE), found

    known = found_files(files)
    code = _each(known, one)
    projects = dict.fromkeys(project_folder(file) for file in known)
    lost = [line for project in projects for line in pipeline.orphans(project)]
    for line in lost:
        _say(line)
    code = max(code, DIFFERS if lost else FINE)
    if code == FINE:
        many = "1 experiment" if len(known) == 1 else f"{len(known)} experiments"
        _say(f"{many}: claims, golden numbers and reports agree")
    return code


@_command("accept")
@files
def accept(files: tuple[Path, ...]) -> int:
    """Keep the numbers of now as the reviewed ones; say what moved.

    They go to golden/. Refuses when the environment has CI set: reviewed numbers come from a
    person.

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
    pipeline.require_own_files(found_files(files))
    return _each(files, lambda file: (FINE, pipeline.accept(file)))


@_command("show")
@one_file
@sets
@as_json
def show(file: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Print the values, tables and claims of an experiment.

    JSON is one object, with numbers unrounded, in the unit named beside them.

    \b
    Examples:
      kvplan show experiments/token_cost.yaml
      kvplan show experiments/token_cost.yaml --set kv_dtype=fp8-ideal --json
    """
    from kvplan import pipeline

    if as_json:
        return _say_json(pipeline.show(file, overrides))
    from kvplan.tables import pipe_table, shown_values, tables

    done = pipeline.run(file, overrides)
    _say_changed(overrides)
    for title, cell in shown_values(done.results):
        _say(f"{title}: {cell.text}")
    for table in tables(done.results):
        _say(f"\n{table.title}\n\n{pipe_table(table)}")
    for number, verdict in enumerate(done.verdicts):
        word = "holds" if verdict.holds else "refuted"
        word += "" if verdict.as_expected else ", NOT AS EXPECTED"
        _say(("" if number else "\nClaims\n\n") + f"{word}: {verdict.plan.says}")
    return FINE


@_command("explain")
@one_file
@click.argument("cell")
@sets
@as_json
def explain(file: Path, cell: str, overrides: tuple[str, ...], as_json: bool) -> int:
    """Print how a value, or a cell table[row].column, comes about.

    Each step is shown in symbols, then in numbers, down to the inputs with their file and source.

    \b
    Examples:
      kvplan explain experiments/token_cost.yaml kv_bytes_per_token
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
        return _say_json({"cell": found.address, **asdict(step)})
    _say_changed(overrides)
    _say("\n".join([found.address, *tree(step)]))
    return FINE


@_command("sweep")
@one_file
@click.argument("quantities", nargs=-1, metavar="[QUANTITY]...", shell_complete=entry_names)
@click.option(
    "--over",
    required=True,
    metavar="NAME=FROM..TO",
    help='The input to vary, for instance --over "context=1 token..131072 token".',
)
@click.option("--where", default="", metavar="CONDITION", help="Print where this holds.")
@sets
@as_json
def sweep(
    file: Path,
    quantities: tuple[str, ...],
    over: str,
    where: str,
    overrides: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compute quantities at every point of a range of one input.

    Up to a million points, starting from what the experiment uses. Whole numbers are all
    computed, others in even steps; nothing is searched for, so a condition that comes and goes
    is seen.

    \b
    Examples:
      kvplan sweep experiments/token_cost.yaml replica_share --over "context=1 token..65536 token"
      kvplan sweep experiments/token_cost.yaml --over "context=1 token..65536 token" \\
        --where "kv_per_sequence < kv_budget / 16"
    """
    from kvplan import sweep as sweeping

    found = sweeping.sweep(file, overrides, quantities, over, where)
    if as_json:
        return _say_json({"experiment": file.stem, **sweeping.summary(found)})
    _say_changed(overrides)
    _say(*sweeping.lines(found))
    return FINE


@_command("calc")
@click.argument("quantity", shell_complete=entry_names)
@click.option("--model", help="A model of the catalog; the same as --set model=NAME.")
@click.option("--unit", default="", help="The unit to print, for instance KiB/token.")
@sets
@as_json
def calc(
    quantity: str, model: str | None, unit: str, overrides: tuple[str, ...], as_json: bool
) -> int:
    """Compute one quantity without a file, with its derivation.

    \b
    Examples:
      kvplan calc kv_per_token --model llama-3.1-8b --set kv_dtype=bf16 --unit KiB/token
      kvplan calc kv_at_context --model gpt-oss-120b --set kv_dtype=bf16 --set context="32768 token"
    """
    from dataclasses import asdict

    from kvplan.calc import calc as answer
    from kvplan.explain import explain as steps_of
    from kvplan.explain import tree
    from kvplan.tables import show_cell

    settings = ((f"model={model}",) if model else ()) + overrides
    results, cell = answer(quantity, settings, unit)
    step = steps_of(results)(cell)
    if as_json:
        shown = cell.wish.unit.text if cell.wish.unit else ""
        value = {"quantity": quantity, "value": cell.shown_value, "unit": shown}
        return _say_json({**value, "derivation": asdict(step)})
    _say(f"{quantity} = {show_cell(cell)}", "", *tree(step))
    return FINE


@cli.group("import")
def import_() -> None:
    """Read what others publish into the catalog.

    \b
    Example:
      kvplan import model config.json --id my-model
    """


@_command("model", import_)
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--id", "name", help="Its name in the catalog; default: the file's name.")
@click.option("--url", default="", help="Where the config was found; reports link to it.")
@click.option("--seen", default="", help="When, for instance 2026-01-31.")
def import_model(config: Path, name: str | None, url: str, seen: str) -> int:
    """Read a config.json into the catalog.

    A model's config.json as Hugging Face has it becomes catalog/models/ID.yaml, with the origin of
    each field. An architecture that is not known is an error; nothing is guessed.

    \b
    Example:
      kvplan import model config.json --id my-model
    """
    from kvplan.importer import write_model

    written, said = write_model(config, name, url, seen)
    _say(f"{_near(written)} written", *said)
    return FINE


@_command("list")
@click.argument("what", type=click.Choice(LISTS))
@click.argument("name", required=False, shell_complete=entry_names)
@as_json
def list_(what: str, name: str | None, as_json: bool) -> int:
    """List what an experiment can name; with NAME, all about that one.

    \b
    Examples:
      kvplan list formulas
      kvplan list models llama-3.1-8b
      kvplan list accelerators --json
    """
    from kvplan.listing import listing

    found = listing(what, name)
    if as_json:
        _say_json(found.records[0] if name else found.records)
    else:
        from tabulate import tabulate

        table = tabulate(found.rows, found.headers, tablefmt="plain", disable_numparse=True)
        _say("\n".join(line.rstrip() for line in table.splitlines()))
    for problem in found.problems:
        click.echo(str(problem), err=True)
    return WRONG_INPUT if found.problems else FINE


@_command("schema")
def schema() -> int:
    """Print the JSON Schema of an experiment file, for editors.

    An editor with a YAML language server reads the path to it from an experiment's first line.

    \b
    Example:
      kvplan schema > schema/experiment.schema.json
    """
    from kvplan.schema import schema_text

    click.echo(schema_text(), nl=False)
    return FINE


def _each(paths: Iterable[Path], action: Callable[[Path], Outcome]) -> int:
    """Runs an action on every file; a file that fails does not keep the others back."""
    from kvplan.errors import KvplanError

    known, worst = found_files(paths), FINE
    with ExitStack() as stack:
        progress = Progress(len(known), stack)
        for path in known:
            try:
                code, lines = action(path)
                progress.say(functools.partial(_say, *lines))
            except KvplanError as error:
                code = WRONG_INPUT
                progress.say(functools.partial(_print_problems, error))
            worst = max(worst, code)
            progress.advance()
    return worst


def _say(*lines: str) -> None:
    """Prints to standard output; a disk that is full is the reader's problem, not a bug."""
    try:
        for line in lines:
            click.echo(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        from kvplan.errors import KvplanError, Problem

        _drop_output()
        problem = Problem(f"standard output cannot be written: {error.strerror or error}")
        raise KvplanError(problem) from None


def _say_json(data: object) -> int:
    _say(json.dumps(data, ensure_ascii=False, indent=1))
    return FINE


def _say_changed(overrides: tuple[str, ...]) -> None:
    if overrides:
        _say("Changed on the command line: " + ", ".join(overrides) + "\n")


def _print_problems(error: Any) -> None:
    for problem in error.problems:
        click.echo(str(problem), err=True)


def _drop_output() -> None:
    """Sends what is still buffered nowhere, so that closing it does not fail once more."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _near(path: Path) -> str:
    """A path as short as it can be said from here."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def main() -> None:
    """The program; anything but a reported problem is a bug and ends with exit code 3."""
    for stream in (sys.stdout, sys.stderr):
        # Symbols such as Σ and ⌈⌉ are printed whatever the locale says.
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="replace")
    try:
        code = cli.main(prog_name="kvplan", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        click.echo("stopped; every file is as it was, or whole", err=True)
        code = STOPPED
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo("this is a bug in kvplan, not in your input; please report it", err=True)
        code = BUG
    sys.exit(code)
