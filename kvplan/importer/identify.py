"""A config in, its row in the table of known architectures out; what is not in the table is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.importer.errors import Complaint, Refused
from kvplan.importer.family import Family, class_defaults
from kvplan.importer.known_dense import DENSE
from kvplan.importer.known_hybrids import HYBRIDS
from kvplan.importer.known_mixtures import MIXTURES
from kvplan.importer.known_wrappers import (
    ARCHITECTURES,
    SAME_CLASS,
    SIGNATURES,
    SPELLINGS,
    WRAPPERS,
    Wrapper,
)

KNOWN: dict[str, Family] = {**DENSE, **MIXTURES, **HYBRIDS}
_MOST_SHOWN = 40


def defaults_of(model_type: str) -> dict[str, Any]:
    """What a key means that is left out: by the family's row, else by the configuration class."""
    of_class = class_defaults().get(SAME_CLASS.get(model_type, model_type), {})
    return {**of_class, **KNOWN[model_type].defaults}


@dataclass(frozen=True)
class Found:
    """The text model of a config: its row, its keys and the path to them."""

    model_type: str
    architecture: str | None
    family: Family
    data: Mapping[str, Any]
    path: str


def identify(config: Mapping[str, Any]) -> Found:
    """The family by model_type, else by the first of architectures; text models are unwrapped."""
    architecture = _architecture(config)
    model_type = config.get("model_type") or ARCHITECTURES.get(architecture or "")
    if model_type is not None and not isinstance(model_type, str):
        message = f"is {model_type!r}, a text is expected"
        raise Refused(Complaint("$.model_type", message, "give it as published"))
    if model_type is None and architecture is None:
        model_type = next((name for keys, name in SIGNATURES if keys <= config.keys()), None)
    if model_type not in KNOWN and model_type not in WRAPPERS:
        model_type = ARCHITECTURES.get(architecture or "", model_type)
    if model_type in WRAPPERS:
        return _unwrap(config, WRAPPERS[model_type], model_type, architecture)
    if model_type not in KNOWN:
        raise _unknown(config, model_type, architecture)
    return Found(model_type, architecture, KNOWN[model_type], config, "")


def _architecture(config: Mapping[str, Any]) -> str | None:
    listed = config.get("architectures")
    if isinstance(listed, list) and listed and isinstance(listed[0], str):
        return listed[0]
    return None


def _unwrap(
    config: Mapping[str, Any], wrapper: Wrapper, outer: str, architecture: str | None
) -> Found:
    inner, path = _nested(config, wrapper)
    if not isinstance(inner, Mapping):
        message = f"is {inner!r}, an object is expected"
        raise Refused(Complaint(f"$.{path}", message, "give it as published"))
    named = inner.get("model_type") if path else None
    text_type = named if isinstance(named, str) and named else wrapper.text_type
    if text_type in WRAPPERS and text_type != outer:
        text_type = WRAPPERS[text_type].text_type
    if text_type == outer or not text_type:
        text_type = wrapper.text_type
    if text_type not in KNOWN:
        raise _unknown(inner, text_type, architecture, path)
    return Found(text_type, architecture, KNOWN[text_type], inner, path)


def _nested(config: Mapping[str, Any], wrapper: Wrapper) -> tuple[Any, str]:
    """The text config and its path, under the wrapper's key or another spelling of it.

    Early files of Qwen2-VL and others keep the text model's keys at the top.
    """
    for steps in (wrapper.path, *((key,) for key in SPELLINGS)):
        inner: Any = config
        for step in steps:
            inner = inner.get(step) if isinstance(inner, Mapping) else None
        if inner is not None:
            return inner, ".".join(steps)
    return config, ""


def _unknown(
    config: Mapping[str, Any], model_type: str | None, architecture: str | None, path: str = ""
) -> Refused:
    keys = sorted(k for k, v in config.items() if v is not None and not k.startswith("_"))
    shown = ", ".join(keys[:_MOST_SHOWN]) + (", ..." if len(keys) > _MOST_SHOWN else "")
    message = (
        f"names an architecture not known here: model_type {model_type or 'not stated'}, "
        f"architectures {architecture or 'not stated'}; fields seen: {shown or 'none'}"
    )
    fix = (
        "nothing is guessed from head counts: write the layer groups of this model by hand, "
        "or add its row to the table of known architectures"
    )
    return Refused(Complaint(f"$.{path}.model_type".replace("..", "."), message, fix))
