"""Configs with key names or rules of their own, mostly from before 2023: Falcon, GPT-2, BLOOM,
MPT, DBRX, ChatGLM, OPT.
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Heads,
    attention_state,
    outside,
    read_decoder,
    read_frame,
)
from kvplan.importer.family import Family
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, Layer, Shape, dense


def _stating(reading: Reading, **values: int | None) -> Reading:
    """The reading with rules of the class applied as its defaults, where the file is silent."""
    given = {k: v for k, v in values.items() if v is not None}
    return replace(reading, defaults={**reading.defaults, **given})


def read_four_times(reading: Reading, family: Family) -> Shape:
    """GPT-2, GPT-J, BLOOM and others: the MLP is four times the width unless the file says
    otherwise.
    """
    width = reading.core("hidden_size").value
    return read_decoder(_stating(reading, intermediate_size=4 * width), family)


def read_bigcode(reading: Reading, family: Family) -> Shape:
    """GPT-BigCode (StarCoder 1): multi_query, true by default, means one KV head."""
    heads = 1 if reading.flag("multi_query", True) else reading.core("num_attention_heads").value
    return read_four_times(_stating(reading, num_key_value_heads=heads), family)


def read_falcon(reading: Reading, family: Family) -> Shape:
    """Falcon: multi_query without new_decoder_architecture means one KV head, whatever
    num_kv_heads says.
    """
    frame = read_frame(reading)
    new = reading.flag("new_decoder_architecture")
    query = reading.core("num_attention_heads")
    if not new and reading.flag("multi_query", True):
        if reading.has("num_key_value_heads"):
            reading.note(
                "num_kv_heads is not used: multi_query without new_decoder_architecture "
                "is one KV head"
            )
        kv = Figure(1, "multi_query without new_decoder_architecture")
    else:
        kv = reading.figure("num_key_value_heads", query)
    size = Figure(max(frame.width // query.value, 1), "hidden_size / num_attention_heads")
    heads = Heads(query, kv, size, size)
    bias = reading.flag("bias")
    style = replace(family.style, qkv_bias=bias, out_bias=bias)
    inner = reading.count("intermediate_size", 4 * frame.width)
    two_norms = (
        reading.raw("num_ln_in_parallel_attn", 2) == 2
        if new
        else not reading.flag("parallel_attn", True)
    )
    reading.has("num_ln_in_parallel_attn")
    norms = (2 if two_norms else 1) * 2 * frame.width
    mixer = heads.weights(frame.width, style, reading) + parameters.mlp(
        frame.width, inner, False, bias
    )
    layer = Layer((attention_state(("full", None), heads),), dense(mixer + norms))
    rest = outside(reading, frame, family.style)
    return Shape((layer,) * frame.layers, frame.embedding, rest, max_context=frame.max_context)


def read_mpt(reading: Reading, family: Family) -> Shape:
    """MPT: expansion_ratio widens the MLP, attn_config may name KV heads, positions are learned
    unless ALiBi.
    """
    attention = reading.section("attn_config")
    width = reading.core("hidden_size").value
    kind = attention.word("attn_type", "multihead_attention")
    query = reading.core("num_attention_heads").value
    kv = {
        "multihead_attention": query,
        "multiquery_attention": 1,
        "grouped_query_attention": None,
    }.get(kind, 0)
    if kv == 0:
        attention.complain(
            "attn_type",
            f"is {kind!r}, not known here",
            "known are multihead, multiquery, grouped_query",
        )
    kv = attention.count("kv_n_heads") if kv is None else kv
    ratio = reading.count("expansion_ratio", 4)
    learned = reading.flag("learned_pos_emb", True) and not attention.flag("alibi")
    bias = not reading.flag("no_bias", True)
    style = replace(
        family.style,
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        norm_values=2 if bias else 1,
        learned_positions=0 if learned else None,
    )
    known = _stating(reading, num_key_value_heads=kv or query, intermediate_size=ratio * width)
    return read_decoder(known, replace(family, style=style))


def read_dbrx(reading: Reading, family: Family) -> Shape:
    """DBRX: KV heads stand in attn_config, experts in ffn_config."""
    attention, ffn = reading.section("attn_config"), reading.section("ffn_config")
    flat = {
        "num_key_value_heads": attention.count("kv_n_heads", 1),
        "num_experts": ffn.count("moe_num_experts", 4),
        "num_experts_per_tok": ffn.count("moe_top_k", 1),
        "moe_intermediate_size": ffn.count("ffn_hidden_size", 3584),
    }
    return read_decoder(_stating(reading, **flat), family)


def read_chatglm(reading: Reading, family: Family) -> Shape:
    """ChatGLM2 and 3, GLM-4-9B in its first form: multi_query_group_num KV heads if
    multi_query_attention.
    """
    heads = reading.core("num_attention_heads").value
    groups = reading.count("multi_query_group_num", 1)
    kv = groups if reading.flag("multi_query_attention") else heads
    return read_decoder(_stating(reading, num_key_value_heads=kv), family)


def read_qwen1(reading: Reading, family: Family) -> Shape:
    """Qwen v1: intermediate_size counts gate and up together, so the MLP has half of it."""
    doubled = reading.core("intermediate_size").value
    halved = dict(reading.data) | {"intermediate_size": max(doubled // 2, 1)}
    return read_decoder(replace(reading, data=halved), family)


def read_opt(reading: Reading, family: Family) -> Shape:
    """OPT: tables for two positions more, and a narrower embedding with two projections in the
    350M model.
    """
    shape = read_decoder(reading, family)
    frame = read_frame(reading)
    narrow = reading.figure("word_embed_proj_dim", frame.width).value
    if narrow == frame.width:
        return shape
    projections = dense(2 * narrow * frame.width)
    table = frame.vocabulary * narrow * (1 if frame.tied else 2)
    return replace(shape, embedding=table, rest=shape.rest + projections)


def read_jetmoe(reading: Reading, family: Family) -> Shape:
    """JetMoE: a mixture of attention heads; only the KV projection is common, and kv_channels is
    the head size.
    """
    frame = read_frame(reading)
    kv, size = reading.figure("num_key_value_heads"), reading.figure("head_dim")
    count, active = reading.count("num_local_experts"), reading.count("num_experts_per_tok")
    query = Figure(kv.value * active, "num_key_value_heads x num_experts_per_tok")
    inner = kv.value * size.value
    # Router and bias of the attention mixture, its KV projection; router and bias of the MLP
    # mixture; two norms.
    heads = parameters.experts(
        2 * frame.width * inner, count, active, frame.width * (count + 1 + 2 * inner)
    )
    one = parameters.mlp(frame.width, reading.count("intermediate_size"))
    mlps = parameters.experts(one, count, active, frame.width * (count + 1) + 2 * frame.width)
    kept = attention_state(("full", None), Heads(query, kv, size, size))
    rest = outside(reading, frame, family.style)
    layers = (Layer((kept,), heads + mlps),) * frame.layers
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def read_minicpm_moe(reading: Reading, family: Family) -> Shape:
    """MiniCPM: dense, or with num_experts a mixture in every layer."""
    plain = not reading.has("num_experts")
    return read_decoder(reading, replace(family, experts=None) if plain else family)


def read_openelm(reading: Reading, family: Family) -> Shape:
    """OpenELM: ffn_multipliers widens the MLP of each layer, rounded to ffn_dim_divisor."""
    width = reading.core("hidden_size").value
    by = reading.count("ffn_dim_divisor", 256)
    multipliers = reading.raw("ffn_multipliers", [])
    reading.has("ffn_multipliers")
    if not isinstance(multipliers, list) or not all(
        isinstance(m, int | float) and not isinstance(m, bool) and 0 < m < 100 for m in multipliers
    ):
        reading.complain("ffn_multipliers", "is not a list of numbers", "give it as published")
        multipliers = [4]
    # Nearest multiple, but never less than nine tenths (the rule of make_divisible).
    wide = [max(by, int(m * width + by / 2) // by * by) for m in multipliers]
    inner = [w + by if w < 0.9 * m * width else w for w, m in zip(wide, multipliers, strict=True)]
    known = dict(reading.data) | {"intermediate_size": inner}
    return read_decoder(replace(reading, data=known), family)
