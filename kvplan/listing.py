"""What an experiment can name, as rows to print and as records for scripts."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.arguments import CATALOG_LISTS
from kvplan.catalog import Catalog, Entry
from kvplan.errors import KvplanError, Place, Problem, ValueProblem, one_of, suggest
from kvplan.evaluate import Numbers
from kvplan.records import Binding, Given, Source
from kvplan.registry import Quantity, load_registry
from kvplan.values.ops import OPS
from kvplan.values.plain import PLAIN_FUNCTIONS
from kvplan.values.show import plain, show_number
from kvplan.workloads.lengths import Lengths

MOST_WIDTH = 72
# A series has one number for each request; the others give numbers.
PLAIN_WORDS = {
    "abs": ("abs(x)", "The size of a number, without its sign."),
    "ceil": ("ceil(x)", "Rounded up to a whole number; a series is rounded number by number."),
    "count": ("count(condition)", "How many numbers of a series it holds for."),
    "first": ("first(series, n)", "The first n numbers of a series."),
    "floor": ("floor(x)", "Rounded down to a whole number; a series is rounded number by number."),
    "max": ("max(x, y)", "The larger of two; a series is compared number by number."),
    "median": ("median(series)", "The middle number of a series."),
    "min": ("min(x, y)", "The smaller of two; a series is compared number by number."),
    "running_sum": ("running_sum(series)", "The sum of all numbers up to each one of a series."),
    "sum": ("sum(series)", "The sum of a series."),
}


@dataclass(frozen=True)
class Listing:
    """One list: headers and rows of text, the same as records, and what could not be read."""

    headers: list[str]
    rows: list[list[str]]
    records: list[dict[str, Any]]
    problems: tuple[Problem, ...] = ()


def listing(what: str, name: str | None = None) -> Listing:
    """A list, or with a name all about one thing in it; raises KvplanError for no such name."""
    problems: list[Problem] = []
    if what in CATALOG_LISTS:
        records = list(_entries(CATALOG_LISTS[what], problems))
    elif what == "formulas":
        records = [_quantity(load_registry()[n]) for n in sorted(load_registry().quantities)]
    elif what == "functions":
        records = list(_functions())
    else:
        records = list(_experiments(problems))
    if name is not None:
        return _one(what, name, records)
    headers, rows = _table(what, records)
    return Listing(headers, rows, records, tuple(problems))


def _one(what: str, name: str, records: list[dict[str, Any]]) -> Listing:
    names = [record["name"] for record in records]
    if name not in names:
        why = f"the list has: {one_of(names)}"
        problem = Problem(
            f"no '{name}' among the {what}", why, suggest(name, names) or f"kvplan list {what}"
        )
        raise KvplanError(problem)
    record = records[names.index(name)]
    apart = ("values", "groups", "variants")
    rows = [[key, _text(record[key])] for key in record if key not in apart]
    for variant in record.get("variants", ()):
        chosen = [f"{key} {variant[key]}" for key in ("kind", "engine", "given") if variant[key]]
        rows.append([", ".join(["rests on", *chosen]), variant["rests on"]])
    rows += _value_rows(record.get("values", {}), "")
    for group in record.get("groups", ()):
        rows += _value_rows(group["values"], f"{group['name']}: ")
    return Listing([], [row for row in rows if row[1]], [record])


def _value_rows(values: dict[str, Any], prefix: str) -> list[list[str]]:
    return [
        [f"{prefix}{key}", f"{value['text']}  ({value['source']['title']}; {value['place']})"]
        for key, value in values.items()
    ]


def _text(value: Any) -> str:
    return ", ".join(part for part in value.values() if part) if isinstance(value, dict) else value


# Rows of text


def _table(what: str, records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    if what in CATALOG_LISTS:
        return (_model_table if what == "models" else _entry_table)(records)
    columns = {
        "formulas": ["name", "symbol", "unit", "role", "source"],
        "functions": ["name", "call", "used in", "what it does"],
        "experiments": ["name", "title", "file"],
    }[what]
    return columns, [[_short(str(record[column])) for column in columns] for record in records]


def _model_table(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Models in one line each: size, length, layers by kind, and the bytes of a token."""
    headers = ["name", "parameters", "active", "max context", "layers", "KiB/token at 16 bit"]
    return headers, [
        [
            record["name"],
            _billions(record["values"].get("parameters")),
            _billions(record["values"].get("active_parameters")),
            f"{record['values']['max_context']['value']:,}"
            if "max_context" in record["values"]
            else "",
            " + ".join(
                f"{g['values']['layers']['value']} {g['kind']}"
                for g in record["groups"]
                if "layers" in g["values"]
            ),
            record["kib_per_token"],
        ]
        for record in records
    ]


def _billions(value: dict[str, Any] | None) -> str:
    return f"{value['value'] / 1e9:.1f} B" if value else ""


def _kib_per_token(entry: Entry) -> str:
    """What one more token adds: at the start, then once every window is full."""
    registry = load_registry()
    if "max_context" in entry.givens:
        lengths = [1, entry.givens["max_context"].value]
    elif any("window" in group.givens for group in entry.groups):
        return "unknown"
    else:
        lengths = [1]
    sixteen_bit = ("kv_element", "conv_element", "state_element")
    found = []
    for length in lengths:
        extra = {name: Given(name, 2, "2 B/element", None, None, "") for name in sixteen_bit}
        extra["context"] = Given("context", length, f"{length} token", None, None, "")
        numbers = Numbers(Binding({**entry.givens, **extra}, entry.groups))
        try:
            grown = numbers.value("kv_growth_per_token")
        except ValueProblem:
            return "unknown"
        kib = registry["kv_growth_per_token"].show.from_base(grown)
        found.append(show_number(kib, 0 if kib == int(kib) else 1))
    return ", later ".join(dict.fromkeys(found))


def _entry_table(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """A column for each value that some entry gives; what is long stands last."""
    keys = list(dict.fromkeys(key for record in records for key in record["values"]))
    layers = any(record["groups"] for record in records)
    rows = []
    for record in records:
        values = [record["values"].get(key, {}).get("text", "") for key in keys]
        groups = [", ".join(_layers(g) for g in record["groups"])] if layers else []
        rows.append(
            [
                record["name"],
                _short(record["title"]),
                *values,
                *groups,
                _short(record["source"]["title"]),
            ]
        )
    return ["name", "title", *keys, *["layers"] * layers, "source"], rows


def _layers(group: dict[str, Any]) -> str:
    values = {key: value["text"] for key, value in group["values"].items()}
    count = values.pop("layers", "?")
    return f"{count} {group['kind']} ({', '.join(f'{k} {v}' for k, v in values.items())})"


def _short(text: str) -> str:
    return text if len(text) <= MOST_WIDTH else text[: MOST_WIDTH - 3].rstrip() + "..."


# Records


def _entries(kind: str, problems: list[Problem]) -> Iterable[dict[str, Any]]:
    catalog = Catalog(Path.cwd())
    for name in catalog.names(kind):
        try:
            entry = catalog.packaged(kind, name)
            size = {"kib_per_token": _kib_per_token(entry)} if kind == "model" else {}
            yield _entry(entry) | size
        except KvplanError as error:
            problems.extend(error.problems)


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.id,
        "title": entry.title,
        "source": _source(entry.source),
        # Prompts and outputs are drawn by one description.
        "values": {
            "lengths" if isinstance(value.value, Lengths) else name: _given(value)
            for name, value in entry.givens.items()
        },
        "groups": [
            {"name": g.name, "kind": g.kind, "values": {n: _given(v) for n, v in g.givens.items()}}
            for g in entry.groups
        ],
    }


def _source(source: Source | None) -> dict[str, str]:
    return {"title": "", "url": "", "seen": ""} | (source.__dict__ if source else {})


def _given(given: Given) -> dict[str, Any]:
    lengths = isinstance(given.value, Lengths)
    unit = load_registry()[given.name].unit.dimension
    text = given.text
    if not lengths and _is_bare(text):
        text = show_number(given.value)
    return {
        "value": given.text if lengths else plain(given.value),
        "unit": unit,
        "text": text,
        "source": _source(given.source),
        "place": str(given.place or ""),
    }


def _is_bare(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quantity(quantity: Quantity) -> dict[str, Any]:
    source = "; ".join(dict.fromkeys(f.source for f in quantity.variants)) or quantity.source
    role = "formula" if quantity.variants else "input" if quantity.is_input else "constant"
    return {
        "name": quantity.name,
        "symbol": quantity.symbol,
        "unit": quantity.unit.dimension,
        "role": role,
        "per": (quantity.per or "").replace("_", " "),
        "doc": quantity.doc,
        "source": source or "given by whoever plans",
        "variants": [
            {
                "doc": formula.doc,
                "rests on": ", ".join(formula.needs),
                "kind": ", ".join(formula.kind),
                "engine": ", ".join(formula.engine),
                "given": ", ".join(formula.given),
                "source": formula.source,
            }
            for formula in quantity.variants
        ],
    }


def _functions() -> Iterable[dict[str, Any]]:
    load_registry()  # formulas bring ops of their own
    for name, op in sorted(OPS.items()):
        call = f"{name}({', '.join(inspect.signature(op.function).parameters)})"
        does = op.doc.splitlines()[0]
        yield {"name": name, "call": call, "used in": "derive", "what it does": does}
    for name in sorted(PLAIN_FUNCTIONS):
        call, does = PLAIN_WORDS.get(name, (name, ""))
        yield {"name": name, "call": call, "used in": "derivation", "what it does": does}


def _experiments(problems: list[Problem]) -> Iterable[dict[str, Any]]:
    from kvplan.yamltext import parse, read

    folder = Path("experiments")
    if not folder.is_dir():
        fix = "change to the project's folder, or start one: kvplan new NAME"
        raise KvplanError(Problem("there is no such folder here", "", fix, Place("experiments")))
    for file in sorted(folder.glob("*.yaml")):
        try:
            data = parse(read(file, file.as_posix()), file.as_posix()).data
        except KvplanError as error:
            problems.extend(error.problems)
            continue
        fields = data if isinstance(data, dict) else {}
        title, question = (str(fields.get(key, "")) for key in ("title", "question"))
        yield {"name": file.stem, "title": title, "question": question, "file": file.as_posix()}
