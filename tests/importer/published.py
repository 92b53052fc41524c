"""Where the published configs are, if at all: beside the checkout or at KVPLAN_RESEARCH."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any


def research() -> Path | None:
    """The folder with hf_configs and models.jsonl; None where it is absent."""
    stated = os.environ.get("KVPLAN_RESEARCH")
    beside = [parent / "shared" / "research" for parent in Path(__file__).parents]
    found = [Path(stated)] if stated else [p for p in beside if p.is_dir()]
    return found[0] if found else None


@cache
def rows() -> list[dict[str, Any]]:
    """The cross-checked facts of models whose config is at hand."""
    folder = research()
    if folder is None:
        return []
    text = (folder / "models.jsonl").read_text(encoding="utf-8")
    return [r for r in map(json.loads, text.splitlines()) if r.get("config_file")]


def configs() -> list[Path]:
    """Every published config."""
    folder = research()
    return sorted((folder / "hf_configs").glob("*.json")) if folder else []
