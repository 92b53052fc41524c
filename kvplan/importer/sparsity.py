"""Rules that say which layers of a model have experts."""

from __future__ import annotations

from kvplan.importer.family import SparseRule
from kvplan.importer.reading import Reading


def every_layer(reading: Reading, layers: int) -> list[bool]:
    """Experts everywhere (Mixtral, gpt-oss, OLMoE)."""
    return [True] * layers


def after_dense(key: str = "first_k_dense_replace", default: int = 0) -> SparseRule:
    """Dense MLPs first, experts from layer `key` on; mlp_layer_types outranks it (DeepSeek, GLM,
    Kimi).
    """

    def rule(reading: Reading, layers: int) -> list[bool]:
        stated = reading.words("mlp_layer_types", layers, ("dense", "sparse"))
        if stated:
            reading.has(key)
            reading.has("moe_layer_freq")
            return [s == "sparse" for s in stated]
        first = reading.count(key, reading.defaults.get(key, default), minimum=0)
        every = reading.raw("moe_layer_freq", 1)
        if isinstance(every, list):
            reading.has("moe_layer_freq")
            fits = reading.of_length("moe_layer_freq", every, layers)
            return [bool(e) for e in every] if fits else [False] * layers
        step = reading.count("moe_layer_freq", 1)
        return [i >= first and i % step == 0 for i in range(layers)]

    return rule


def qwen_steps(reading: Reading, layers: int) -> list[bool]:
    """Qwen: experts in every decoder_sparse_step-th layer that mlp_only_layers does not exclude."""
    step = reading.count("decoder_sparse_step", 1)
    plain = set(reading.numbers("mlp_only_layers") or [])
    return [i not in plain and (i + 1) % step == 0 for i in range(layers)]


def llama4_steps(reading: Reading, layers: int) -> list[bool]:
    """Llama 4: moe_layers, else every interleave_moe_layer_step-th."""
    listed = reading.numbers("moe_layers")
    step = reading.count("interleave_moe_layer_step", 1)
    chosen = set(listed if listed is not None else range(step - 1, layers, step))
    return [i in chosen for i in range(layers)]


def jamba_period(reading: Reading, layers: int) -> list[bool]:
    """Jamba: layer i has experts if i modulo expert_layer_period is expert_layer_offset."""
    period = reading.count("expert_layer_period", 2)
    offset = reading.count("expert_layer_offset", 1, minimum=0)
    return [i % period == offset for i in range(layers)]


def ernie_span(reading: Reading, layers: int) -> list[bool]:
    """ERNIE 4.5: every moe_layer_interval-th layer from moe_layer_start_index to _end_index."""
    first = _text_index(reading, "moe_layer_start_index", 1)
    last = _text_index(reading, "moe_layer_end_index", -1)
    step = reading.count("moe_layer_interval", 1)
    last = layers - 1 if last == -1 else last
    return [first <= i <= last and (i + 1) % step == 0 for i in range(layers)]


def _text_index(reading: Reading, key: str, default: int) -> int:
    """A layer index; vision variants give one for text and one for vision experts, text first."""
    if isinstance(reading.raw(key), list):
        return (reading.numbers(key) or [default])[0]
    return reading.count(key, default, minimum=-1)


def step_enumeration(reading: Reading, layers: int) -> list[bool]:
    """Step-3.x: moe_layers_enum lists the layers; without it, all but the first three."""
    listed = reading.raw("moe_layers_enum")
    reading.has("moe_layers_enum")
    if listed is None:
        return after_dense(default=3)(reading, layers)
    items = listed.split(",") if isinstance(listed, str) else listed
    chosen = {int(i) for i in items if str(i).strip().isdigit()}
    return [i in chosen for i in range(layers)]
