"""Every command, as a person or a script meets it: output, files and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kvplan import pipeline, progress
from kvplan.arguments import CATALOG_LISTS, LISTS
from kvplan.catalog import SHELVES
from kvplan.cli import cli, main

ROOT = Path(__file__).parent.parent
KVPLAN = [sys.executable, "-m", "kvplan"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def run(*words: str) -> Result:
    """A command in this process."""
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def run_main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The whole program in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["kvplan", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one experiment, made by `kvplan new`; the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    assert run("new", "mine").exit_code == 0
    return tmp_path


@pytest.mark.parametrize("name", [None, *cli.commands])
def test_help_has_an_example_and_fits_the_screen(name: str | None) -> None:
    """Every command shows how it is used, in at most 100 columns."""
    result = run(*([name] if name else []), "--help")
    assert result.exit_code == 0
    assert "Example" in result.output and f"kvplan {name or ''}".strip() in result.output
    assert max(len(line) for line in result.output.splitlines()) <= 100
    assert "..." not in re.sub(r"(ARGS\]|FILES|QUANTITY\])\.\.\.", "", result.output)


def test_help_loads_nothing_heavy() -> None:
    """What takes long to import is imported where it is used."""
    code = (
        "import sys; from kvplan.cli import cli\n"
        "try: cli(['--help'], prog_name='kvplan')\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pydantic', 'jinja2', 'yaml', 'tabulate', 'markdown_it'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_is_the_program() -> None:
    """`python -m kvplan` answers as `kvplan` does."""
    done = subprocess.run([*KVPLAN, "--version"], env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "kvplan,")


def test_a_new_experiment_renders_accepts_and_checks_at_once(project: Path) -> None:
    """The start is complete: it renders, its claims hold, its prose has no typed digits."""
    file = "experiments/mine.yaml"
    assert run("render", file).output.split() == ["reports/mine.md", "reports/mine.html"]
    assert run("check", file).exit_code == 1
    assert "new, " in run("accept", file).output
    result = run("check", file)
    assert (result.exit_code, result.output[:12]) == (0, "1 experiment")
    assert "moved" in run("accept", file).output


def test_a_new_experiment_names_the_schema_beside_it(project: Path) -> None:
    """The first line leads an editor to a schema that exists and is the one of this version."""
    file = project / "experiments/mine.yaml"
    line = file.read_text(encoding="utf-8").splitlines()[0]
    path = file.parent / line.removeprefix("# yaml-language-server: $schema=")
    assert path.read_text(encoding="utf-8") == run("schema").output


def test_new_never_overwrites(project: Path) -> None:
    """A second `new` of the same name leaves the file as it is."""
    file = project / "experiments/mine.yaml"
    file.write_text("mine", encoding="utf-8")
    result = run("new", "mine")
    assert result.exit_code == 2 and "exists already" in result.stderr
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["My-Question", "../up", "a/b", "1st", "x.yaml", "", "é"])
def test_new_refuses_a_name_that_is_no_id(name: str, project: Path) -> None:
    """Only small letters, digits and _ make an id; nothing is written for another name."""
    result = run("new", name)
    assert result.exit_code == 2 and "cannot be an experiment's id" in result.stderr
    assert [f.name for f in project.rglob("*.yaml")] == ["mine.yaml"]


def test_render_says_what_was_overridden(project: Path) -> None:
    """With --set the numbers follow and the report says so at its top; -o moves it."""
    words = ("render", "experiments/mine.yaml", "--set", "kv_budget=20 GiB", "-o", "build")
    assert run(*words).output.split() == ["build/mine.md", "build/mine.html"]
    top = (project / "build/mine.md").read_text(encoding="utf-8")[:300]
    assert "kv_budget=20 GiB" in top
    assert not (project / "reports").exists()


def test_a_wrong_file_does_not_keep_the_others_back(project: Path) -> None:
    """Every file is tried; the worst outcome is the exit code."""
    (project / "experiments/broken.yaml").write_text("titel: x\n", encoding="utf-8")
    result = run("render", "experiments/broken.yaml", "experiments/mine.yaml")
    assert result.exit_code == 2
    assert "experiments/broken.yaml:1:1: unknown key 'titel'" in result.stderr
    assert (project / "reports/mine.md").exists()


def test_a_pattern_is_looked_up_where_the_shell_did_not(project: Path) -> None:
    """A quoted pattern finds the files; one that matches nothing says so."""
    assert run("render", "experiments/*.yaml").exit_code == 0
    for command in ("render", "check", "accept"):
        result = run(command, "nowhere/*.yaml")
        assert result.exit_code == 2
        assert "nowhere/*.yaml: no file matches" in result.stderr
        assert "there is no folder nowhere/ here" in result.stderr


def test_check_names_what_moved(project: Path) -> None:
    """A changed golden number is named with both values, and the exit code is 1."""
    run("accept", "experiments/mine.yaml")
    golden = project / "golden/mine.json"
    text = golden.read_text(encoding="utf-8")
    assert "320" in text
    golden.write_text(text.replace("320", "321", 1), encoding="utf-8")
    run("render", "experiments/mine.yaml")
    result = run("check", "experiments/mine.yaml")
    assert result.exit_code == 1
    assert "by_length[context=1024].requests" in result.output and "321" in result.output


def test_accept_refuses_in_ci(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reviewed numbers come from a person."""
    monkeypatch.setenv("CI", "true")
    result = run("accept", "experiments/mine.yaml")
    assert result.exit_code == 2 and "CI is set" in result.stderr
    assert not (project / "golden").exists()


def test_show_prints_one_json_object(project: Path) -> None:
    """Scripts get unrounded numbers with units, and nothing else on standard output."""
    shown = json.loads(run("show", "experiments/mine.yaml", "--json").output)
    assert shown["experiment"] == "mine"
    assert shown["values"]["bytes_per_token"] == {"value": 128, "unit": "KiB/token"}
    assert [row["requests"] for row in shown["tables"]["by_length"]["rows"]] == [320, 40, 10]
    assert shown["claims"][0]["holds"] is True


def test_show_prints_tables_for_people(project: Path) -> None:
    """Values, tables and claims as text; an override is said first."""
    words = ("show", "experiments/mine.yaml", "--set", "kv_budget=20 GiB")
    output = run(*words).output
    assert output.startswith("Changed on the command line: kv_budget=20 GiB")
    assert " 160 |" in output and "holds: one token holds 128 KiB" in output


def test_explain_goes_down_to_the_inputs(project: Path) -> None:
    """A derivation is shown in symbols and numbers, to the file and line of each input."""
    words = ("explain", "experiments/mine.yaml", "bytes_per_token")
    output = run(*words).output
    assert "2 · 32 · 8 · 128 · 2 = 131,072 B/token" in output
    assert "catalog/models/llama-3.1-8b.yaml:" in output
    assert json.loads(run(*words, "--json").output)["cell"] == "bytes_per_token"
    changed = run(*words, "--set", "kv_dtype=fp8-ideal").output
    assert "= 65,536 B/token" in changed and "Changed on the command line" in changed


def test_explain_of_no_cell_lists_the_cells(project: Path) -> None:
    """A misspelt cell is an error of the input, with the nearest name."""
    result = run("explain", "experiments/mine.yaml", "bytes_per_tokne")
    assert result.exit_code == 2 and "did you mean 'bytes_per_token'?" in result.stderr


@pytest.mark.parametrize("what", LISTS)
def test_every_list_has_a_table_and_json(what: str, project: Path) -> None:
    """The table has a line for each record, under its headers."""
    records = json.loads(run("list", what, "--json").output)
    lines = run("list", what).output.splitlines()
    assert lines[0].startswith("name") and len(lines) == len(records) + 1
    assert [line.split()[0] for line in lines[1:]] == [record["name"] for record in records]


def test_every_shelf_of_the_catalog_is_listed() -> None:
    """A new kind of entry needs a list."""
    listed = {SHELVES[kind].folder for kind in CATALOG_LISTS.values()}
    assert listed == {shelf.folder for shelf in SHELVES.values()}


def test_list_shows_all_about_one_entry(project: Path) -> None:
    """With a name, each value stands with its source and its place in the catalog."""
    output = run("list", "models", "llama-3.1-8b").output
    assert "full: kv_heads" in output and "catalog/models/llama-3.1-8b.yaml:" in output
    assert "rests on" in run("list", "formulas", "kv_per_token").output
    result = run("list", "models", "llama-3.1-8")
    assert result.exit_code == 2 and "did you mean 'llama-3.1-8b'?" in result.stderr


def test_list_names_the_experiments_it_cannot_read(project: Path) -> None:
    """A broken file is reported; the others are still listed."""
    (project / "experiments/broken.yaml").write_text("a: [", encoding="utf-8")
    result = run("list", "experiments")
    assert result.exit_code == 2
    assert "mine" in result.stdout and "experiments/broken.yaml:2:1: " in result.stderr


def test_list_experiments_needs_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a project the answer says what to do."""
    monkeypatch.chdir(tmp_path)
    result = run("list", "experiments")
    assert result.exit_code == 2 and "kvplan new NAME" in result.stderr


def test_a_usage_error_is_wrong_input(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """An unknown command or option ends with exit code 2 and the usage."""
    assert run_main(monkeypatch, "rendr") == 2
    assert run_main(monkeypatch, "render") == 2
    assert "Usage: kvplan render" in capsys.readouterr().err


def test_a_bug_keeps_its_traceback(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """What is not a reported problem ends with exit code 3 and is not dressed up as one."""

    def broken(*_: Any) -> None:
        raise LookupError("not foreseen")

    monkeypatch.setattr(pipeline, "run", broken)
    assert run_main(monkeypatch, "show", "experiments/mine.yaml") == 3
    printed = capsys.readouterr().err
    assert "Traceback" in printed and "LookupError: not foreseen" in printed
    assert "bug in kvplan" in printed


def test_ctrl_c_is_no_bug(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """An interrupt ends with the shell's own code and without a traceback."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run", interrupted)
    assert run_main(monkeypatch, "show", "experiments/mine.yaml") == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_bug() -> None:
    """`kvplan list formulas | head` prints no traceback, and does not claim to have finished."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        words = [*KVPLAN, "list", "formulas"]
        done = subprocess.run(words, env=ENVIRONMENT, stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output_is_no_bug() -> None:
    """What cannot be printed is said on standard error, with exit code 2."""
    with open("/dev/full", "wb") as full:
        words = [*KVPLAN, "list", "formulas"]
        done = subprocess.run(words, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.startswith(b"standard output cannot be written")


def test_symbols_print_whatever_the_locale_says() -> None:
    """Output is UTF-8 even where Python would choose ASCII."""
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    words = [*KVPLAN, "list", "formulas", "preemption_span"]
    done = subprocess.run(words, env=environment, capture_output=True, check=True)
    assert "Δu" in done.stdout.decode("utf-8")


def test_a_bar_is_shown_when_there_is_something_to_wait_for(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """With more than a second left and a person watching, standard error has a bar."""
    for name in ("second", "third"):
        run("new", name)
    ticks = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(ticks)))
    words = ("render", "experiments/*.yaml")
    assert run_main(monkeypatch, *words) == 0
    without = capsys.readouterr()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert run_main(monkeypatch, *words) == 0
    shown = capsys.readouterr()
    assert without.err == "" and "experiments" in shown.err and "100%" in shown.err
    assert shown.out == without.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kvplan render ", "experiments/mine.yaml"),
        ("kvplan explain exp", "experiments/mine.yaml"),
        ("kvplan list mod", "models"),
        ("kvplan list models llama-3.1-8", "llama-3.1-8b"),
    ],
)
def test_the_shell_completes_files_and_names(words: str, expected: str, project: Path) -> None:
    """Experiments and catalog names are offered."""
    count = str(len(words.split(" ")) - 1)
    environment = {
        **ENVIRONMENT,
        "_KVPLAN_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": count,
    }
    done = subprocess.run(KVPLAN, env=environment, capture_output=True, text=True, check=True)
    assert f"plain,{expected}" in done.stdout.splitlines()
