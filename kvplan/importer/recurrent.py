"""What recurrent mixers keep and weigh: Mamba-1 and 2, delta nets, linear attention, short conv."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvplan.importer import parameters
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure, State, state

STATE_DTYPE_KEYS = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True)
class Mixer:
    """A recurrent mixer of one layer: its state and its parameters (elements)."""

    state: State
    weights: int
    inner: int = 0  # inner width, of Mamba


@dataclass(frozen=True)
class Names:
    """How a family spells the dimensions of its Mamba layers."""

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


def times(*factors: Figure) -> Figure:
    """The product of figures, its origin spelled as their product."""
    return Figure(math.prod(f.value for f in factors), " x ".join(f.origin for f in factors))


def recurrent(
    type_: str,
    elements: Figure | None,
    channels: Figure | None = None,
    kernel: Figure | None = None,
    **fields: Figure | str | None,
) -> State:
    """The state of one layer: a window of the convolution's inputs and the recurrent elements.

    A causal convolution keeps its last kernel - 1 inputs of every channel.
    """
    conv = None
    if channels is not None and kernel is not None:
        origin = f"({channels.origin}) x ({kernel.origin} - 1)"
        conv = Figure(channels.value * (kernel.value - 1), origin)
    return state(
        "recurrent",
        type=type_,
        conv_kernel=kernel,
        conv_elements=conv,
        state_elements=elements,
        **fields,
    )


def state_dtype(reading: Reading) -> str | None:
    """The dtype of the recurrent state, where the config states one."""
    for key in STATE_DTYPE_KEYS:
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
    if isinstance(expand, bool) or not isinstance(expand, int | float) or not 0 < expand < 1000:
        message = f"is {expand!r}, a positive number is expected"
        reading.complain(names.expand, message, "give it as published")
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
    kept = recurrent(
        "mamba1", times(inner, states), inner, kernel, state_dtype=state_dtype(reading)
    )
    return Mixer(kept, weights + (rank + 2 * states.value if norms else 0))


def read_mamba2(reading: Reading, width: int, names: Names) -> Mixer:
    """A state space duality layer; heads x head size is the inner width."""
    heads, groups = reading.figure(names.heads), reading.figure(names.groups, 1)
    states, kernel = reading.figure(names.states), reading.figure(names.kernel, 4)
    reading.has(names.expand)
    if reading.raw(names.head_dim, "auto") == "auto":
        reading.has(names.head_dim)
        whole = expanded(reading, names, width).value
        if reading.sound and whole % heads.value:
            message = f"is {heads.value}, which does not divide the inner width {whole}"
            reading.complain(names.heads, message, f"give {names.head_dim} as published")
        size = Figure(max(whole // heads.value, 1), f"inner width / {names.heads}")
    else:
        size = reading.figure(names.head_dim)
    inner = times(heads, size)
    if names.inner and reading.has(names.inner) and reading.sound:
        stated = reading.figure(names.inner)
        if stated.value != inner.value:
            message = f"is {stated.value}, not {names.heads} x {names.head_dim} = {inner.value}"
            reading.complain(names.inner, message, "give all three as published")
    biases = reading.flag(names.bias), reading.flag(names.conv_bias, True)
    shape = (inner.value, heads.value, groups.value, states.value, kernel.value)
    origin = f"{inner.origin} + 2 x {groups.origin} x {states.origin}"
    channels = Figure(inner.value + 2 * groups.value * states.value, origin)
    kept = recurrent(
        "mamba2",
        times(heads, size, states),
        channels,
        kernel,
        state_heads=heads,
        state_groups=groups,
        state_dim=states,
        state_dtype=state_dtype(reading),
    )
    return Mixer(kept, parameters.mamba2(width, *shape, *biases), inner.value)


def read_gated_delta_net(reading: Reading, width: int) -> Mixer:
    """Gated DeltaNet of Qwen3-Next, Qwen3.5 and OLMo-Hybrid."""
    keys, key_size = reading.figure("linear_num_key_heads"), reading.figure("linear_key_head_dim")
    values, size = reading.figure("linear_num_value_heads"), reading.figure("linear_value_head_dim")
    kernel = reading.figure("linear_conv_kernel_dim")
    numbers = (keys.value, key_size.value, values.value, size.value, kernel.value)
    channels = Figure(
        2 * keys.value * key_size.value + values.value * size.value,
        f"2 x {times(keys, key_size).origin} + {times(values, size).origin}",
    )
    kept = recurrent(
        "gated_delta_net",
        times(values, size, key_size),
        channels,
        kernel,
        state_heads=values,
        key_heads=keys,
        state_dtype=state_dtype(reading),
    )
    return Mixer(kept, parameters.gated_delta_net(width, *numbers))


def read_kda(linear: Reading, width: int, full_gate: bool) -> Mixer:
    """Kimi Delta Attention; head_dim of linear_attn_config is not the width of the MLA layers."""
    heads, size = linear.figure("num_heads"), linear.figure("head_dim")
    kernel = linear.figure("short_conv_kernel_size", 4)
    inner, per_head = heads.value * size.value, size.value
    low_rank = width * per_head + per_head * inner
    weights = (
        3 * width * inner  # query, key, value
        + 3 * parameters.short_convolution(inner, kernel.value)
        + low_rank  # forget gate
        + inner + heads.value  # dt bias, A
        + width * heads.value  # beta
        + (width * inner if full_gate else low_rank)  # output gate
        + per_head  # norm
        + inner * width
    )  # fmt: skip
    channels = Figure(3 * inner, f"3 x {times(heads, size).origin}")
    kept = recurrent("kda", times(heads, size, size), channels, kernel, state_heads=heads)
    return Mixer(kept, weights)


def read_short_conv(reading: Reading, width: int) -> Mixer:
    """Gated short convolution of LFM2: B, C and x in one projection, one filter a channel."""
    kernel, bias = reading.figure("conv_L_cache"), reading.flag("conv_bias")
    weights = (
        parameters.linear(width, 3 * width, bias)
        + parameters.short_convolution(width, kernel.value, bias)
        + parameters.linear(width, width, bias)
    )
    kept = recurrent("short_conv", None, reading.core("hidden_size"), kernel)
    return Mixer(kept, weights)


def read_lightning(width: int, heads: Figure, size: Figure) -> Mixer:
    """Lightning attention of MiniMax-01: a square state a head, an output gate and a norm."""
    inner = heads.value * size.value
    kept = recurrent("linear_attention", times(heads, size, size), state_heads=heads)
    return Mixer(kept, 5 * width * inner + inner)


def read_rg_lru(reading: Reading, width: int) -> Mixer:
    """RG-LRU block of Griffin (De et al. 2024): two inputs, convolution, block gates, output."""
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
    return Mixer(recurrent("rg_lru", inner, inner, kernel), weights)
