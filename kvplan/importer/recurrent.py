"""What recurrent mixers keep and weigh: Mamba-1, Mamba-2, gated delta net, KDA, lightning, short conv, RG-LRU, RWKV."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvplan.importer import parameters
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, State, state

_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True)
class Mixer:
    """A recurrent mixer of one layer: its state and its parameters (elements)."""

    state: State
    weights: int


@dataclass(frozen=True)
class Names:
    """How a family spells the dimensions of its Mamba layers; an empty name means that it has none."""

    states: str = "mamba_d_state"
    kernel: str = "mamba_d_conv"
    expand: str = "mamba_expand"
    inner: str = ""
    heads: str = "mamba_n_heads"
    head_dim: str = "mamba_d_head"
    groups: str = "mamba_n_groups"
    rank: str = "mamba_dt_rank"
    bias: str = "mamba_proj_bias"
    conv_bias: str = "mamba_conv_bias"


PLAIN = Names(
    states="state_size",
    kernel="conv_kernel",
    expand="expand",
    heads="num_heads",
    head_dim="head_dim",
    groups="n_groups",
    rank="time_step_rank",
    bias="use_bias",
    conv_bias="use_conv_bias",
)


def state_dtype(reading: Reading) -> str | None:
    """The dtype of the recurrent state, where the config states one."""
    for key in ("mamba_ssm_cache_dtype", "mamba_ssm_dtype"):
        if reading.has(key):
            word = reading.word(key)
            return _DTYPES.get(word, word)
    return None


def expanded(reading: Reading, names: Names, width: int) -> Figure:
    """Inner width: a stated one, else expand x hidden_size."""
    if names.inner and reading.has(names.inner):
        return reading.figure(names.inner)
    expand = reading.raw(names.expand, 2)
    reading.has(names.expand)
    if isinstance(expand, bool) or not isinstance(expand, int | float) or expand <= 0:
        reading.complain(
            names.expand, f"is {expand!r}, a positive number is expected", "give it as published"
        )
        expand = 1
    return Figure(int(expand * width), f"{names.expand} x hidden_size")


def read_mamba1(reading: Reading, width: int, names: Names, norms: int = 0) -> Mixer:
    """A selective state space layer; `norms` counts extra values on dt, B and C (Jamba)."""
    inner = expanded(reading, names, width)
    states, kernel = reading.figure(names.states, 16), reading.figure(names.kernel, 4)
    stated = reading.raw(names.rank)
    rank = math.ceil(width / 16) if stated in (None, "auto") else reading.count(names.rank)
    reading.has(names.rank)
    biases = reading.flag(names.bias), reading.flag(names.conv_bias, True)
    weights = parameters.mamba1(width, inner.value, states.value, kernel.value, rank, *biases)
    kept = state(
        "recurrent",
        variant="mamba1",
        inner_dim=inner,
        state_dim=states,
        conv_kernel=kernel,
        state_dtype=state_dtype(reading),
    )
    return Mixer(kept, weights + (rank + 2 * states.value if norms else 0))


def read_mamba2(reading: Reading, width: int, names: Names) -> Mixer:
    """A state space duality layer; heads x head size is the inner width."""
    heads, groups = reading.figure(names.heads), reading.figure(names.groups, 1)
    states, kernel = reading.figure(names.states), reading.figure(names.kernel, 4)
    if reading.raw(names.head_dim, "auto") == "auto":
        reading.has(names.head_dim)
        whole = expanded(reading, names, width).value
        if reading.sound and whole % heads.value:
            message = f"is {heads.value}, which does not divide the inner width {whole}"
            reading.complain(names.heads, message, f"give {names.head_dim} as published")
        size = Figure(max(whole // heads.value, 1), f"inner width / {names.heads}")
    else:
        size = reading.figure(names.head_dim)
    inner = Figure(heads.value * size.value, f"{names.heads} x {names.head_dim}")
    biases = reading.flag(names.bias), reading.flag(names.conv_bias, True)
    shape = (inner.value, heads.value, groups.value, states.value, kernel.value)
    kept = state(
        "recurrent",
        variant="mamba2",
        inner_dim=inner,
        state_heads=heads,
        state_head_dim=size,
        state_groups=groups,
        state_dim=states,
        conv_kernel=kernel,
        state_dtype=state_dtype(reading),
    )
    return Mixer(kept, parameters.mamba2(width, *shape, *biases))


def read_gated_delta_net(reading: Reading, width: int) -> Mixer:
    """Gated DeltaNet of Qwen3-Next, Qwen3.5 and OLMo-Hybrid."""
    keys, key_size = reading.figure("linear_num_key_heads"), reading.figure("linear_key_head_dim")
    values, size = reading.figure("linear_num_value_heads"), reading.figure("linear_value_head_dim")
    kernel = reading.figure("linear_conv_kernel_dim")
    numbers = (keys.value, key_size.value, values.value, size.value, kernel.value)
    kept = state(
        "recurrent",
        variant="gdn",
        key_heads=keys,
        key_head_dim=key_size,
        value_heads=values,
        value_head_dim=size,
        conv_kernel=kernel,
        state_dtype=state_dtype(reading),
    )
    return Mixer(kept, parameters.gated_delta_net(width, *numbers))


def read_kda(linear: Reading, width: int, full_gate: bool) -> Mixer:
    """Kimi Delta Attention from linear_attn_config; head_dim there is not the width of the MLA layers."""
    heads, size = linear.figure("num_heads"), linear.figure("head_dim")
    kernel = linear.figure("short_conv_kernel_size", 4)
    inner, per_head = heads.value * size.value, size.value
    low_rank = width * per_head + per_head * inner
    gate = width * inner if full_gate else low_rank
    weights = (
        3 * width * inner
        + 3 * parameters.short_convolution(inner, kernel.value)
        + low_rank  # forget gate
        + inner
        + heads.value  # dt bias, A
        + width * heads.value
        + gate
        + per_head
        + inner * width
    )
    kept = state(
        "recurrent",
        variant="kda",
        key_heads=heads,
        key_head_dim=size,
        value_heads=heads,
        value_head_dim=size,
        conv_kernel=kernel,
    )
    return Mixer(kept, weights)


def read_short_conv(reading: Reading, width: int) -> Mixer:
    """Gated short convolution of LFM2: B, C and x in one projection, one filter a channel."""
    kernel, bias = reading.figure("conv_L_cache"), reading.flag("conv_bias")
    weights = (
        parameters.linear(width, 3 * width, bias)
        + parameters.short_convolution(width, kernel.value, bias)
        + parameters.linear(width, width, bias)
    )
    inner = reading.core("hidden_size")
    kept = state("recurrent", variant="short_conv", inner_dim=inner, conv_kernel=kernel)
    return Mixer(kept, weights)


def read_lightning(reading: Reading, width: int, heads: Figure, size: Figure) -> Mixer:
    """Lightning attention of MiniMax-01: a square state a head, an output gate and a norm."""
    inner = heads.value * size.value
    kept = state("recurrent", variant="linear_attention", state_heads=heads, state_head_dim=size)
    return Mixer(kept, 5 * width * inner + inner)


def read_rg_lru(reading: Reading, width: int) -> Mixer:
    """RG-LRU block of Griffin (De et al. 2024): two inputs, convolution, block-diagonal gates, output."""
    inner = reading.figure("lru_width", reading.core("hidden_size"), "hidden_size, no lru_width")
    kernel, blocks = reading.figure("conv1d_width", 4), reading.count("num_attention_heads")
    size = inner.value // blocks
    weights = (
        2 * parameters.linear(width, inner.value, True)
        + parameters.linear(inner.value, width, True)
        + parameters.short_convolution(inner.value, kernel.value, True)
        + inner.value
        + 2 * (blocks * size * size + inner.value)
    )
    kept = state("recurrent", variant="rg_lru", inner_dim=inner, conv_kernel=kernel)
    return Mixer(kept, weights)
