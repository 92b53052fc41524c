"""What tells one model family from another: who reads it, key names, layer kinds, weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, Shape

# The kind of attention of one layer, with its window or chunk in tokens.
LayerKind = tuple[str, Figure | None]
KindRule = Callable[[Reading, int], list[LayerKind]]
SparseRule = Callable[[Reading, int], list[bool]]


@dataclass(frozen=True)
class Style:
    """How a decoder block is built, as far as it changes the parameter count.

    A bias is yes, no, or the name of the config key that decides. `norm_values` is the number of
    values a channel of a norm has: 0 (no weights), 1 (scale), 2 (scale and shift).
    """

    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    head_bias: bool | str = False
    qk_norm: str = ""  # "head": over one head; "heads": over all; "halves": one, scale and shift
    qk_norm_key: str = ""  # the key that turns it on, if it can be off
    gated: bool = True  # three matrices in the MLP, else two
    norms: int = 2
    norm_values: int = 1
    embedding_norm: bool = False
    learned_positions: int | None = None  # rows beyond the maximum length, or None without a table
    gate: str = ""  # gate on the attention output: "head" (one value a head) or "full"
    sinks: bool = False


@dataclass(frozen=True)
class Experts:
    """The config keys of a mixture of experts, and which layers have one."""

    sparse: SparseRule
    count: str = "num_experts"
    active: str = "num_experts_per_tok"
    width: str = "moe_intermediate_size"
    shared_count: str = ""  # shared experts, each of the experts' width
    shared_width: str = ""  # or one shared expert of this width
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    dense_width: str = "intermediate_size"


def all_full(reading: Reading, layers: int) -> list[LayerKind]:
    """Every layer attends to everything; a window that is stated all the same is remarked on."""
    window = reading.data.get("sliding_window")
    if window and reading.data.get("use_sliding_window") is not False:
        reading.note(f"sliding_window {window} is stated, but {reading.model_type} has no window")
    reading.has("sliding_window")
    return [("full", None)] * layers


@dataclass(frozen=True)
class Family:
    """One row of the table of known architectures: who reads it, and what is its own."""

    read: Callable[[Reading, Family], Shape]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: KindRule = all_full
    style: Style = Style()
    experts: Experts | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)  # beyond those of the class
    moot: tuple[str, ...] = ()  # keys that published files state and the class does not use

    def but(self, **changes: Any) -> Family:
        """The same family with some traits changed; `aliases` are merged."""
        if "aliases" in changes:
            changes["aliases"] = {**self.aliases, **changes["aliases"]}
        return replace(self, **changes)


@cache
def class_defaults() -> Mapping[str, Mapping[str, Any]]:
    """Defaults of the configuration classes, by model_type: what a key means that is left out."""
    path = Path(__file__).with_name("class_defaults.json")
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def decide(reading: Reading, choice: bool | str) -> bool:
    """A trait that is fixed, or that the config key of this name decides."""
    return reading.flag(choice) if isinstance(choice, str) else choice
