"""Decoders with a twist in their attention: shared KV, layers that differ in heads, cross-
attention, searched blocks.
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Frame,
    Heads,
    attention_state,
    feed_forward,
    has_experts,
    outside,
    read_decoder,
    read_frame,
    read_heads,
    with_draft,
)
from kvplan.importer.family import Family
from kvplan.importer.patterns import by_layer_types, read_window
from kvplan.importer.reading import Reading
from kvplan.importer.records import NOTHING, Figure, Layer, Shape, State, Weights, dense, state

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


def _experts_as_wide(reading: Reading) -> Reading:
    """Experts are as wide as the dense MLP unless the file says otherwise (Hunyuan, Grok-1)."""
    width = reading.figure("intermediate_size")
    return replace(reading, defaults={"moe_intermediate_size": width.value, **reading.defaults})


def read_hunyuan(reading: Reading, family: Family) -> Shape:
    """Hunyuan: with cross-layer attention every cla_share_factor-th layer writes KV and the others
    reuse it.
    """
    reading = _experts_as_wide(reading)
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


def read_nemotron_nas(reading: Reading, family: Family) -> Shape:
    """Nemotron-NAS: block_configs gives each layer's attention (or none) and the width of its MLP
    (or none).
    """
    frame = read_frame(reading)
    blocks = reading.raw("block_configs")
    reading.has("block_configs")
    if not isinstance(blocks, list) or not all(isinstance(b, dict) for b in blocks):
        reading.complain("block_configs", "is not a list of blocks", "use the config as published")
        return Shape(())
    reading.of_length("block_configs", blocks, frame.layers)
    layers = tuple(_nas_layer(reading, frame, family, i) for i in range(len(blocks)))
    rest = outside(reading, frame, family.style)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def _nas_layer(reading: Reading, frame: Frame, family: Family, i: int) -> Layer:
    block = reading.data["block_configs"][i]
    path = f"block_configs[{i}]"
    here = replace(reading, data=block, path=path, aliases={}, defaults={})
    attention, ffn = here.section("attention"), here.section("ffn")
    kept, weights = NOTHING, 0
    if attention.flag("replace_with_linear"):
        weights += frame.width**2 + frame.width
    elif not attention.flag("no_op"):
        query, sharing = reading.core("num_attention_heads"), attention.figure("n_heads_in_group")
        kv = Figure(
            max(query.value // sharing.value, 1),
            "num_attention_heads / n_heads_in_group of each block",
        )
        size = Figure(frame.width // query.value, "hidden_size / num_attention_heads")
        heads = Heads(query, kv, size, size)
        window = attention.optional("window_length")
        kept = attention_state(("sliding", window) if window else ("full", None), heads)
        weights += heads.weights(frame.width, family.style, reading) + frame.width
    if ffn.flag("replace_with_linear"):
        weights += frame.width**2 + frame.width
    elif not ffn.flag("no_op"):
        weights += parameters.mlp(frame.width, _nas_width(ffn, frame.width)) + frame.width
    return Layer((kept,), dense(weights))


def _nas_width(ffn: Reading, width: int) -> int:
    """DeciLM: two thirds of twice ffn_mult x width, rounded up to a multiple of 256."""
    stated = ffn.optional("intermediate_size")
    if stated:
        return stated.value
    multiple = ffn.raw("ffn_mult")
    if (
        isinstance(multiple, bool)
        or not isinstance(multiple, int | float)
        or not 0 < multiple < 1000
    ):
        ffn.complain(
            "ffn_mult", f"is {multiple!r}, a positive number is expected", "give it as published"
        )
        return 256
    inner = int(2 * multiple * width / 3)
    return -(-inner // 256) * 256


def read_mimo_v2(reading: Reading, family: Family) -> Shape:
    """MiMo-V2: sliding layers have KV heads, head sizes and a window of their own; K and V differ
    in size.
    """
    frame = read_frame(reading)
    kinds = _mimo_kinds(reading, frame.layers)
    full = read_heads(reading, frame.width)
    sliding = Heads(
        query=reading.figure("swa_num_attention_heads", full.query),
        # MiMoV2FlashAttention doubles the KV heads in sliding layers where the file does not state
        # them.
        kv=reading.figure("swa_num_key_value_heads", 2 * full.kv.value, "2 x num_key_value_heads"),
        size=reading.figure("swa_head_dim", full.size),
        value_size=reading.figure("swa_v_head_dim", full.value_size),
    )
    window = read_window(reading) or reading.figure("sliding_window_size")
    layers = []
    for swa, ff in zip(kinds, feed_forward(reading, frame, family), strict=True):
        heads = sliding if swa else full
        kept = attention_state(("sliding", window) if swa else ("full", None), heads)
        sinks = heads.query.value if swa else 0
        weights = heads.weights(frame.width, family.style, reading) + sinks + 2 * frame.width
        layers.append(Layer((kept,), dense(weights) + ff))
    rest = outside(reading, frame, family.style)
    return Shape(tuple(layers), frame.embedding, rest, max_context=frame.max_context)


def _mimo_kinds(reading: Reading, layers: int) -> list[bool]:
    """hybrid_layer_pattern holds 1 for sliding layers; else layer_types; else five sliding to one
    full.
    """
    listed = reading.numbers("hybrid_layer_pattern")
    if listed is not None:
        return (
            [bool(k) for k in listed]
            if reading.of_length("hybrid_layer_pattern", listed, layers)
            else [False] * layers
        )
    stated = reading.words("layer_types", layers, ("full_attention", "sliding_attention"))
    if stated:
        return [w == "sliding_attention" for w in stated]
    return [i != 0 and (i + 1) % 6 != 0 for i in range(layers)]


def read_step3(reading: Reading, family: Family) -> Shape:
    """Step-3.5 and 3.7: sliding layers may have more query heads; layer lists may include the
    draft layers.
    """
    extra = reading.count("num_nextn_predict_layers", 0, 0)
    layers = reading.core("num_hidden_layers").value
    cut = {k: v[:layers] for k, v in reading.data.items() if _covers_draft(k, v, layers + extra)}
    reading = replace(reading, data={**reading.data, **cut})
    frame = read_frame(reading)
    kinds = by_layer_types()(reading, frame.layers)
    full = read_heads(reading, frame.width)
    other = reading.section("attention_other_setting")
    query = reading.figure(
        "num_sliding_attention_heads", other.figure("num_attention_heads", full.query)
    )
    kv = other.figure("num_attention_groups", full.kv)
    sliding = replace(full, query=query, kv=kv)
    layers_read = []
    for kind, ff in zip(kinds, feed_forward(reading, frame, family), strict=True):
        heads = sliding if kind[0] == "sliding" else full
        weights = heads.weights(frame.width, family.style, reading) + 2 * frame.width
        layers_read.append(Layer((attention_state(kind, heads),), dense(weights) + ff))
    rest = outside(reading, frame, family.style)
    return with_draft(
        reading, Shape(tuple(layers_read), frame.embedding, rest, max_context=frame.max_context)
    )


def _covers_draft(key: str, value: object, padded: int) -> bool:
    return (
        key in ("layer_types", "mlp_layer_types")
        and isinstance(value, list)
        and len(value) == padded
    )


def read_minimax_m3(reading: Reading, family: Family) -> Shape:
    """MiniMax-M3: sparse layers keep one small index key a token beside the KV of every head."""
    frame = read_frame(reading)
    heads = read_heads(reading, frame.width)
    sparse = _m3_sparse(reading, frame.layers)
    index = reading.figure("index_head_dim")
    plain = attention_state(("full", None), heads)
    indexing = (("indexer_heads", reading.figure("index_n_heads")), ("indexer_dim", index))
    keeping = replace(plain, label="full_indexed", figures=(*plain.figures, *indexing))
    indexer = frame.width * index.value * (reading.count("index_n_heads") + 1) + 2 * index.value
    weights = heads.weights(frame.width, family.style, reading) + 2 * frame.width
    layers = tuple(
        Layer((keeping if s else plain,), dense(weights + (indexer if s else 0)) + ff)
        for s, ff in zip(sparse, feed_forward(reading, frame, family), strict=True)
    )
    rest = outside(reading, frame, family.style)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def _m3_sparse(reading: Reading, layers: int) -> list[bool]:
    stated = reading.words("layer_types", layers, ("minimax_m3_sparse", "full_attention"))
    if stated:
        return [w == "minimax_m3_sparse" for w in stated]
    frequencies = reading.section("sparse_attention_config").numbers("sparse_attention_freq")
    if frequencies is None:
        return [False] * layers
    fits = reading.of_length("sparse_attention_config.sparse_attention_freq", frequencies, layers)
    return [bool(f) for f in frequencies] if fits else [False] * layers


def read_dense_and_experts(reading: Reading, family: Family) -> Shape:
    """Arctic, Grok-2: a dense MLP runs beside the experts of a layer if the config says so."""
    reading = _experts_as_wide(reading)
    shape = read_decoder(reading, family)
    if family.experts is None or not has_experts(reading, family.experts):
        return shape
    frame = read_frame(reading)
    residual = 0
    if reading.flag("parallel_attn_mlp_res"):
        residual = parameters.mlp(frame.width, frame.width) + frame.width
    elif reading.flag("residual_moe"):
        residual = parameters.mlp(frame.width, reading.count("intermediate_size"))
    sparse = family.experts.sparse(reading, frame.layers)
    layers = tuple(
        replace(layer, weights=layer.weights + dense(residual if s else 0))
        for layer, s in zip(shape.layers, sparse, strict=True)
    )
    return replace(shape, layers=layers)


def read_laguna(reading: Reading, family: Family) -> Shape:
    """Laguna: each layer may have a number of query heads of its own, listed beside the common
    one.
    """
    listed = reading.numbers("num_attention_heads_per_layer", 1)
    if listed is None:
        return read_decoder(reading, family)
    return read_decoder(
        replace(reading, data={**reading.data, "num_attention_heads": listed}), family
    )


def read_step3_factored(reading: Reading, family: Family) -> Shape:
    """Step-3: one key and value head, and queries through a narrow projection that heads share."""
    shape = read_decoder(reading, family)
    frame, heads = read_frame(reading), read_heads(reading, read_frame(reading).width)
    rank, wide = reading.count("share_q_dim"), heads.query.value * heads.size.value
    # The query projection of a plain block is replaced by two of the rank, with a norm between.
    change = rank * (frame.width + wide) + rank - frame.width * wide
    layers = tuple(replace(x, weights=x.weights + dense(change)) for x in shape.layers)
    return replace(shape, layers=layers)
