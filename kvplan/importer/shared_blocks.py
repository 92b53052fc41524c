"""Hybrids whose layers are not all alike: Nemotron-H (one block a layer), Zamba (shared
attention), RecurrentGemma.
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.importer import parameters
from kvplan.importer.decoder import (
    Frame,
    attention_state,
    outside,
    read_frame,
    read_heads,
)
from kvplan.importer.family import Family
from kvplan.importer.reading import Reading
from kvplan.importer.records import NOTHING, Layer, Shape, Weights, dense
from kvplan.importer.recurrent import Names, read_mamba1, read_mamba2, read_rg_lru

NEMOTRON_NAMES = Names(
    states="ssm_state_size",
    kernel="conv_kernel",
    expand="expand",
    heads="mamba_num_heads",
    head_dim="mamba_head_dim",
    groups="n_groups",
    bias="mamba_proj_bias",
    conv_bias="use_conv_bias",
)
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_WORDS = {"linear_attention": "mamba", "full_attention": "attention"} | {
    w: w for w in _LETTERS.values()
}


def read_nemotron_h(reading: Reading, family: Family) -> Shape:
    """Nemotron-H: every layer is one block (Mamba-2, attention, MLP or experts) behind one norm."""
    blocks = _blocks(reading, "layers_block_type", "hybrid_override_pattern")
    if blocks and reading.has("num_hidden_layers"):
        reading.of_length("layers_block_type", blocks, reading.count("num_hidden_layers"))
    named = dict(reading.data) | {"num_hidden_layers": max(len(blocks), 1)}
    frame = read_frame(replace(reading, data=named))
    makers = {name: _nemotron_layer(reading, frame, family, name) for name in sorted(set(blocks))}
    drafted = _blocks(reading, "mtp_layers_block_type", "mtp_hybrid_override_pattern")
    draft = tuple(_nemotron_layer(reading, frame, family, name) for name in drafted)
    depth = reading.count("num_nextn_predict_layers", 0, 0)
    rest = outside(reading, frame, family.style)
    layers = tuple(makers[b] for b in blocks)
    shape = Shape(layers, frame.embedding, rest, max_context=frame.max_context)
    return replace(shape, draft=draft * depth)


def _blocks(reading: Reading, words_key: str, letters_key: str) -> list[str]:
    words = reading.raw(words_key)
    if isinstance(words, list):
        stated = reading.words(words_key, len(words), tuple(_WORDS))
        return [_WORDS[w] for w in stated or []]
    letters = reading.word(letters_key)
    unknown = sorted(set(letters) - set(_LETTERS))
    if unknown:
        known = ", ".join(f"{k} {v}" for k, v in _LETTERS.items())
        reading.complain(
            letters_key, f"has unknown letters {''.join(unknown)}", f"known are {known}"
        )
        return []
    if not letters and not words_key.startswith("mtp_"):
        reading.complain(
            words_key, f"is not stated, nor {letters_key}", "use the config as published"
        )
    return [_LETTERS[c] for c in letters]


def _nemotron_layer(reading: Reading, frame: Frame, family: Family, name: str) -> Layer:
    norm = dense(frame.width)
    if name == "mamba":
        mixer = read_mamba2(reading, frame.width, NEMOTRON_NAMES)
        return Layer((mixer.state,), norm + dense(mixer.weights))
    if name == "attention":
        heads = read_heads(reading, frame.width)
        weights = heads.weights(frame.width, family.style, reading)
        return Layer((attention_state(("full", None), heads),), norm + dense(weights))
    if name == "mlp":
        widths = reading.per_layer("intermediate_size", 1)
        return Layer(
            (NOTHING,), norm + dense(parameters.mlp(frame.width, widths[0].value, gated=False))
        )
    return Layer((NOTHING,), norm + _nemotron_mixture(reading, frame.width))


def _nemotron_mixture(reading: Reading, width: int) -> Weights:
    """Ungated experts, in Nemotron 3 behind a projection to a narrower latent width."""
    count, active = reading.count("n_routed_experts"), reading.count("num_experts_per_tok")
    latent = reading.optional("moe_latent_size")
    narrow = latent.value if latent else width
    shared = reading.count("n_shared_experts", 1, 0) * reading.count(
        "moe_shared_expert_intermediate_size", 0, 0
    )
    one = parameters.mlp(narrow, reading.count("moe_intermediate_size"), gated=False)
    always = width * count + (parameters.mlp(width, shared, gated=False) if shared else 0)
    return parameters.experts(one, count, active, always + (2 * width * narrow if latent else 0))


def _hybrid_layers(reading: Reading, layers: int, default: list[str]) -> list[bool]:
    words = ("mamba", "linear_attention", "hybrid")
    stated = reading.words("layers_block_type", layers, words)
    chosen = stated or (default + ["mamba"] * layers)[:layers]
    return [w == "hybrid" for w in chosen]


def _zamba_default(reading: Reading, layers: int) -> list[str]:
    period, offset = reading.count("attn_layer_period", 6), reading.count("attn_layer_offset", 4, 0)
    later = ["hybrid" if i % period == offset else "mamba" for i in range(max(layers - 3, 0))]
    return ["mamba", "mamba", "hybrid", *later]


def _wide_heads_reading(reading: Reading, width: int) -> Reading:
    """The shared block sees the hidden state beside the embedding, so its heads divide twice the
    width.
    """
    heads = reading.count("num_attention_heads")
    wide = {"head_dim": 2 * width // heads, **reading.defaults}
    return replace(
        reading, defaults=wide, aliases={**reading.aliases, "head_dim": ("attention_head_dim",)}
    )


def read_zamba(reading: Reading, family: Family) -> Shape:
    """Zamba: Mamba-1 everywhere; at some layers one shared transformer block runs before it, each
    use with its KV.
    """
    frame = read_frame(reading)
    hybrid = _hybrid_layers(reading, frame.layers, _zamba_default(reading, frame.layers))
    heads = read_heads(_wide_heads_reading(reading, frame.width), frame.width)
    mixer = read_mamba1(reading, frame.width, Names())
    own = mixer.weights + frame.width
    inner = reading.count("intermediate_size")
    block = _shared_block(
        frame.width, heads.query.value, heads.kv.value, heads.size.value, inner, gated=True
    )
    kept = attention_state(("full", None), heads)
    plain = Layer((mixer.state,), dense(own))
    both = Layer((kept, mixer.state), Weights(own + frame.width**2, own + frame.width**2 + block))
    reading.note(
        "the shared block exists once but runs at every hybrid layer: active parameters count "
        "each run"
    )
    layers = tuple(both if h else plain for h in hybrid)
    rest = outside(reading, frame, family.style) + Weights(block, 0)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def _shared_block(width: int, query: int, kv: int, size: int, inner: int, gated: bool) -> int:
    projections = 2 * width * size * (query + 2 * kv) + query * size * width
    return projections + parameters.mlp(width, inner, gated) + 3 * width


def read_zamba2(reading: Reading, family: Family) -> Shape:
    """Zamba2: Mamba-2 everywhere, num_mem_blocks shared blocks in turn, adapters of a low rank at
    each use.
    """
    frame = read_frame(reading)
    default = (
        ["mamba"]
        + (["mamba"] * 5 + ["hybrid"]) * 7
        + ["mamba"] * 4
        + ["hybrid"]
        + ["mamba"] * 3
        + ["hybrid"]
    )
    listed = reading.numbers("hybrid_layer_ids")
    if listed is not None and not reading.has("layers_block_type"):
        default = ["hybrid" if i in listed else "mamba" for i in range(frame.layers)]
    hybrid = _hybrid_layers(reading, frame.layers, default)
    heads = read_heads(_wide_heads_reading(reading, frame.width), frame.width)
    names = Names(
        heads="n_mamba_heads",
        head_dim="mamba_headdim",
        groups="mamba_ngroups",
        conv_bias="use_conv_bias",
    )
    mixer = read_mamba2(reading, frame.width, names)
    own = mixer.weights + frame.width
    inner = reading.count("intermediate_size", 4 * frame.width)
    sizes = heads.query.value, heads.kv.value, heads.size.value
    block = _shared_block(frame.width, *sizes, inner, gated=True)
    adapters = _adapters(reading, frame.width, inner) + frame.width**2
    blocks = reading.count("num_mem_blocks", 1)
    reading.has("kv_channels")
    kept = attention_state(("full", None), heads)
    plain = Layer((mixer.state,), dense(own))
    both = Layer((kept, mixer.state), Weights(own + adapters, own + adapters + block))
    reading.note(
        "shared blocks exist once but run at every hybrid layer: active parameters count each run"
    )
    rest = outside(reading, frame, family.style) + Weights(blocks * block, 0)
    layers = tuple(both if h else plain for h in hybrid)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)


def _adapters(reading: Reading, width: int, inner: int) -> int:
    """Low-rank adapters of the shared MLP, and of the shared projections where the config asks for
    them.
    """
    rank = reading.count("adapter_rank", 128)
    attention = 3 * (4 * width * rank) if reading.flag("use_shared_attention_adapter") else 0
    return width * rank + rank * 2 * inner + attention


def read_recurrent_gemma(reading: Reading, family: Family) -> Shape:
    """RecurrentGemma: two RG-LRU blocks to one local attention block, each followed by an MLP of
    half the stated width.
    """
    frame = read_frame(reading)
    cycle = reading.raw("block_types", ["recurrent", "recurrent", "attention"])
    reading.has("block_types")
    if (
        not isinstance(cycle, list)
        or not cycle
        or set(map(str, cycle)) - {"recurrent", "attention"}
    ):
        reading.complain(
            "block_types", "is no list of recurrent and attention", "give it as published"
        )
        cycle = ["recurrent"]
    heads = read_heads(reading, frame.width)
    window = reading.figure("attention_window_size", 2048)
    mixer = read_rg_lru(reading, frame.width)
    inner = reading.count("intermediate_size") // 2
    after = parameters.mlp(frame.width, inner, bias=True) + 2 * frame.width
    local = attention_state(("sliding", window), heads)
    weights = heads.weights(frame.width, family.style, reading)
    attends = Layer((local,), dense(weights + after))
    recurs = Layer((mixer.state,), dense(mixer.weights + after))
    layers = tuple(
        attends if cycle[i % len(cycle)] == "attention" else recurs for i in range(frame.layers)
    )
    rest = outside(reading, frame, family.style)
    return Shape(layers, frame.embedding, rest, max_context=frame.max_context)
