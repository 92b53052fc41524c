"""Decoders whose layers differ in heads, width or experts: Nemotron-NAS, MiMo-V2, Step, MiniMax."""

from __future__ import annotations

from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Frame,
    Heads,
    attention_state,
    experts_as_wide,
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
from kvplan.importer.records import NOTHING, Figure, Layer, Shape, dense


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
    reading = experts_as_wide(reading)
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
