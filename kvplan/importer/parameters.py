"""Parameter counts (elements) of the parts of a decoder, from their dimensions."""

from __future__ import annotations

from kvplan.importer.records import Parameters, Shape, Weights


def linear(inputs: int, outputs: int, bias: bool = False) -> int:
    """A matrix, and a bias on its outputs if it has one."""
    return inputs * outputs + (outputs if bias else 0)


def attention(
    width: int,
    query_heads: int,
    kv_heads: int,
    head_dim: int,
    value_head_dim: int,
    qkv_bias: bool = False,
    out_bias: bool = False,
) -> int:
    """The four projections of an attention block with separate query, key and value heads."""
    return (
        linear(width, query_heads * head_dim, qkv_bias)
        + linear(width, kv_heads * head_dim, qkv_bias)
        + linear(width, kv_heads * value_head_dim, qkv_bias)
        + linear(query_heads * value_head_dim, width, out_bias)
    )


def mlp(width: int, inner: int, gated: bool = True, bias: bool = False) -> int:
    """A feed-forward block: gate, up and down, or only up and down."""
    return (2 if gated else 1) * linear(width, inner, bias) + linear(inner, width, bias)


def experts(one: int, count: int, active: int, always: int = 0) -> Weights:
    """A mixture: `count` experts of `one` element count, `active` of them used, `always` the
    router and shared ones.
    """
    return Weights(count * one + always, min(active, count) * one + always, count * one)


def short_convolution(channels: int, kernel: int, bias: bool = False) -> int:
    """A depthwise causal convolution: one filter a channel."""
    return channels * kernel + (channels if bias else 0)


def mamba1(
    width: int, inner: int, states: int, kernel: int, rank: int, bias: bool, conv_bias: bool
) -> int:
    """Mamba-1 (Gu and Dao 2023): in, convolution, x and dt projections, A, D, out; one head or
    several weigh the same.
    """
    return (
        linear(width, 2 * inner, bias)
        + short_convolution(inner, kernel, conv_bias)
        + linear(inner, rank + 2 * states)
        + linear(rank, inner, True)
        + inner * states
        + inner
        + linear(inner, width, bias)
    )


def mamba2(
    width: int,
    inner: int,
    heads: int,
    groups: int,
    states: int,
    kernel: int,
    bias: bool,
    conv_bias: bool,
) -> int:
    """Mamba-2 (Dao and Gu 2024): one in projection, convolution over x, B and C, A, D, dt bias,
    gated norm, out.
    """
    channels = inner + 2 * groups * states
    return (
        linear(width, inner + channels + heads, bias)
        + short_convolution(channels, kernel, conv_bias)
        + 3 * heads
        + inner
        + linear(inner, width, bias)
    )


def gated_delta_net(
    width: int,
    key_heads: int,
    key_head_dim: int,
    value_heads: int,
    value_head_dim: int,
    kernel: int,
) -> int:
    """Gated DeltaNet as in Qwen3-Next: q, k, v, z, two gates a value head, convolution, A, dt
    bias, norm, out.
    """
    keys, values = key_heads * key_head_dim, value_heads * value_head_dim
    return (
        linear(width, 2 * keys + 2 * values + 2 * value_heads)
        + short_convolution(2 * keys + values, kernel)
        + 2 * value_heads
        + value_head_dim
        + linear(values, width)
    )


def count(shape: Shape) -> Parameters:
    """Total, active and embedding parameters of a shape, without its draft layers."""
    if shape.uncounted:
        why = f"not counted: {shape.uncounted}"
        return Parameters(None, None, None, shape.embedding or None, why)
    sum_ = shape.rest
    for layer in shape.layers:
        sum_ = sum_ + layer.weights
    how = "counted from the shape: embeddings, projections, experts, norms"
    total, active = sum_.total + shape.embedding, sum_.active + shape.embedding
    return Parameters(total, active, sum_.experts, shape.embedding, how)
