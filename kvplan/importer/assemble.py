"""A config in, the imported model out: identify, read, group, count, and say where each field is
from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvplan.errors import KvplanError, Place, Problem
from kvplan.importer import parameters, quantisation
from kvplan.importer.document import Config
from kvplan.importer.errors import Complaint, Refused
from kvplan.importer.groups import group
from kvplan.importer.identify import Found, defaults_of, identify
from kvplan.importer.reading import Reading, Record
from kvplan.importer.records import Group, ImportedModel, Keys, Shape
from kvplan.importer.recurrent import STATE_DTYPE_KEYS
from kvplan.importer.vision import vision_parameters

_BY_CLASS = re.compile(r"([\w.]+) (\(class default of .*, not in config\))")
_KIND_KEYS = ("model_type", "architectures")


def import_config(data: Mapping[str, Any], name: str) -> ImportedModel:
    """The shape of the text model in a config.json; raises KvplanError with every fault found.

    `data` is what `read_config` gives, or any mapping; `name` is the model's id in the catalog.
    """
    if not isinstance(data, Mapping):
        what = f"the config is a {type(data).__name__} where an object is expected"
        raise KvplanError(Problem(what, "", "give the object of a config.json", Place(name)))
    try:
        return _import(data, name)
    except Refused as refused:
        complaints = refused.complaints
    raise KvplanError([_problem(c, data, name) for c in complaints])


def _import(data: Mapping[str, Any], name: str) -> ImportedModel:
    found = identify(data)
    reading = _reading(found, data)
    shape = found.family.read(reading, found.family)
    if reading.sound:
        reading.refuse_unread()
    if not reading.sound:
        raise Refused(*reading.record.complaints)
    return _model(name, found, reading, shape, data)


def _reading(found: Found, data: Mapping[str, Any]) -> Reading:
    family = found.family
    text = dict(found.data)
    if found.path and isinstance(data.get("tie_word_embeddings"), bool):
        # The outer flag is the one transformers ties by, unless the text model states its own.
        text.setdefault("tie_word_embeddings", data["tie_word_embeddings"])
    return Reading(
        text,
        found.path,
        found.model_type,
        defaults_of(found.model_type),
        family.aliases,
        Record(),
        family.moot,
        may_omit_core=bool(found.path),
        outer=data,
    )


def _model(
    name: str, found: Found, reading: Reading, shape: Shape, data: Mapping[str, Any]
) -> ImportedModel:
    groups, pattern, origins = group(shape.layers)
    draft_groups, draft_pattern, draft_origins = group(shape.draft)
    counted = parameters.count(shape)
    tower = vision_parameters(data)
    if tower is None and isinstance(data.get("vision_config"), Mapping):
        reading.note("the vision tower is not counted in parameters")
    block = quantisation.block(data, found.data)
    described = quantisation.describe(block[1]) if block else None
    dtype_key, dtype = _dtype(found, data)
    own = dict(origins) | {f"draft {k}": v for k, v in draft_origins.items()}
    own |= _field_origins(found, reading, shape, groups)
    texts = {k: _origin(v) for k, v in own.items()}
    texts["parameters"] = counted.how + ("; vision tower" if tower else "")
    if dtype:
        texts["model_dtype"] = texts["weight_dtype"] = f"config.json: {dtype_key}"
    if block:
        texts["quantisation"] = texts["weight_dtype"] = f"config.json: {block[0]}"
    return ImportedModel(
        name=name,
        model_type=found.model_type,
        architecture=found.architecture,
        groups=groups,
        layer_pattern=pattern,
        draft_groups=draft_groups,
        draft_pattern=draft_pattern,
        layers=len(shape.layers),
        hidden_size=reading.count("hidden_size"),
        vocab_size=reading.count("vocab_size"),
        max_context=shape.max_context.value if shape.max_context else None,
        parameters=None if counted.total is None else counted.total + (tower or 0),
        active_parameters=counted.active,
        expert_parameters=counted.experts,
        embedding_parameters=counted.embedding,
        vision_parameters=tower,
        weight_dtype=described.get("weights") if described else dtype,
        model_dtype=dtype,
        quantisation=described,
        origins=texts,
        keys=_keys(found, reading, data, dtype_key, block[0] if block else ""),
        notes=tuple(reading.record.notes),
    )


def _field_origins(
    found: Found, reading: Reading, shape: Shape, groups: tuple[Group, ...]
) -> dict[str, str]:
    """Where the fields outside the groups come from, and the dtypes of states."""
    depth = reading.optional("num_hidden_layers")
    stated = depth is not None and depth.value == len(shape.layers)
    own = {
        "layers": depth.origin if depth and stated else "layers as its lists give them",
        "hidden_size": reading.figure("hidden_size").origin,
        "vocab_size": reading.figure("vocab_size").origin,
    }
    for g in groups:
        if "state_dtype" in g.fields:
            key = next(k for k in STATE_DTYPE_KEYS if reading.has(k))
            own[f"{g.name}.state_dtype"] = f"{found.path}.{key}".lstrip(".")
    if shape.max_context:
        own["max_context"] = shape.max_context.origin
    return own


def _dtype(found: Found, data: Mapping[str, Any]) -> tuple[str, str | None]:
    for path, section in ((found.path, found.data), ("", data)):
        for key in ("dtype", "torch_dtype"):
            dtype = quantisation.dtype_name(section.get(key))
            if dtype:
                return f"{path}.{key}".lstrip("."), dtype
    return "", None


def _keys(found: Found, reading: Reading, data: Mapping[str, Any], *others: str) -> Keys:
    """Read, ignored and not understood keys of the text model, and the outer ones of a wrapper."""
    known = reading.keys()
    also_read = {k for k in (*_KIND_KEYS, *others) if k}
    read = list(known.read)
    ignored = [k for k in known.ignored if k not in also_read]
    if found.path:
        wrapped = found.path.split(".")[0]
        ignored += [k for k in data if k != wrapped and k not in also_read | set(ignored)]
    read += [k for k in sorted(also_read) if "." in k or k in data]
    strange = tuple(k for k in known.not_understood if k not in also_read)
    return Keys(tuple(read), tuple(k for k in ignored if k not in read), strange)


def _origin(text: str) -> str:
    by_class = _BY_CLASS.fullmatch(text)
    if by_class:
        return f"{by_class[2][1:-1]}: {by_class[1]}"
    if "(class default of" in text:
        return f"derived: {text}"
    return f"config.json: {text}"


def _problem(complaint: Complaint, data: Mapping[str, Any], name: str) -> Problem:
    place = data.place(complaint.json_path) if isinstance(data, Config) else Place(name)
    what = f"{complaint.json_path.removeprefix('$.')} {complaint.message}"
    return Problem(what, "", complaint.fix, place)
