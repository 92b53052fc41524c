"""The generated parts of the documentation; cog calls these from comments in the Markdown."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kvplan import schema
from kvplan.cli import cli
from kvplan.listing import listing
from kvplan.registry import Formula, load_registry

ROOT = Path(__file__).parent.parent


def excerpt(experiment: str, *headings: str) -> str:
    """The top of a committed report and some of its sections, as a quotation."""
    text = (ROOT / "reports" / f"{experiment}.md").read_text(encoding="utf-8")
    top, *sections = text.split("\n## ")
    parts = [top.split("\n", 1)[1].strip()]
    for heading in headings:
        parts += [f"## {s}".strip() for s in sections if s.split("\n", 1)[0] == heading]
    lines = "\n\n".join(parts).replace("## ", "#### ").splitlines()
    return _block("\n".join(f"> {line}".rstrip() for line in lines))


def output(command: str) -> str:
    """A command as it is typed, and what it prints."""
    words = shlex.split(command)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return _block(f"```console\n$ {command}\n{done.stdout.rstrip()}\n```")


def commands() -> str:
    """What each command is for."""
    rows = [[f"`kvplan {name}`", c.get_short_help_str(100)] for name, c in cli.commands.items()]
    return _table(["command", "what it does"], rows)


def formulas() -> str:
    """Every formula: symbol, unit, what it rests on, source."""
    quantities = load_registry().quantities.values()
    rows = [
        [f"`{q.name}`", f"`{q.symbol}`", q.unit.dimension, _needs(f), f.source]
        for q in sorted(quantities, key=lambda q: q.name)
        for f in q.variants
    ]
    return _table(["formula", "symbol", "unit", "rests on", "source"], rows)


def _needs(formula: Formula) -> str:
    chosen = [*formula.kind, *formula.engine, *(f"`{name}` given" for name in formula.given)]
    text = ", ".join(f"`{name}`" for name in formula.needs) or "-"
    return f"{text} ({', '.join(chosen)})" if chosen else text


def inputs() -> str:
    """Every input and constant: symbol, unit, what it is."""
    rows = [
        [f"`{q.name}`", f"`{q.symbol}`", q.unit.dimension, _once(q.per), q.doc]
        for q in sorted(load_registry().quantities.values(), key=lambda q: q.name)
        if not q.variants
    ]
    return _table(["input", "symbol", "unit", "one for each", "what it is"], rows)


def _once(per: str | None) -> str:
    return (per or "").replace("_", " ")


def keys(model: str) -> str:
    """The keys that a part of an experiment may have."""
    made: type[BaseModel] = getattr(schema, model)
    rows = [
        [f"`{field.alias or name}`", "needed" if field.is_required() else "", field.description]
        for name, field in made.model_fields.items()
    ]
    return _table(["key", "", "what it says"], rows)


def functions(used_in: str) -> str:
    """The functions that may be called in one kind of expression."""
    records = [r for r in listing("functions").records if r["used in"] == used_in]
    return _table(["function", "what it does"], [[f"`{_call(r)}`", _what(r)] for r in records])


def _call(record: dict[str, Any]) -> str:
    return str(record["call"])


def _what(record: dict[str, Any]) -> str:
    return str(record["what it does"])


def _table(headers: list[str], rows: list[list[Any]]) -> str:
    """A table without padding, so that one new row is one changed line."""
    lines = [headers, [":--"] * len(headers), *rows]
    safe = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    return _block("\n".join("| " + " | ".join(line) + " |" for line in safe))


def _block(text: str) -> str:
    return f"\n{text}\n\n"
