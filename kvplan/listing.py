"""What an experiment can name, as rows to print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kvplan.catalog import Catalog
from kvplan.registry import load_registry
from kvplan.values.ops import OPS
from kvplan.values.plain import PLAIN_FUNCTIONS

Rows = tuple[list[str], list[list[str]]]


def listing(what: str) -> Rows:
    """Headers and rows of one list."""
    lists: dict[str, Callable[[], Rows]] = {
        "formulas": _formulas,
        "functions": _functions,
        "experiments": _experiments,
        "models": lambda: _entries("model"),
        "tiers": lambda: _entries("tier"),
        "accelerators": lambda: _entries("accelerator"),
        "dtypes": lambda: _entries("kv_dtype"),
        "workloads": lambda: _entries("workload"),
    }
    return lists[what]()


def _formulas() -> Rows:
    rows = []
    for quantity in sorted(load_registry().quantities.values(), key=lambda q: q.name):
        source = "; ".join(dict.fromkeys(f.source for f in quantity.variants)) or quantity.source
        role = "formula" if quantity.variants else "input" if quantity.is_input else "constant"
        rows.append(
            [
                quantity.name,
                quantity.symbol,
                quantity.unit.dimension,
                role,
                source or "given by whoever plans",
            ]
        )
    return ["name", "symbol", "unit", "role", "source"], rows


def _functions() -> Rows:
    rows = [[name, "derive", op.doc.splitlines()[0]] for name, op in sorted(OPS.items())]
    rows += [
        [name, "derivation of a claim", "plain arithmetic on numbers and series"]
        for name in sorted(PLAIN_FUNCTIONS)
    ]
    return ["name", "used in", "what it does"], rows


def _experiments() -> Rows:
    from kvplan.yamltext import parse, read

    rows = []
    for file in sorted(Path("experiments").glob("*.yaml")):
        data = parse(read(file), file.as_posix()).data
        title = data.get("title", "") if isinstance(data, dict) else ""
        rows.append([file.stem, str(title), file.as_posix()])
    return ["name", "title", "file"], rows


def _entries(kind: str) -> Rows:
    catalog = Catalog(Path.cwd())
    rows = []
    for name in catalog.names(kind):
        entry = catalog.packaged(kind, name)
        shape = [
            f"{g.kind}: " + " ".join(f"{n}={v.text}" for n, v in g.givens.items())
            for g in entry.groups
        ]
        values = [f"{n}={v.text}" for n, v in entry.givens.items()]
        rows.append([name, entry.title, "; ".join([*values, *shape]), str(entry.source)])
    return ["name", "title", "gives", "source"], rows
