"""Published figures that need nothing but the repository: given, expect, source."""

from __future__ import annotations

import inspect
import pkgutil
from dataclasses import is_dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import kvplan.engines
from kvplan.engines.formats import KvStorage
from kvplan.engines.llama_cpp import LlamaSettings
from kvplan.engines.sglang_cells import SglangSettings
from kvplan.engines.shape import LayerGroup, Layout, RecurrentState, model_shape
from kvplan.engines.vllm.settings import VllmSettings

CASES = [
    (f"{path.stem}-{number}", case)
    for path in sorted((Path(__file__).parents[1] / "cases" / "engines").glob("*.yaml"))
    for number, case in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), 1)
]
SETTINGS = {"vllm": VllmSettings, "sglang": SglangSettings, "llama_cpp": LlamaSettings}


def group(fields: dict[str, Any]) -> LayerGroup:
    """A layer group, with the state of a recurrent one."""
    state = fields.get("state")
    given = {**fields, "state": RecurrentState(**state) if state else None}
    return LayerGroup(**given)


def arguments(call: str, given: dict[str, Any]) -> dict[str, Any]:
    """Plain YAML as the records a function takes."""
    made = dict(given)
    if "group" in made:
        made["group"] = group(made["group"])
    if "storage" in made:
        made["storage"] = KvStorage(**made["storage"])
    if "shape" in made:
        made["shape"] = model_shape([group(fields) for fields in made["shape"]])
    if "settings" in made:
        made["settings"] = SETTINGS[call.split(".")[0]](**made["settings"])
        if call != "llama_cpp.plan":
            made["layout"] = Layout(**made.get("layout", {}))
    return made


def plain(value: Any) -> Any:
    """A result as YAML writes it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else str(value)
    return list(value) if isinstance(value, tuple) else value


def field(record: Any, path: str) -> Any:
    """A field of a plan; paddings by their layers."""
    for name in path.split("."):
        record = getattr(record, name)
    if path == "padding":
        return [padding.layers for padding in record]
    return plain(record)


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_published_figure(name: str, case: dict[str, Any]) -> None:
    """The function gives the published figure exactly."""
    module, function = case["call"].rsplit(".", 1)
    called = getattr(import_module(f"kvplan.engines.{module}"), function)
    answer = called(**arguments(case["call"], case["given"]))
    if is_dataclass(answer):
        found = {path: field(answer, path) for path in case["expect"]}
        assert found == case["expect"]
    else:
        assert plain(answer) == case["expect"]


def test_every_case_has_a_source() -> None:
    """A figure without its origin is no evidence."""
    assert all(case["source"] for _, case in CASES)


def test_every_public_function_says_what_it_counts() -> None:
    """Docstrings name the rule; rules of an engine name their source."""
    silent = []
    for found in pkgutil.walk_packages(kvplan.engines.__path__, "kvplan.engines."):
        module = import_module(found.name)
        for label, member in inspect.getmembers(module, inspect.isfunction):
            own = member.__module__ == module.__name__ and not label.startswith("_")
            if own and not member.__doc__:
                silent.append(f"{module.__name__}.{label}")
    assert silent == []
