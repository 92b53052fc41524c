"""An imported model in, the text of its catalog file out: groups, counts, origin of each field."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Place, Problem
from kvplan.files import write_whole
from kvplan.importer.assemble import import_config
from kvplan.importer.document import read_config
from kvplan.importer.records import Group, ImportedModel

_PLAIN = re.compile(r"[A-Za-z0-9_.()][\w .,:/()+*'-]*(?<![ :])")
_ID = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_AMBIGUOUS = re.compile(r"(?i)null|true|false|yes|no|on|off|~|[-+.\d][\d_.e+-]*")


@dataclass(frozen=True)
class Origin:
    """Where the config.json was found: a title, an address, and the date it was seen."""

    title: str
    url: str
    seen: str  # YYYY-MM-DD
    model: str = ""  # what the catalog calls it; the title where empty


def to_yaml(model: ImportedModel, origin: Origin) -> str:
    """The catalog file of a model; the same model and origin give the same bytes."""
    source = {"title": origin.title, "url": origin.url, "seen": origin.seen}
    source = {key: text for key, text in source.items() if text}
    lines = [f"title: {_text(origin.model or origin.title)}"]
    lines.append(f"source: {_flow(source)}")
    lines += _block("groups", model.groups)
    if len(model.groups) > 1:
        lines.append(f"layer_pattern: {_text(model.layer_pattern)}")
    if model.draft_groups:
        lines += _block("draft_groups", model.draft_groups)
        if len(model.draft_groups) > 1:
            lines.append(f"draft_pattern: {_text(model.draft_pattern)}")
    lines += [f"{key}: {value}" for key, value in _numbers(model).items()]
    lines += [f"{key}: {_text(value)}" for key, value in _words(model).items()]
    if model.quantisation:
        lines.append(f"quantisation: {_flow(dict(model.quantisation))}")
    lines.append("origins:")
    lines += [f"  {_text(key)}: {_text(value)}" for key, value in model.origins.items()]
    if model.keys.not_understood:
        lines.append(f"not_understood: [{', '.join(map(_text, model.keys.not_understood))}]")
    if model.notes:
        lines.append("notes:")
        lines += [f"  - {_text(note)}" for note in model.notes]
    return "\n".join(lines) + "\n"


def write_model(config: Path, name: str | None, url: str, seen: str) -> tuple[Path, list[str]]:
    """Imports a config into ./catalog/models/; the file written and what there is to say of it.

    Raises KvplanError when the config cannot be read or the file is there already.
    """
    id_ = name or _kebab(config.parent.name if config.stem == "config" else config.stem)
    folder = Path("catalog") / "models"
    target = folder / f"{id_}.yaml"
    if target.exists():
        raise KvplanError(
            Problem("the file exists already", "", "choose another --id", Place(target.as_posix()))
        )
    model = import_config(read_config(config), id_)
    write_catalog_file(model, Origin(f"config.json of {id_}", url, seen, id_), folder)
    kept = ", ".join(f"{group.layers} {group.kind}" for group in model.groups)
    said = [f"  layers: {kept}"]
    if model.parameters:
        said.append(f"  parameters: {model.parameters:,}")
    if model.keys.not_understood:
        said.append(f"  not understood: {', '.join(model.keys.not_understood)}")
    return target, said + [f"  note: {note}" for note in model.notes]


def _kebab(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.rpartition("__")[2].lower()).strip("-.")


def write_catalog_file(model: ImportedModel, origin: Origin, folder: Path) -> Path:
    """Writes <folder>/<name>.yaml, whole or not at all."""
    if not _ID.fullmatch(model.name):
        fix = "an id is lower-case letters, digits, dots and hyphens, as in llama-3.1-70b"
        raise KvplanError(Problem(f"{model.name!r} is no id of a catalog file", "", fix))
    target = folder / f"{model.name}.yaml"
    write_whole(target, to_yaml(model, origin))
    return target


def _numbers(model: ImportedModel) -> dict[str, Any]:
    found = {
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "expert_parameters": model.expert_parameters or None,
        "embedding_parameters": model.embedding_parameters,
        "vision_parameters": model.vision_parameters,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_context": f"{model.max_context} token" if model.max_context else None,
    }
    if model.parameters == model.active_parameters:
        del found["active_parameters"]
    return {k: v for k, v in found.items() if v is not None}


def _words(model: ImportedModel) -> dict[str, str]:
    found = {
        "model_type": model.model_type,
        "architecture": model.architecture,
        "model_dtype": model.model_dtype,
        "weight_dtype": model.weight_dtype,
    }
    return {k: v for k, v in found.items() if v}


def _block(key: str, groups: tuple[Group, ...]) -> list[str]:
    named = len(groups) > 1
    lines = [f"{key}:"]
    for group in groups:
        fields: dict[str, Any] = {"name": group.name} if named else {}
        fields |= {"kind": group.kind, "layers": group.layers, **group.fields}
        lines.append(f"  - {_flow(fields)}")
    return lines


def _flow(fields: dict[str, Any]) -> str:
    inner = ", ".join(f"{k}: {_scalar(v)}" for k, v in fields.items())
    return "{" + inner + "}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _text(str(value), flow=True)


def _text(text: str, flow: bool = False) -> str:
    """A YAML scalar, quoted only where it must be; JSON quoting is valid YAML."""
    plain = _PLAIN.fullmatch(text) and not _AMBIGUOUS.fullmatch(text)
    special = ": " in text or " #" in text or (flow and any(c in text for c in ",:[]{}"))
    return text if plain and not special else json.dumps(text, ensure_ascii=False)
