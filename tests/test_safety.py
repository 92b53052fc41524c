"""Experiments, templates and catalogs come from strangers: they may print, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import EXPERIMENT

from kvplan import pipeline, sandbox
from kvplan.errors import KvplanError, ValueProblem
from kvplan.values.expression import parse_expression
from kvplan.values.ops import OPS
from kvplan.values.plain import PLAIN_FUNCTIONS

# No code

HOSTILE = [
    "__import__('os').system('touch owned')",
    "().__class__.__bases__[0].__subclasses__()",
    "open('owned', 'w')",
    "(lambda: 1)()",
    "[x for x in (1, 2)]",
    "{1: 2}",
    "f'{1}'",
    "page if page else batch",
    "page and batch",
    "(x := 5)",
    "9**9**9",
    "2**64",
    "10**9999",
    "'a' * 10",
    "1 << 99",
    "page[0]",
    "sum(*x)",
    "minimum(a=1)",
    "await x",
    "x.y",
    "...",
    "1j",
    "1e999",
    "True",
    "(" * 400 + "1" + ")" * 400,
    "-" * 499 + "1",
    "1" * 500,
    "1 +",
    "",
    "\x00",
    "page\n; import os",
]


@pytest.mark.parametrize("functions", [OPS, PLAIN_FUNCTIONS], ids=["derive", "derivation"])
@pytest.mark.parametrize("text", HOSTILE)
def test_expressions_are_a_whitelist(text: str, functions: dict[str, object]) -> None:
    """Names, numbers, arithmetic and named functions; all else is refused without running."""
    try:
        parsed = parse_expression(text, functions)
    except ValueProblem:
        return
    assert text == "-" * 499 + "1"
    with pytest.raises(ValueProblem) if parsed.names else _nothing():
        assert parsed.evaluate(lambda name: 1, {}) == -1


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


TEMPLATES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ report.__init__.__globals__ }}",
    "{{ report.tables.__class__ }}",
    "{{ report.title.format(report) }}",
    "{{ '%s' % report }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ lipsum() }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ 'a' * 999999999 }}",
    "{{ [0] * 999999999 }}",
    "{{ 'a' ~ 'b' }}",
    "{{ report.title | replace('a', 'b') }}",
    "{{ report.title | attr('upper') }}",
    "{{ report | pprint }}",
    "{{ range(1000000000) | list }}",
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{% include '/etc/passwd' %}",
    "{% include '../secret.txt' %}",
    "{% import '/etc/passwd' as x %}",
    "{% extends '../secret.txt' %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ report.nothing }}",
    "{{ x }}",
    "{% if %}",
]


@pytest.mark.parametrize("text", TEMPLATES)
def test_templates_only_print_records(project: Path, text: str) -> None:
    """No attribute but a record's, no call but a macro's, no arithmetic, no other file."""
    (project / "secret.txt").write_text("the secret")
    (project / "templates" / "report.md.j2").write_text(text)
    with pytest.raises(KvplanError) as refused:
        pipeline.write_reports(project / "experiments" / "x.yaml", (), project / "out")
    assert "secret" not in str(refused.value).replace("../secret.txt", "")
    assert not (project / "out").exists()


def test_a_template_that_loops_is_stopped(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops in loops over a report's own rows end by the clock, with a message."""
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 0.3)
    points = ", ".join(f"{n} token" for n in range(1, 41))
    file = project / "experiments" / "x.yaml"
    file.write_text(EXPERIMENT.replace("8 token, 16 token", points))
    row = "{% for a in report.tables[0].table.rows %}"
    text = row * 12 + "{% endfor %}" * 12
    (project / "templates" / "report.md.j2").write_text(text)
    started = time.monotonic()
    with pytest.raises(KvplanError, match="runs for more than"):
        pipeline.write_reports(project / "experiments" / "x.yaml", (), project / "out")
    assert time.monotonic() - started < 20


def test_a_template_that_prints_on_is_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output has a limit."""
    monkeypatch.setattr(sandbox, "MAX_OUTPUT", 10_000)
    row = "{% for a in report.tables[0].table.rows %}"
    text = row * 16 + "xxxxxxxxxx" + "{% endfor %}" * 16
    (project / "templates" / "report.md.j2").write_text(text)
    with pytest.raises(KvplanError, match="prints more than"):
        pipeline.write_reports(project / "experiments" / "x.yaml", (), project / "out")


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system ['touch owned']", "!!binary aGk="]
)
def test_yaml_tags_run_nothing(project: Path, tag: str) -> None:
    """A tag is refused, whatever it names."""
    file = project / "experiments" / "x.yaml"
    file.write_text(EXPERIMENT.replace("Pages", tag))
    with pytest.raises(KvplanError, match="is not allowed"):
        pipeline.run(file)


# No file outside

OUTSIDE = (
    "title: the secret\nsource: s\ngroups: [{kind: full, layers: 1, kv_heads: 1, head_dim: 1}]\n"
)


@pytest.mark.parametrize(
    "name", ["../secret", "../../secret", "/etc/passwd", "./secret", "secret\0"]
)
def test_catalog_names_are_no_paths(project: Path, name: str) -> None:
    """A name of the catalog cannot leave it."""
    (project / "catalog" / "models").mkdir(parents=True)
    (project / "catalog" / "secret.yaml").write_text(OUTSIDE)
    file = project / "experiments" / "x.yaml"
    file.write_text(EXPERIMENT.replace("model: 70b-gqa", f'model: "{name}"'.replace("\0", "\\0")))
    with pytest.raises(KvplanError, match="unknown model"):
        pipeline.run(file)


@pytest.mark.parametrize("place", ["catalog", "templates", "golden"])
def test_links_out_of_the_project_are_not_followed(
    project: Path, place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link that a stranger commits does not make kvplan read another person's file."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "own.yaml").write_text(OUTSIDE)
    (outside / "own.j2").write_text("the secret")
    (outside / "x.json").write_text("the secret")
    file = project / "experiments" / "x.yaml"
    text = EXPERIMENT
    if place == "catalog":
        (project / "catalog" / "models").mkdir(parents=True)
        (project / "catalog" / "models" / "own.yaml").symlink_to(outside / "own.yaml")
        text = text.replace("70b-gqa", "own")
    elif place == "templates":
        (project / "templates" / "own.md.j2").symlink_to(outside / "own.j2")
        text += "template: own\n"
    else:
        (project / "golden").mkdir()
        (project / "golden" / "x.json").symlink_to(outside / "x.json")
    file.write_text(text)
    with pytest.raises(KvplanError) as refused:
        pipeline.check(file)
    assert "secret" not in str(refused.value)


def test_a_link_in_place_of_a_report_is_replaced_not_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Writing a report over a link changes the link, not what it points to."""
    victim = tmp_path_factory.mktemp("outside") / "victim"
    victim.write_text("untouched")
    (project / "reports").mkdir()
    (project / "reports" / "x.md").symlink_to(victim)
    pipeline.write_reports(project / "experiments" / "x.yaml", (), None)
    assert victim.read_text() == "untouched"
    assert not (project / "reports" / "x.md").is_symlink()


def test_only_the_output_folder_is_written(project: Path) -> None:
    """A render leaves its two reports and nothing else."""
    before = set(project.rglob("*"))
    pipeline.write_reports(project / "experiments" / "x.yaml", (), None)
    new = {p.relative_to(project).as_posix() for p in project.rglob("*")} - {
        p.relative_to(project).as_posix() for p in before
    }
    assert new == {"reports", "reports/x.md", "reports/x.html"}


def test_markup_stays_text(project: Path) -> None:
    """What an experiment calls a model is shown, not run, in HTML and in Markdown."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    file = project / "experiments" / "x.yaml"
    model = (
        f'{{title: "{evil}", source: "{evil}", '
        "groups: [{kind: full, layers: 1, kv_heads: 1, head_dim: 1}]}"
    )
    text = EXPERIMENT.replace("model: 70b-gqa", f"model: {model}").replace("Pages", evil)
    text = text.replace("How many", evil).replace("batch: paged_batch", "name: {label: model}")
    file.write_text(text + f'takeaway: "{evil} [x](javascript:alert(1))"\n')
    pipeline.write_reports(file, (), None)
    html = (project / "reports" / "x.html").read_text().lower()
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert 'href="javascript:' not in html
    assert "&lt;script&gt;alert" in html


# Limits

LIMITED: list[tuple[Callable[[str], str], str]] = [
    (lambda t: t + "# " + "x" * 2_000_000, "too large"),
    (
        lambda t: t.replace("[9 token]", "[" + "9 token, " * 99_999 + "9 token]"),
        "more than 100,000",
    ),
    (
        lambda t: t.replace(
            "{list: [9 token]}",
            "{distribution: lognormal, seed: 1, requests: 1e12, prompt: {mu: 6, sigma: 1}}",
        ),
        "more than the limit",
    ),
    (
        lambda t: t.replace("[8 token, 16 token]", "{from: 1 token, to: 2 token, points: 1000000}"),
        "cells",
    ),
    (lambda t: t.replace("batch: paged_batch", "{b: {derive: 9**9**9}}"), "raised to a power"),
    (
        lambda t: (
            t.replace("    columns:", "    cols:")
            .replace(
                "tables:",
                "values:\n  a0: {derive: 2**63 * 2**63}\n"
                + "".join(f"  a{i}: {{derive: a{i - 1} * a{i - 1}}}\n" for i in range(1, 60))
                + "tables:",
            )
            .replace("    cols:", "    columns:")
        ),
        "larger than any number",
    ),
    (
        lambda t: t.replace(
            "tables:",
            "values:\n"
            + "".join(f"  a{i}: {{derive: a{i - 1} + 1}}\n" for i in range(2999, 0, -1))
            + "  a0: {derive: 1 + 1}\ntables:",
        ),
        "too many",
    ),
]


def test_an_evaluation_that_goes_on_is_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows times requests have no limit of their own, so time has one."""
    monkeypatch.setattr("kvplan.evaluate.MAX_SECONDS", -1.0)
    with pytest.raises(KvplanError, match=r"x.yaml:7:\d+: the experiment takes more than"):
        pipeline.run(project / "experiments" / "x.yaml")


def test_a_long_chain_of_values_is_no_deep_recursion(project: Path) -> None:
    """Hundreds of values, each derived from the next one in the file."""
    file = project / "experiments" / "x.yaml"
    chain = "".join(f"  a{i}: {{derive: a{i - 1} + 1}}\n" for i in range(450, 0, -1))
    values = f"values:\n{chain}  a0: {{derive: 1 + 1}}\n"
    file.write_text(EXPERIMENT.replace("tables:", f"{values}tables:"))
    assert pipeline.run(file).results.values["a450"].value == 452


@pytest.mark.parametrize(("change", "words"), LIMITED, ids=[words for _, words in LIMITED])
def test_sizes_have_limits(project: Path, change: Callable[[str], str], words: str) -> None:
    """What would take all time or memory is refused, soon and in words."""
    file = project / "experiments" / "x.yaml"
    file.write_text(change(EXPERIMENT))
    started = time.monotonic()
    with pytest.raises(KvplanError, match=words):
        pipeline.run(file)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("place", ["experiments/x.yaml", "reports/x.md"])
def test_a_link_to_a_secret_is_not_quoted(
    project: Path, place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Errors and differences quote lines of files, so these must be the project's own."""
    secret = tmp_path_factory.mktemp("outside") / "secret.yaml"
    secret.write_text("password: hunter2\n")
    file = project / "experiments" / "x.yaml"
    pipeline.accept(file)
    pipeline.write_reports(file, (), None)
    (project / place).unlink()
    (project / place).symlink_to(secret)
    with pytest.raises(KvplanError, match="leads out of the project") as refused:
        pipeline.check(file)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("folder", ["reports", "golden"])
def test_a_folder_that_leads_out_is_not_written_to(
    project: Path, folder: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link in place of reports/ or golden/ does not make kvplan write elsewhere."""
    outside = tmp_path_factory.mktemp("outside")
    (project / folder).symlink_to(outside)
    file = project / "experiments" / "x.yaml"
    with pytest.raises(KvplanError, match="leads out of the project"):
        pipeline.write_reports(file, (), None)
        pipeline.accept(file)
    assert list(outside.iterdir()) == []


def test_a_project_reached_by_a_link_works(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A link to the whole project is the user's own way in."""
    link = tmp_path_factory.mktemp("links") / "project"
    link.symlink_to(project)
    pipeline.accept(link / "experiments" / "x.yaml")
    pipeline.write_reports(link / "experiments" / "x.yaml", (), None)
    assert pipeline.check(link / "experiments" / "x.yaml") == []


def test_a_pipe_is_not_waited_for(project: Path) -> None:
    """A named pipe or device in place of a file does not hang or flood."""
    file = project / "experiments" / "x.yaml"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(KvplanError, match="not a regular file"):
        pipeline.run(file)
