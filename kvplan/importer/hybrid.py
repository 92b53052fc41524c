"""Configs of models that mix attention with recurrent layers in, shape out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Frame,
    Heads,
    attention_state,
    feed_forward,
    outside,
    read_frame,
    read_heads,
    with_draft,
)
from kvplan.importer.family import Family
from kvplan.importer.latent import mla_state, mla_weights
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, Layer, Shape, Weights, dense
from kvplan.importer.recurrent import (
    PLAIN,
    Mixer,
    Names,
    read_gated_delta_net,
    read_kda,
    read_lightning,
    read_mamba1,
    read_mamba2,
    read_short_conv,
    recurrent,
)

ATTENTION_WORDS = ("full_attention", "attention")
RECURRENT_WORDS = ("linear_attention", "mamba", "conv", "recurrent")

# Which layers attend (True) and which recur (False).
Placement = Callable[[Reading, int], list[bool]]
MixerReader = Callable[[Reading, Frame, Heads], Mixer]


def placed_by_words(key: str, otherwise: Placement) -> Placement:
    """The per-layer list of the file if there is one, else the rule of the class."""

    def rule(reading: Reading, layers: int) -> list[bool]:
        stated = reading.words(key, layers, ATTENTION_WORDS + RECURRENT_WORDS)
        return [w in ATTENTION_WORDS for w in stated] if stated else otherwise(reading, layers)

    return rule


def every_interval(reading: Reading, layers: int) -> list[bool]:
    """Qwen3-Next: each full_attention_interval-th layer attends."""
    every = reading.count("full_attention_interval", 4)
    return [(i + 1) % every == 0 for i in range(layers)]


def all_recur(reading: Reading, layers: int) -> list[bool]:
    """GraniteMoeHybridConfig: without a list every layer is Mamba."""
    return [False] * layers


def jamba_offset(reading: Reading, layers: int) -> list[bool]:
    """Jamba: layer i attends if i modulo attn_layer_period is attn_layer_offset."""
    period = reading.count("attn_layer_period", 8)
    offset = reading.count("attn_layer_offset", 4, minimum=0)
    return [i % period == offset for i in range(layers)]


def listed(key: str) -> Placement:
    """The indices of the attention layers stand in a list; without it every layer is what the
    class says.
    """

    def rule(reading: Reading, layers: int) -> list[bool]:
        chosen = reading.numbers(key)
        if chosen is None:
            reading.complain(
                key, "is not stated: which layers attend is unknown", "use the config as published"
            )
            return [True] * layers
        beyond = [i for i in chosen if i >= layers]
        if beyond:
            reading.complain(
                key, f"names layer {beyond[0]} of {layers}", "give the list as published"
            )
        return [i in chosen for i in range(layers)]

    return rule


def minimax_types(reading: Reading, layers: int) -> list[bool]:
    """MiniMax-Text-01: attn_type_list holds 1 for softmax and 0 for lightning attention."""
    kinds = reading.numbers("attn_type_list")
    if kinds is None:
        return [(i + 1) % 2 == 1 for i in range(layers)]
    return (
        [bool(k) for k in kinds]
        if reading.of_length("attn_type_list", kinds, layers)
        else [True] * layers
    )


def read_hybrid(placement: Placement, mixer: MixerReader) -> Callable[[Reading, Family], Shape]:
    """A decoder where each layer either attends or recurs, followed by an MLP or experts."""

    def read(reading: Reading, family: Family) -> Shape:
        frame = read_frame(reading)
        attends = placement(reading, frame.layers)
        heads = read_heads(reading, frame.width)
        recurs = mixer(reading, frame, heads)
        norms = family.style.norms * frame.width * family.style.norm_values
        kept = attention_state(("full", None), heads)
        weights = heads.weights(frame.width, family.style, reading)
        layers = tuple(
            Layer((kept,), dense(weights + norms) + ff)
            if attend
            else Layer((recurs.state,), dense(recurs.weights + norms) + ff)
            for attend, ff in zip(attends, feed_forward(reading, frame, family), strict=True)
        )
        rest = outside(reading, frame, family.style)
        return Shape(layers, frame.embedding, rest, max_context=frame.max_context)

    return read


def read_gdn_hybrid(reading: Reading, family: Family) -> Shape:
    """Qwen3-Next and Qwen3.5: gated delta net with full attention every few layers, draft layers
    with attention.
    """
    placement = placed_by_words("layer_types", every_interval)
    shape = read_hybrid(placement, lambda r, f, h: read_gated_delta_net(r, f.width))(
        reading, family
    )
    return with_draft(reading, shape)


def lightning(reading: Reading, frame: Frame, heads: Heads) -> Mixer:
    """MiniMax-01: lightning attention has as many heads as there are query heads."""
    return read_lightning(frame.width, heads.query, heads.size)


def mamba1_with_norms(reading: Reading, frame: Frame, heads: Heads) -> Mixer:
    """Jamba normalises dt, B and C."""
    return read_mamba1(reading, frame.width, Names(), norms=1)


def mamba2_hybrid(reading: Reading, frame: Frame, heads: Heads) -> Mixer:
    """Bamba and Granite 4 spell the Mamba-2 dimensions alike."""
    return read_mamba2(reading, frame.width, Names())


def short_conv(reading: Reading, frame: Frame, heads: Heads) -> Mixer:
    """LFM2: a gated short convolution in place of attention."""
    return read_short_conv(reading, frame.width)


def read_pure_mamba(version: int) -> Callable[[Reading, Family], Shape]:
    """Mamba, Falcon-Mamba and Mamba-2: one norm and one mixer a layer, no attention and no MLP."""

    def read(reading: Reading, family: Family) -> Shape:
        frame = read_frame(reading)
        reader = read_mamba1 if version == 1 else read_mamba2
        # Mamba-1 classes let a stated intermediate_size outrank expand (Falcon-Mamba-7B).
        names = replace(PLAIN, inner="intermediate_size") if version == 1 else PLAIN
        mixer = reader(reading, frame.width, names)
        layer = Layer((mixer.state,), dense(mixer.weights + frame.width))
        rest = outside(reading, frame, family.style)
        return Shape((layer,) * frame.layers, frame.embedding, rest, max_context=frame.max_context)

    return read


def read_falcon_h1(reading: Reading, family: Family) -> Shape:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, so each layer keeps both."""
    frame = read_frame(reading)
    heads = read_heads(reading, frame.width)
    names = Names(inner="mamba_d_ssm", bias="mamba_proj_bias")
    mixer = read_mamba2(reading, frame.width, names)
    norm = 0 if reading.flag("mamba_rms_norm") else -mixer.inner
    kept = attention_state(("full", None), heads)
    own = heads.weights(frame.width, family.style, reading) + mixer.weights + norm + 2 * frame.width
    layers = tuple(
        Layer((kept, mixer.state), dense(own) + ff) for ff in feed_forward(reading, frame, family)
    )
    rest = outside(reading, frame, family.style)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def read_kimi_linear(reading: Reading, family: Family) -> Shape:
    """Kimi-Linear and Kimi-K3: KDA layers and MLA layers, listed by numbers that count from 1."""
    frame = read_frame(reading)
    linear, attends = _kimi_layers(reading, frame.layers)
    full_gate = linear.flag("use_full_rank_gate")
    mixer = read_kda(linear, frame.width, full_gate)
    kept = mla_state(reading)
    gate = (
        family.style
        if not reading.flag("mla_use_output_gate")
        else replace(family.style, gate="full")
    )
    latent = mla_weights(reading, frame.width, replace(family, style=gate))
    mixtures = _kimi_mixtures(reading, frame, family)
    layers = tuple(
        Layer(
            (kept if full else mixer.state,),
            dense((latent if full else mixer.weights) + 2 * frame.width) + ff,
        )
        for full, ff in zip(attends, mixtures, strict=True)
    )
    rest = outside(reading, frame, family.style)
    shape = Shape(layers, frame.embedding, rest, max_context=frame.max_context)
    return with_draft(reading, shape)


def _kimi_layers(reading: Reading, layers: int) -> tuple[Reading, list[bool]]:
    """The keys of the KDA layers, nested as published or flat as transformers saves them."""
    if not reading.has("linear_attn_config") and reading.has("layer_types"):
        flat = {k: (f"linear_{k}",) for k in ("num_heads", "head_dim")}
        flat["short_conv_kernel_size"] = ("linear_conv_kernel_dim",)
        hidden = {k: v for k, v in reading.data.items() if k != "head_dim"}
        words = reading.words("layer_types", layers, ("full_attention", "linear_attention"))
        attends = [w == "full_attention" for w in words or ["full_attention"] * layers]
        return replace(reading, data=hidden, aliases=flat, defaults={}), attends
    linear = reading.section("linear_attn_config")
    return linear, _listed_from_one(linear, layers)


def _listed_from_one(linear: Reading, layers: int) -> list[bool]:
    full, delta = linear.numbers("full_attn_layers", 1), linear.numbers("kda_layers", 1)
    if full is None or delta is None:
        linear.complain(
            "full_attn_layers", "or kda_layers is not stated", "use the config as published"
        )
        return [True] * layers
    if sorted(full + delta) != list(range(1, layers + 1)):
        message = f"and kda_layers do not name each of the {layers} layers once, counted from 1"
        linear.complain("full_attn_layers", message, "give both lists as published")
    return [i + 1 in set(full) for i in range(layers)]


def _kimi_mixtures(reading: Reading, frame: Frame, family: Family) -> list[Weights]:
    """Experts may work at a narrower width, reached by two projections that all experts of a layer
    share.
    """
    narrow = reading.optional("routed_expert_hidden_size")
    plain = feed_forward(reading, frame, family)
    if narrow is None or family.experts is None:
        return plain
    count, active = reading.count(family.experts.count), reading.count(family.experts.active)
    inner = reading.count(family.experts.width)
    shared = reading.count(family.experts.shared_count, 0, 0)
    always = (
        frame.width * count + parameters.mlp(frame.width, inner * shared)
        if shared
        else frame.width * count
    )
    always += 2 * frame.width * narrow.value
    always += narrow.value if reading.flag("latent_moe_use_norm") else 0
    mixture = parameters.experts(parameters.mlp(narrow.value, inner), count, active, always)
    sparse = family.experts.sparse(reading, frame.layers)
    return [mixture if s else p for s, p in zip(sparse, plain, strict=True)]


def read_rwkv(reading: Reading, family: Family) -> Shape:
    """RWKV-4 keeps five vectors a layer; RWKV-5 and later a matrix a head and two vectors. Not
    counted.
    """
    frame = read_frame(reading)
    width, size = reading.core("hidden_size"), reading.optional("head_size")
    if size is None:
        kept = recurrent("rwkv4", Figure(5 * frame.width, "5 x hidden_size"))
    else:
        if reading.sound and frame.width % size.value:
            message = f"does not divide hidden_size {frame.width}"
            reading.complain("head_size", message, "give both as published")
        heads = Figure(max(frame.width // size.value, 1), "hidden_size / head_size")
        # A matrix a head, and the previous token at the time and the channel mixing.
        elements = Figure(frame.width * (size.value + 2), f"{width.origin} x ({size.origin} + 2)")
        kept = recurrent("rwkv", elements, state_heads=heads)
    why = "the low-rank mixing matrices of RWKV are not in the config"
    layers = (Layer((kept,)),) * frame.layers
    return Shape(layers, frame.embedding, max_context=frame.max_context, uncounted=why)


def read_lfm2(reading: Reading, family: Family) -> Shape:
    """LFM2: short convolutions between attention layers; the MLP width is stated before rounding.

    block_ff_dim outranks intermediate_size; with block_auto_adjust_ff_dim two thirds of it, scaled
    and rounded up to a multiple, are used.
    """
    placement = placed_by_words("layer_types", listed("full_attn_idxs"))
    stated = "block_ff_dim" if reading.has("block_ff_dim") else "intermediate_size"
    reading.has("intermediate_size")
    wide = reading.count(stated)
    if reading.flag("block_auto_adjust_ff_dim"):
        scale = reading.raw("block_ffn_dim_multiplier", 1.0)
        reading.has("block_ffn_dim_multiplier")
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < 1000:
            message = f"is {scale!r}, a positive number is expected"
            reading.complain("block_ffn_dim_multiplier", message, "give it as published")
            scale = 1
        step = reading.count("block_multiple_of", 256)
        wide = -(-int(scale * int(2 * wide / 3)) // step) * step
    known = replace(reading, data={**reading.data, "intermediate_size": wide})
    return read_hybrid(placement, short_conv)(known, family)
