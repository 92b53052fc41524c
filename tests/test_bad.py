"""Every mistake in tests/bad/ ends with exit code 2 and its exact message.

A mistake is `<mistake>.yaml` beside `<mistake>.txt`, its message. A first line `# kvplan ...` is
the command to run, `{file}` being the experiment; without one it is rendered. A mistake that a
YAML file alone cannot show has a function in MADE, which prepares the folder, and only a `.txt`.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvplan.cli import cli

BAD = Path(__file__).parent / "bad"
COMMAND = "# kvplan "
GOOD = """\
title: Pages
question: How many requests fit?
uses: {model: 70b-gqa, kv_dtype: fp16, kv_budget: 172.5 GiB, workload: document-mix}
tables:
  sweep:
    rows: {page: [8 token, 16 token]}
    columns: [page, batch: paged_batch]
"""
X = "experiments/x.yaml"


def _file(text: str, command: str = f"render {X}") -> Callable[[], str]:
    def make() -> str:
        Path(X).write_text(text)
        return command

    return make


def _folder() -> str:
    Path(X).mkdir()
    return f"render {X}"


def _missing() -> str:
    Path("experiments/pages.yaml").write_text(GOOD)
    return f"render {X}"


def _broken_link() -> str:
    Path(X).symlink_to("gone.yaml")
    return f"render {X}"


def _link_loop() -> str:
    Path(X).symlink_to("x.yaml")
    return f"render {X}"


def _no_permission() -> str:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    Path(X).write_text(GOOD)
    Path(X).chmod(0)
    return f"render {X}"


def _fifty_megabytes() -> str:
    Path(X).write_bytes(b"# filler\n" * 5_600_000)
    return f"render {X}"


def _output_is_a_file() -> str:
    Path(X).write_text(GOOD)
    Path("out").write_text("")
    return f"render {X} -o out/reports"


def _golden(text: str) -> Callable[[], str]:
    def make() -> str:
        Path(X).write_text(GOOD)
        Path("golden").mkdir()
        Path("golden/x.json").write_text(text)
        return f"check {X}"

    return make


def _template(text: str) -> Callable[[], str]:
    def make() -> str:
        Path(X).write_text(GOOD + "template: own\n")
        Path("templates").mkdir()
        Path("templates/own.md.j2").write_text(text)
        Path("templates/own.html.j2").write_text("")
        return f"render {X}"

    return make


def _own_model(text: str) -> Callable[[], str]:
    def make() -> str:
        Path(X).write_text(GOOD.replace("70b-gqa", "own"))
        Path("catalog/models").mkdir(parents=True)
        Path("catalog/models/own.yaml").write_text(text)
        return f"render {X}"

    return make


def _pipe() -> str:
    os.mkfifo(X)
    return f"render {X}"


def _same_name() -> str:
    for folder in ("a", "b"):
        Path(folder, "experiments").mkdir(parents=True)
        Path(folder, X).write_text(GOOD)
    return f"render a/{X} b/{X} -o reports"


def _link_out() -> str:
    Path("elsewhere.txt").write_text("a: secret\n")
    Path("project/experiments").mkdir(parents=True)
    Path("project/experiments/x.yaml").symlink_to("../../elsewhere.txt")
    return "render project/experiments/x.yaml"


MADE: dict[str, Callable[[], str]] = {
    "folder": _folder,
    "missing_file": _missing,
    "broken_link": _broken_link,
    "link_loop": _link_loop,
    "no_permission": _no_permission,
    "named_pipe": _pipe,
    "two_of_one_name": _same_name,
    "link_out_of_the_project": _link_out,
    "fifty_megabytes": _fifty_megabytes,
    "output_is_a_file": _output_is_a_file,
    "golden_truncated": _golden('{\n"experiment": "x",\n"cells": {\n "sweep[page=8].pa'),
    "golden_not_golden": _golden('{"cells": {"a": 1}}'),
    "template_syntax": _template("# {{ report.title }}\n{% for x in %}\n"),
    "template_undefined": _template("# {{ report.title }}\n\n{{ report.titel }}\n"),
    "template_class": _template("{{ ''.__class__.__mro__ }}\n"),
    "template_include": _template("{% include '/etc/passwd' %}\n"),
    "template_arithmetic": _template("a\n{{ 9 ** 9 ** 9 }}\n"),
    "template_range": _template("{% for i in range(1000000000) %}x{% endfor %}\n"),
    "template_import": _template("{% import '../../secret.j2' as s %}{{ s }}\n"),
    "catalog_without_source": _own_model(
        "title: Own\ngroups:\n  - {kind: full, layers: 2, kv_heads: 1, head_dim: 64}\n"
    ),
    "catalog_misspelt_key": _own_model(
        "title: Own\nsource: a card\n"
        "groups:\n  - {kind: full, layer: 2, kv_heads: 1, head_dim: 64}\n"
    ),
    "long_line": _file(GOOD.replace("70b-gqa", "x" * 5000)),
    "windows_line_ends": _file(GOOD.replace("70b-gqa", "70b-gqaa").replace("\n", "\r\n")),
    "byte_order_mark": _file("\ufeff" + GOOD.replace("70b-gqa", "70b-gqaa")),
}
CASES = sorted({p.stem for p in BAD.iterdir()} | set(MADE))


def prepare(name: str) -> str:
    """Puts a mistake in the current folder; the command that meets it."""
    Path("experiments").mkdir()
    if name in MADE:
        return MADE[name]()
    file = f"experiments/{name}.yaml"
    shutil.copy(BAD / f"{name}.yaml", file)
    first = Path(file).read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
    return (first.removeprefix(COMMAND) if first.startswith(COMMAND) else "render {file}").replace(
        "{file}", file
    )


def run(command: str) -> tuple[int, str]:
    """A kvplan command's exit code and what it says on standard error."""
    result = CliRunner().invoke(cli, shlex.split(command))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stderr


@pytest.mark.parametrize("name", CASES)
def test_the_message(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake is reported at its place, with why and what to do, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    code, message = run(prepare(name))
    assert message == (BAD / f"{name}.txt").read_text(encoding="utf-8")
    assert code == 2
    assert not Path("reports").exists()


def test_every_mistake_has_both_its_halves() -> None:
    """No message without a mistake, none without a message, and enough of both."""
    messages = {p.stem for p in BAD.glob("*.txt")}
    assert messages == {p.stem for p in BAD.glob("*.yaml")} | set(MADE)
    assert len(messages) >= 45
