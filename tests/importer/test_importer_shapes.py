"""Small configs with one trap each are read as their classes read them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvplan.importer import Group, expand_pattern, import_config

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "shapes.yaml").read_text(encoding="utf-8")
)


def agrees(group: Group, expected: list[Any]) -> bool:
    """Kind, layers, and every field that the case names."""
    kind, layers, fields = expected
    stated = {k: group.fields.get(k) for k in fields}
    return (group.kind, group.layers, stated) == (kind, layers, fields)


@pytest.mark.parametrize("name", CASES)
def test_the_groups_are_those_of_the_class(name: str) -> None:
    """Kinds, layers and dimensions, and whatever else the case states."""
    case = CASES[name]
    model = import_config(case["config"], name)
    assert len(model.groups) == len(case["groups"]), model.groups
    for group, expected in zip(model.groups, case["groups"], strict=True):
        assert agrees(group, expected), (group, expected)
    for group, expected in zip(model.draft_groups, case.get("draft", []), strict=True):
        assert agrees(group, expected), (group, expected)
    if "only" in case:
        assert list(model.groups[0].fields) == case["only"]
    if "pattern" in case:
        assert model.layer_pattern == case["pattern"]
    for key in ("parameters", "active_parameters", "expert_parameters", "max_context"):
        assert key not in case or getattr(model, key) == case[key]
    for key, text in case.get("origins", {}).items():
        assert model.origins[key] == text


@pytest.mark.parametrize("name", CASES)
def test_every_layer_is_in_the_pattern_and_every_field_has_an_origin(name: str) -> None:
    """The pattern expands to the layers, and no number comes from nowhere."""
    model = import_config(CASES[name]["config"], name)
    names = expand_pattern(model.layer_pattern)
    assert len(names) == model.layers
    for group in model.groups:
        assert sum(group.name in n.split("+") for n in names) == group.layers
        for key, value in group.fields.items():
            is_number = isinstance(value, int) or value.endswith(" token")
            assert not is_number or f"{group.name}.{key}" in model.origins, key
    for key in ("layers", "hidden_size", "vocab_size", "parameters"):
        assert key in model.origins


COUNTS: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "counts.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_are_within_one_percent_of_the_published_count(name: str) -> None:
    """The count comes from widths, experts, norms and embeddings alone."""
    model = import_config(COUNTS[name]["config"], name)
    assert model.parameters == pytest.approx(COUNTS[name]["published"] * 1e9, rel=0.01)
