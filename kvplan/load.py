"""An experiment file in, an Experiment out: checked for form, every value with its position."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from kvplan import schema, yamltext
from kvplan.errors import KvplanError, Place, Problem, one_of, suggest
from kvplan.records import Experiment
from kvplan.yamltext import Document

_QUOTABLE = ("a number", "true or false")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")


def load(path: Path) -> Experiment:
    """Reads one experiment; raises KvplanError with every fault of its form."""
    shown = path.as_posix()
    if not _NAME.fullmatch(path.stem):
        raise KvplanError(
            Problem(
                f"'{path.stem}' cannot be an experiment's id",
                "the id is the file's name without .yaml; reports and golden files bear it",
                "use small letters, digits and _, starting with a letter",
                Place(shown),
            )
        )
    beside = path.absolute().parent
    inside = beside.parent if beside.name == "experiments" else beside
    document = yamltext.parse(yamltext.read(path, shown, inside=inside), shown)
    if not isinstance(document.data, dict):
        raise KvplanError(
            Problem(
                "an experiment is a mapping of keys to values",
                "",
                "kvplan new NAME writes a start",
                document.place(()),
            )
        )
    try:
        spec = schema.ExperimentFile.model_validate(document.data)
    except ValidationError as error:
        raise KvplanError(_problems(error, document)) from None
    problems = [*_names(spec, document), *_null_sections(document)]
    if problems:
        raise KvplanError(problems)
    return Experiment(path.stem, path, project_folder(path), document, spec)


def project_folder(path: Path) -> Path:
    """Where golden/, reports/ and templates/ are: beside experiments/, else the current folder."""
    absolute = path.absolute()
    return absolute.parent.parent if absolute.parent.name == "experiments" else Path.cwd()


def _names(spec: schema.ExperimentFile, document: Document) -> list[Problem]:
    found = []
    for section, keys in (("values", spec.values), ("tables", spec.tables)):
        found += [
            _bad_name(key, document.place((section, key), key=True))
            for key in keys
            if not _NAME.fullmatch(key)
        ]
    for name, table in spec.tables.items():
        seen: set[str] = set()
        for index, column in enumerate(table.columns):
            place = document.place(("tables", name, "columns", index))
            if not _NAME.fullmatch(column.key):
                found.append(_bad_name(column.key, place))
            elif column.key in seen:
                found.append(
                    Problem(
                        f"the column '{column.key}' stands in the table twice",
                        "",
                        "rename one: - name: quantity",
                        place,
                    )
                )
            seen.add(column.key)
    ids: set[str] = set()
    for index, claim in enumerate(spec.claims):
        place = document.place(("claims", index, "id"))
        if not _NAME.fullmatch(claim.id):
            found.append(_bad_name(claim.id, place))
        elif claim.id in ids:
            found.append(
                Problem(f"the claim id '{claim.id}' is used twice", "", "rename one", place)
            )
        ids.add(claim.id)
    return found


def _bad_name(name: str, place: Place) -> Problem:
    return Problem(
        f"'{name}' cannot be a name",
        "names are snake_case, so that scripts can use them",
        "use small letters, digits and _, starting with a letter",
        place,
    )


def _null_sections(document: Document) -> list[Problem]:
    return [
        Problem(
            f"'{key}' is empty",
            "",
            "fill it in or remove the key",
            document.place((key,), key=True),
        )
        for key, value in document.data.items()
        if value is None
    ]


def _problems(error: ValidationError, document: Document) -> list[Problem]:
    found: dict[tuple[Place, str], Problem] = {}
    for detail in error.errors():
        path, model = _locate(detail["loc"], document.data)
        problem = _problem(dict(detail), path, model, document)
        assert problem.place
        found.setdefault((problem.place, problem.what), problem)
    return list(found.values())


def _locate(loc: tuple[str | int, ...], data: Any) -> tuple[tuple[str | int, ...], type[BaseModel]]:
    """The path in the YAML tree of a pydantic location, and the model met there."""
    path: list[str | int] = []
    node, model = data, schema.ExperimentFile
    models: dict[str, type[BaseModel]] = {
        "values": schema.Wanted,
        "tables": schema.Table,
        "columns": schema.Column,
        "claims": schema.Claim,
        "over": schema.Steps,
        "names": schema.Names,
    }
    for step in loc:
        model = models.get(str(step), model)  # type: ignore[assignment]
        inner = _step(node, step)
        if inner is None and isinstance(node, dict) and len(node) == 1:
            key = next(iter(node))
            if _step(node[key], step) is not None:
                path.append(key)
                node, inner = node[key], _step(node[key], step)
        if inner is not None:
            path.append(step)
            node = inner[0]
        elif isinstance(step, str) and step == loc[-1]:
            path.append(step)
    return tuple(path), model


def _step(node: Any, step: str | int) -> tuple[Any] | None:
    if isinstance(node, dict) and step in node:
        return (node[step],)
    if isinstance(node, list) and isinstance(step, int) and step < len(node):
        return (node[step],)
    return None


def _problem(
    detail: dict[str, Any], path: tuple[str | int, ...], model: type[BaseModel], document: Document
) -> Problem:
    name = path[-1] if path else "the file"
    kind, context = detail["type"], detail.get("ctx", {})
    keys = [f.alias or n for n, f in model.model_fields.items() if n != "key"]
    if kind == "extra_forbidden":
        what = {"ExperimentFile": "an experiment", "Wanted": "a value"}.get(
            model.__name__, f"a {model.__name__.lower()}"
        )
        return Problem(
            f"unknown key '{name}'",
            f"{what} has: {one_of(keys, 20)}",
            suggest(name, keys),
            document.place(path, key=True),
        )
    if kind == "missing":
        return Problem(
            f"'{name}' is missing", "", f"add '{name}:' here", document.place(path[:-1], key=True)
        )
    wanted = {
        "string_type": "text",
        "dict_type": "a mapping (key: value)",
        "list_type": "a list",
        "int_type": "a whole number",
        "bool_type": "true or false",
        "model_type": "a mapping (key: value)",
        "float_type": "a number",
        "int_from_float": "a whole number",
    }.get(kind)
    place = document.place(path)
    if wanted and detail["input"] is None:
        key_place = document.place(path, key=True)
        return Problem(f"'{name}' is empty", "", "fill it in or remove the key", key_place)
    if wanted:
        got = _kind_name(detail["input"])
        return Problem(
            f"'{name}' must be {wanted}, not {got}",
            "",
            'put text in quotes: "..."' if wanted == "text" and got in _QUOTABLE else "",
            place,
        )
    if kind in ("less_than_equal", "greater_than_equal"):
        most = kind == "less_than_equal"
        bound = f"at most {context['le']}" if most else f"at least {context['ge']}"
        return Problem(f"'{name}' must be {bound}, not {detail['input']}", "", "", place)
    if kind == "string_pattern_mismatch":
        return Problem(
            f"'{detail['input']}' cannot be the name of a {name}",
            "",
            "use small letters, digits and _, starting with a letter",
            place,
        )
    limits = {
        "too_short": "is empty",
        "too_long": "has too many entries",
        "string_too_short": "is empty",
        "string_too_long": "is too long",
    }
    if kind in limits:
        most = context.get("max_length", "")
        return Problem(
            f"'{name}' {limits[kind]}" + (f" (at most {most})" if most else ""), "", "", place
        )
    return Problem(f"'{name}': {detail['msg'][0].lower()}{detail['msg'][1:]}", "", "", place)


def _kind_name(value: Any) -> str:
    names = {
        dict: "a mapping",
        list: "a list",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        type(None): "nothing",
    }
    return names.get(type(value), type(value).__name__)
