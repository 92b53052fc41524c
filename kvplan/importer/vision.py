"""The vision tower of a multimodal config in, its parameters out, where the tower is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.importer.parameters import linear

# Wrappers whose tower is that of Qwen3-VL.
_QWEN3_TOWERS = frozenset({"qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"})
_QWEN3_KEYS = (
    "hidden_size",
    "intermediate_size",
    "depth",
    "out_hidden_size",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "num_position_embeddings",
)


def vision_parameters(config: Mapping[str, Any]) -> int | None:
    """Parameters (elements) of the vision tower and its merger; None where it is not known."""
    vision = config.get("vision_config")
    if str(config.get("model_type")) not in _QWEN3_TOWERS or not isinstance(vision, Mapping):
        return None
    sizes = [vision.get(key) for key in _QWEN3_KEYS]
    deep = vision.get("deepstack_visual_indexes", [])
    if not all(isinstance(n, int) and 0 < n < 10**6 for n in sizes) or not isinstance(deep, list):
        return None
    width, inner, depth, out, patch, frames, merge, positions = (int(n or 0) for n in sizes)
    block = 4 * width + linear(width, 3 * width, True) + linear(width, width, True)
    block += linear(width, inner, True) + linear(inner, width, True)
    wide = width * merge**2
    merger = linear(wide, wide, True) + linear(wide, out, True)
    embedding = linear(3 * frames * patch**2, width, True) + positions * width
    # The merger at the end normalises before it joins neighbours, those on the way after.
    return embedding + depth * block + merger + 2 * width + len(deep) * (merger + 2 * wide)
