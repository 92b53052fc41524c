"""Decoders that share KV or attend to an encoder: Gemma 3n and 4, Hunyuan, Mllama."""

from __future__ import annotations

from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Frame,
    Heads,
    attention_state,
    experts_as_wide,
    feed_forward,
    outside,
    read_decoder,
    read_frame,
    read_heads,
)
from kvplan.importer.family import Family
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, Layer, Shape, State, Weights, dense, state

_TILE_KEYS = ("image_size", "patch_size", "max_num_tiles")


def reuse(kept: State) -> State:
    """A layer that reads what another layer of this state has written."""
    return State("shared", label=f"shared_{kept.kind}", of=kept)


def _last_layers_shared(reading: Reading, layers: int) -> int:
    """How many of the last layers reuse KV (Gemma 3n and 4); not all may."""
    shared = reading.count(
        "num_kv_shared_layers", reading.defaults.get("num_kv_shared_layers", 0), 0
    )
    if shared >= layers and reading.sound:
        message = f"is {shared} of {layers} layers: none would be left to share from"
        reading.complain("num_kv_shared_layers", message, "give both as published")
        return 0
    return shared


def read_gemma3n(reading: Reading, family: Family) -> Shape:
    """Gemma 3n: the last layers reuse the KV of the last own layer of their kind; per-layer
    embeddings, AltUp, LAuReL.
    """
    frame = read_frame(reading)
    heads = read_heads(reading, frame.width)
    kinds = family.kinds(reading, frame.layers)
    own = frame.layers - _last_layers_shared(reading, frame.layers)
    side = reading.count("hidden_size_per_layer_input")
    streams, rank = reading.count("altup_num_inputs"), reading.count("laurel_rank")
    extra = 4 * frame.width + 2 * frame.width * rank + frame.width
    extra += 2 * frame.width + streams**2 + streams**3 + frame.width * streams
    extra += 2 * frame.width * side + frame.width
    layers = []
    for i, (kind, ff) in enumerate(zip(kinds, feed_forward(reading, frame, family), strict=True)):
        kept = attention_state(kind, heads)
        weights = heads.weights(frame.width, family.style, reading)
        if i >= own:
            weights -= 2 * frame.width * heads.kv.value * heads.size.value + heads.size.value
            kept = reuse(kept)
        layers.append(Layer((kept,), dense(weights + extra) + ff))
    rest = outside(reading, frame, family.style)
    rest += _per_layer_table(reading, frame, side) + dense(2 * (streams - 1) * frame.width**2)
    return Shape(tuple(layers), frame.embedding, rest, max_context=frame.max_context)


def _per_layer_table(reading: Reading, frame: Frame, side: int) -> Weights:
    """Per-layer embeddings: a second table as deep as the model, a projection and a norm."""
    table = reading.count("vocab_size_per_layer_input") * frame.layers * side
    return dense(table + frame.width * frame.layers * side + side)


def read_gemma4(reading: Reading, family: Family) -> Shape:
    """Gemma 4: full layers have other heads and size, may use K as V, and late layers may reuse
    KV.
    """
    frame = read_frame(reading)
    kinds = family.kinds(reading, frame.layers)
    local = read_heads(reading, frame.width)
    globally = _gemma4_global(reading, local)
    same = reading.flag("attention_k_eq_v")
    own = frame.layers - _last_layers_shared(reading, frame.layers)
    side = reading.optional("hidden_size_per_layer_input", minimum=0)
    extra = 4 * frame.width + (
        2 * frame.width * side.value + frame.width if side and side.value else 0
    )
    layers = []
    for i, (kind, ff) in enumerate(zip(kinds, _gemma4_mlps(reading, frame, own), strict=True)):
        heads = local if kind[0] == "sliding" else globally
        kv = frame.width * heads.kv.value * heads.size.value
        weights = heads.weights(frame.width, family.style, reading)
        weights -= kv if same and kind[0] == "full" else 0
        kept = attention_state(kind, heads)
        if i >= own:
            weights -= (1 if same and kind[0] == "full" else 2) * kv + heads.size.value
            kept = reuse(kept)
        layers.append(Layer((kept,), dense(weights + extra) + ff))
    if same:
        reading.note(
            "attention_k_eq_v: full layers project K and V at once, engines still store both"
        )
    rest = outside(reading, frame, family.style)
    rest += _per_layer_table(reading, frame, side.value) if side and side.value else Weights()
    return Shape(tuple(layers), frame.embedding, rest, max_context=frame.max_context)


def _gemma4_global(reading: Reading, local: Heads) -> Heads:
    size = reading.figure("global_head_dim", 512)
    kv = local.kv
    # Gemma4TextConfig applies the global KV heads only together with attention_k_eq_v.
    stated = reading.optional("num_global_key_value_heads")
    if stated and reading.flag("attention_k_eq_v"):
        kv = stated
    return Heads(local.query, kv, size, size)


def _gemma4_mlps(reading: Reading, frame: Frame, own: int) -> list[Weights]:
    """A dense MLP everywhere, twice as wide in sharing layers if so configured, and beside it
    experts if enabled.
    """
    inner = reading.count("intermediate_size")
    wide = 2 if reading.flag("use_double_wide_mlp") else 1
    plain = [
        dense(parameters.mlp(frame.width, inner * (wide if i >= own else 1)))
        for i in range(frame.layers)
    ]
    if not reading.flag("enable_moe_block"):
        return plain
    count, active = reading.count("num_experts"), reading.count("top_k_experts")
    one = parameters.mlp(frame.width, reading.count("moe_intermediate_size"))
    always = frame.width * count + frame.width + count + 3 * frame.width
    return [p + parameters.experts(one, count, active, always) for p in plain]


def read_mllama(reading: Reading, family: Family) -> Shape:
    """Llama 3.2 Vision: listed layers attend to vision tokens only, and keep KV for those and not
    for text.
    """
    frame = read_frame(reading)
    heads = read_heads(reading, frame.width)
    crossing = reading.numbers("cross_attention_layers") or [3, 8, 13, 18, 23, 28, 33, 38]
    beyond = [i for i in crossing if i >= frame.layers]
    if beyond and reading.sound:
        reading.complain(
            "cross_attention_layers",
            f"names layer {beyond[0]} of {frame.layers}",
            "give it as published",
        )
    cross = state(
        "cross",
        query_heads=heads.query,
        kv_heads=heads.kv,
        head_dim=heads.size,
        encoder_length=_mllama_tokens(reading),
    )
    weights = heads.weights(frame.width, family.style, reading) + 2 * frame.width
    gates = 2 * heads.size.value + 2
    layers = tuple(
        Layer((cross,), dense(weights + gates) + ff)
        if i in crossing
        else Layer((attention_state(("full", None), heads),), dense(weights) + ff)
        for i, ff in enumerate(feed_forward(reading, frame, family))
    )
    reading.note("cross layers keep KV for vision tokens, not for text")
    # Eight rows more than the vocabulary, for the image token, in the input embedding alone.
    rest = outside(reading, frame, family.style) + dense(8 * frame.width)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def _mllama_tokens(reading: Reading) -> Figure | None:
    """Vision tokens of one image cut into the most tiles, each with a class token."""
    vision = reading.outer.get("vision_config")
    sizes = [vision.get(k) for k in _TILE_KEYS] if isinstance(vision, dict) else []
    whole = [n for n in sizes if isinstance(n, int) and n > 0]
    if len(whole) < len(_TILE_KEYS):
        reading.note("vision_config does not say how many tokens an image has")
        return None
    side, patch, tiles = whole
    tokens = ((side // patch) ** 2 + 1) * tiles
    origin = "vision_config ((image_size / patch_size)^2 + 1) x max_num_tiles, one image"
    return Figure(tokens, origin)


def read_hunyuan(reading: Reading, family: Family) -> Shape:
    """Hunyuan: with cross-layer attention every cla_share_factor-th layer writes KV and the others
    reuse it.
    """
    reading = experts_as_wide(reading)
    shape = read_decoder(reading, family)
    factor = reading.count("cla_share_factor", 1) if reading.flag("use_cla") else 1
    if factor == 1:
        return shape
    frame, heads = read_frame(reading), read_heads(reading, read_frame(reading).width)
    kv = 2 * frame.width * heads.kv.value * heads.size.value + heads.size.value
    layers = tuple(
        layer if i % factor == 0 else Layer((reuse(layer.states[0]),), layer.weights + dense(-kv))
        for i, layer in enumerate(shape.layers)
    )
    return replace(shape, layers=layers)
