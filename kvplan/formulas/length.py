"""Bytes of one request as a function of its length: a fixed part and a piecewise linear one.

These are the least an architecture needs; what an engine allocates on top is left out.
"""

from kvplan.registry import formula
from kvplan.values.ops import ceil_div, floor_div, maximum, minimum, total, where

GQA = "Ainslie et al. 2023, arXiv:2305.13245, sec. 2.2"
WINDOW = "Beltagy et al. 2020, arXiv:2004.05150, sec. 3.1"
CHUNK = "Meta 2025, Llama 4 model card and configuration: attention_chunk_size"
STATE = "Gu and Dao 2023, arXiv:2312.00752, sec. 3.3"
CROSS = "Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2.3"
WINDOWED = ("sliding", "chunked")


@formula(unit="B/token", symbol="h_g", per="layer_group", kind=(*WINDOWED, "cross"), source=GQA)
def group_kept_token_bytes(layers, kv_heads, head_dim, kv_element):
    """Bytes the group keeps for each token it still holds; the 2 counts K and V."""
    return 2 * layers * kv_heads * head_dim * kv_element


@formula(
    unit="B/token",
    symbol="h_g",
    per="layer_group",
    kind=(*WINDOWED, "cross"),
    given="value_head_dim",
    source=GQA,
)
def group_kept_token_bytes(layers, kv_heads, head_dim, value_head_dim, kv_element):
    """Bytes the group keeps for each token it still holds, where K and V heads differ."""
    return layers * kv_heads * (head_dim + value_head_dim) * kv_element


@formula(
    unit="B/token",
    symbol="h_g",
    per="layer_group",
    kind="sliding_latent",
    source="DeepSeek-AI 2024, arXiv:2405.04434, sec. 2.1.2",
)
def group_kept_token_bytes(layers, latent, rope_dim, kv_element):
    """Bytes of the latent and the rotary key of each token the window still holds."""
    return layers * (latent + rope_dim) * kv_element


@formula(
    unit="token",
    symbol="n_g",
    per="layer_group",
    kind=("sliding", "sliding_latent"),
    source=WINDOW,
)
def group_kept_tokens(context, window):
    """Tokens that still lie in the window."""
    return minimum(context, window)


@formula(unit="token", symbol="n_g", per="layer_group", kind="chunked", source=CHUNK)
def group_kept_tokens(context, chunk):
    """Tokens of the chunk that is being written; earlier chunks are not read again."""
    return context - (maximum(1, ceil_div(context, chunk)) - 1) * chunk


@formula(unit="token", symbol="n_g", per="layer_group", kind="cross", source=CROSS)
def group_kept_tokens(encoder_length):
    """Tokens of the encoder, kept whatever is generated."""
    return encoder_length


@formula(
    unit="B",
    symbol="C_g",
    per="layer_group",
    kind=("full", "mla", "shared", "none"),
    source=GQA,
)
def group_kv_at_context(context, group_kv_per_token):
    """Bytes the group holds at a length, when it keeps every token."""
    return context * group_kv_per_token


@formula(
    unit="B",
    symbol="C_g",
    per="layer_group",
    kind=(*WINDOWED, "sliding_latent", "cross"),
    source=WINDOW,
)
def group_kv_at_context(group_kept_tokens, group_kept_token_bytes):
    """Bytes the group holds at a length, when it keeps only some tokens."""
    return group_kept_tokens * group_kept_token_bytes


@formula(unit="B", symbol="C_g", per="layer_group", kind="recurrent", source=STATE)
def group_kv_at_context(layers, conv_elements, conv_element):
    """Bytes of the convolution state, the same at every length."""
    return layers * conv_elements * conv_element


@formula(
    unit="B",
    symbol="C_g",
    per="layer_group",
    kind="recurrent",
    given="state_elements",
    source=STATE,
)
def group_kv_at_context(layers, conv_elements, conv_element, state_elements, state_element):
    """Bytes of convolution and recurrent state, the same at every length."""
    return layers * (conv_elements * conv_element + state_elements * state_element)


@formula(
    unit="B", symbol="C_min", show="GiB", digits=3, source="sum over the layer groups of the model"
)
def kv_at_context(group_kv_at_context):
    """Least bytes one request holds at a length; an engine's blocks and padding come on top."""
    return total(group_kv_at_context)


@formula(unit="B/token", symbol="k_avg", show="KiB/token", digits=1, source="bytes over length")
def kv_average_per_token(kv_at_context, context):
    """Bytes a token costs on average at a length."""
    return kv_at_context / context


@formula(
    unit="B/token",
    symbol="k'_g",
    per="layer_group",
    kind=("full", "mla", "shared", "none"),
    source=GQA,
)
def group_growth_per_token(group_kv_per_token):
    """Bytes one more token adds to a group that keeps every token."""
    return group_kv_per_token


@formula(
    unit="B/token",
    symbol="k'_g",
    per="layer_group",
    kind=("sliding", "sliding_latent"),
    source=WINDOW,
)
def group_growth_per_token(context, window, group_kept_token_bytes, nothing_per_token):
    """Bytes one more token adds: none once the window is full."""
    return where(context < window, group_kept_token_bytes, nothing_per_token)


@formula(
    unit="B/token", symbol="k'_g", per="layer_group", kind=("recurrent", "cross"), source=STATE
)
def group_growth_per_token(nothing_per_token):
    """Fixed state does not grow with the length."""
    return nothing_per_token


@formula(
    unit="B/token",
    symbol="k'",
    show="KiB/token",
    digits=1,
    source="sum over the layer groups of the model",
)
def kv_growth_per_token(group_growth_per_token):
    """Bytes one more token adds at this length."""
    return total(group_growth_per_token)


@formula(unit="1", symbol="N_C", source="whole requests of one length")
def requests_at_context(kv_budget, kv_at_context):
    """Requests of one length whose least bytes the budget holds; no blocks, no padding."""
    return floor_div(kv_budget, kv_at_context)
