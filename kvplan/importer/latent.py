"""Configs of models with latent attention in, shape out: MLA, MLA with a sparse indexer,
compressed attention.
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Frame,
    feed_forward,
    outside,
    read_decoder,
    read_frame,
    with_draft,
)
from kvplan.importer.family import Family, decide
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, Layer, Shape, State, Weights, dense, state

LATENT_KEYS = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")


def mla_state(reading: Reading, label: str = "", indexed: bool = False) -> State:
    """One latent and one rotary key a token, shared by all heads whatever num_key_value_heads
    says.
    """
    return state(
        "mla",
        label,
        query_heads=reading.core("num_attention_heads"),
        latent=reading.core("kv_lora_rank"),
        rope_dim=reading.figure("qk_rope_head_dim", minimum=0),
        indexer_heads=reading.figure("index_n_heads") if indexed else None,
        indexer_dim=reading.figure("index_head_dim") if indexed else None,
    )


def mla_weights(reading: Reading, width: int, family: Family) -> int:
    """DeepSeek-V2 (arXiv:2405.04434, sec. 2.1): down and up projections with their norms, and the
    output.
    """
    heads = reading.count("num_attention_heads")
    latent, rope = reading.count("kv_lora_rank"), reading.count("qk_rope_head_dim", minimum=0)
    nope, value = reading.count("qk_nope_head_dim"), reading.count("v_head_dim")
    bias = decide(reading, family.style.qkv_bias)
    rank = reading.optional("q_lora_rank", minimum=0)
    if rank and rank.value:
        queries = parameters.linear(width, rank.value, bias) + rank.value
        queries += parameters.linear(rank.value, heads * (nope + rope))
    else:
        queries = parameters.linear(width, heads * (nope + rope), bias)
    gate = width * heads * value if family.style.gate else 0
    return (
        queries
        + parameters.linear(width, latent + rope, bias)
        + latent
        + parameters.linear(latent, heads * (nope + value))
        + parameters.linear(heads * value, width, bias)
        + gate
    )


def read_mla(reading: Reading, family: Family) -> Shape:
    """A decoder whose every layer has multi-head latent attention, unless use_mla is false."""
    if not reading.flag("use_mla", True):
        return _read_without_latent(reading, family)
    frame = read_frame(reading)
    kept = mla_state(reading)
    mixer = mla_weights(reading, frame.width, family)
    norms = family.style.norms * frame.width
    mixtures = feed_forward(reading, frame, family)
    layers = tuple(Layer((kept,), dense(mixer + norms) + ff) for ff in mixtures)
    return with_draft(reading, _shape(reading, frame, family, layers))


def _read_without_latent(reading: Reading, family: Family) -> Shape:
    """The same layers with plain attention (DeepSeek-VL2 tiny, DeepSeek-OCR), latent sizes 0."""
    unused = (*LATENT_KEYS, "q_lora_rank")
    plain = {k: v for k, v in reading.data.items() if k not in unused}
    for key in unused:
        reading.has(key)
    known = {k: v for k, v in reading.defaults.items() if k not in unused}
    return read_decoder(replace(reading, data=plain, defaults=known), family)


def _shape(reading: Reading, frame: Frame, family: Family, layers: tuple[Layer, ...]) -> Shape:
    rest = outside(reading, frame, family.style)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def read_indexed_mla(reading: Reading, family: Family) -> Shape:
    """MLA whose layers keep a second small key for the sparse indexer (DeepSeek-V3.2, GLM-5); some
    may share it.
    """
    shape = read_mla(reading, family)
    frame = read_frame(reading)
    own = _indexer_layers(reading, frame.layers)
    size, heads = reading.figure("index_head_dim"), reading.count("index_n_heads")
    indexer = (
        parameters.linear(reading.count("q_lora_rank"), heads * size.value)
        + parameters.linear(frame.width, size.value)
        + 2 * size.value
        + parameters.linear(frame.width, heads)
    )
    mixed = len(set(own)) > 1
    # Layers with and without a key of their own are two groups: their pages differ.
    keeping = mla_state(reading, "mla_indexed" if mixed else "", indexed=True)
    plain = mla_state(reading, "mla_shared_index" if mixed else "")
    layers = tuple(
        Layer((keeping,), layer.weights + dense(indexer))
        if has
        else replace(layer, states=(plain,))
        for layer, has in zip(shape.layers, own, strict=True)
    )
    # A draft layer keeps an indexer key of its own, as the last full layer of the model does.
    draft = tuple(
        replace(layer, states=(mla_state(reading, indexed=True),)) for layer in shape.draft
    )
    return replace(shape, layers=layers, draft=draft)


def _indexer_layers(reading: Reading, layers: int) -> list[bool]:
    """indexer_types, else a pattern of F and S, else one in index_topk_freq (GlmMoeDsaConfig)."""
    reading.words("layer_types", layers, ("full_attention", "indexed_attention"))
    stated = reading.words("indexer_types", layers, ("full", "shared"))
    if stated:
        return [s == "full" for s in stated]
    pattern = reading.word("index_topk_pattern")
    if pattern:
        fits = reading.of_length("index_topk_pattern", pattern, layers)
        return [p == "F" for p in pattern] if fits else [True] * layers
    every = reading.count("index_topk_freq", 1)
    offset = reading.count("index_skip_topk_offset", 2, minimum=0)
    return [max(i - offset + 1, 0) % every == 0 for i in range(layers)]


def read_longcat(reading: Reading, family: Family) -> Shape:
    """LongCat-Flash: each of num_layers blocks has two MLA sublayers, two dense MLPs and one
    mixture.
    """
    frame = read_frame(reading)
    kept = mla_state(reading)
    mixer = mla_weights(reading, frame.width, family) + 2 * frame.width
    plain = parameters.mlp(frame.width, reading.count("ffn_hidden_size"))
    count, zero = reading.count("n_routed_experts"), reading.count("zero_expert_num", 0, 0)
    one = parameters.mlp(frame.width, reading.count("expert_ffn_hidden_size"))
    mixture = parameters.experts(
        one, count, reading.count("moe_topk"), frame.width * (count + zero)
    )
    if zero:
        reading.note(
            "zero-computation experts make the active count an upper bound: all chosen count here"
        )
    reading.note(
        "each published layer has two attention sublayers; groups count sublayers, twice num_layers"
    )
    first = Layer((kept,), dense(mixer + plain) + mixture)
    second = Layer((kept,), dense(mixer + plain))
    draft = with_draft(reading, Shape((first,))).draft
    return replace(_shape(reading, frame, family, (first, second) * frame.layers), draft=draft)


def read_compressed(reading: Reading, family: Family) -> Shape:
    """DeepSeek-V4: every layer keeps a window of single vectors, most add one entry per `ratio`
    tokens.
    """
    frame = read_frame(reading)
    ratios = _ratios(reading, frame.layers)
    mixture = _v4_mixture(reading, frame.width)
    layers = tuple(
        Layer((_v4_state(reading, r),), dense(_v4_mixer(reading, frame.width, r)) + mixture)
        for r in ratios[: frame.layers]
    )
    extra = reading.count("num_nextn_predict_layers", 0, 0)
    # The ratios of the draft layers stand behind those of the model; without them they keep a
    # window only.
    draft_ratios = (ratios[frame.layers :] + [0] * extra)[:extra]
    draft = tuple(Layer((_v4_state(reading, r),)) for r in draft_ratios)
    streams = reading.count("hc_mult", 4)
    head = streams * streams * frame.width + streams + 1
    shape = _shape(reading, frame, family, layers)
    return replace(shape, draft=draft, rest=shape.rest + dense(head))


def _ratios(reading: Reading, layers: int) -> list[int]:
    listed = reading.numbers("compress_ratios")
    extra = reading.count("num_nextn_predict_layers", 0, 0)
    if listed is None:
        rates = {
            "sliding_attention": 0,
            "compressed_sparse_attention": 4,
            "heavily_compressed_attention": 128,
        }
        words = reading.words("layer_types", layers, tuple(rates))
        if words is None:
            reading.complain(
                "compress_ratios", "is not stated, nor layer_types", "use the config as published"
            )
            return [0] * layers
        return [rates[w] for w in words]
    if len(listed) not in (layers, layers + extra):
        reading.of_length("compress_ratios", listed, layers + extra)
    return (listed + [0] * layers)[: max(len(listed), layers)]


def _v4_state(reading: Reading, ratio: int) -> State:
    """One vector serves as key and value of all heads: rope_dim of its elements are rotary, the
    rest latent.
    """
    size, rope = reading.figure("head_dim"), reading.figure("qk_rope_head_dim")
    if reading.sound and rope.value >= size.value:
        message = f"is {rope.value}, not below head_dim {size.value}"
        reading.complain("qk_rope_head_dim", message, "give both as published")
    latent = Figure(max(size.value - rope.value, 1), "head_dim - qk_rope_head_dim")
    common: dict[str, Figure | str | None] = {
        "query_heads": reading.core("num_attention_heads"),
        "latent": latent,
        "rope_dim": rope,
        "window": reading.figure("sliding_window"),
    }
    if not ratio:
        return state("sliding_latent", **common)
    if _sparse(ratio):
        common["indexer_heads"] = reading.figure("index_n_heads")
        common["indexer_dim"] = reading.figure("index_head_dim")
    return state(
        "compressed", f"compressed_{ratio}", **common, ratio=Figure(ratio, "compress_ratios")
    )


def _sparse(ratio: int) -> bool:
    """Only the lightly compressed layers choose among their entries and so have an indexer."""
    return ratio < 128


def _v4_mixer(reading: Reading, width: int, ratio: int) -> int:
    """Attention, compressor, indexer, norms and hyper-connections of a layer (transformers
    modeling_deepseek_v4).
    """
    heads, size = reading.count("num_attention_heads"), reading.count("head_dim")
    rank, groups, out = (reading.count(k) for k in ("q_lora_rank", "o_groups", "o_lora_rank"))
    streams = reading.count("hc_mult", 4)
    total = parameters.linear(width, rank) + rank + parameters.linear(rank, heads * size)
    total += parameters.linear(width, size) + size + heads
    total += heads * size * out + parameters.linear(groups * out, width)
    if ratio:
        lanes = 2 if _sparse(ratio) else 1
        total += 2 * width * lanes * size + ratio * lanes * size + size
    if ratio and _sparse(ratio):
        index, index_heads = reading.count("index_head_dim"), reading.count("index_n_heads")
        total += 4 * width * index + 2 * ratio * index + index
        total += rank * index_heads * index + width * index_heads
    mixing = (2 + streams) * streams
    hyper = mixing * streams * width + mixing + 3
    return total + 2 * width + 2 * hyper


def _v4_mixture(reading: Reading, width: int) -> Weights:
    one = parameters.mlp(width, reading.count("moe_intermediate_size"))
    count, active = reading.count("n_routed_experts"), reading.count("num_experts_per_tok")
    shared = reading.count("n_shared_experts", 1, 0)
    return parameters.experts(one, count, active, width * count + shared * one)
