"""Bytes that attention keeps for each token, from the shape of the model."""

from kvplan.registry import formula
from kvplan.values.ops import total

GQA = "Ainslie et al. 2023, arXiv:2305.13245, sec. 2.2"
MLA = "DeepSeek-AI 2024, arXiv:2405.04434, sec. 2.1.2"
SHARED = "layers that reuse the KV of another layer, or have none, keep nothing"


@formula(unit="B/token", symbol="k_g", per="layer_group", kind="full", source=GQA)
def group_kv_per_token(layers, kv_heads, head_dim, kv_element):
    """Keys and values that every layer of the group keeps for one token; the 2 counts K and V."""
    return 2 * layers * kv_heads * head_dim * kv_element


@formula(
    unit="B/token", symbol="k_g", per="layer_group", kind="full", given="value_head_dim", source=GQA
)
def group_kv_per_token(layers, kv_heads, head_dim, value_head_dim, kv_element):
    """Keys and values of every layer of the group for one token, where their heads differ."""
    return layers * kv_heads * (head_dim + value_head_dim) * kv_element


@formula(unit="B/token", symbol="k_g", per="layer_group", kind="mla", source=MLA)
def group_kv_per_token(layers, latent, rope_dim, kv_element):
    """The latent and the rotary key of one token in every layer; all heads share them."""
    return layers * (latent + rope_dim) * kv_element


@formula(
    unit="B/token",
    symbol="k_g",
    per="layer_group",
    kind="mla",
    given="indexer_dim",
    source="DeepSeek-AI 2025, DeepSeek-V3.2-Exp report, sec. 2.1",
)
def group_kv_per_token(layers, latent, rope_dim, kv_element, indexer_dim, indexer_element):
    """Latent, rotary key and the one key that the indexer's heads share; its scale is left out."""
    return layers * ((latent + rope_dim) * kv_element + indexer_dim * indexer_element)


@formula(unit="B/token", symbol="k_g", per="layer_group", kind=("shared", "none"), source=SHARED)
def group_kv_per_token(nothing_per_token):
    """Layers that reuse another layer's KV, or keep none."""
    return nothing_per_token


# Only where every layer keeps all tokens: with windows or recurrent state there is no such number,
# and asking for it is an error; see length.py.
@formula(unit="B/token", symbol="k", source="sum over the layer groups of the model")
def kv_per_token(group_kv_per_token):
    """Bytes one more token of a sequence costs in all layers; scales and padding are left out."""
    return total(group_kv_per_token)


@formula(
    unit="B",
    symbol="k_n",
    show="GiB",
    digits=2,
    source="Kwon et al. 2023, arXiv:2309.06180, sec. 3",
)
def kv_per_sequence(context, kv_per_token):
    """Bytes one sequence holds at its present length, without rounding to pages."""
    return context * kv_per_token


@formula(unit="B/token", symbol="k_g,mha", per="layer_group", kind="full", source=GQA)
def group_mha_kv_per_token(layers, query_heads, head_dim, kv_element):
    """The same group if every query head had K and V of its own; the 2 counts K and V."""
    return 2 * layers * query_heads * head_dim * kv_element


@formula(unit="B/token", symbol="k_mha", source="sum over the layer groups of the model")
def mha_kv_per_token(group_mha_kv_per_token):
    """Bytes one token would cost without grouped queries, in all layers."""
    return total(group_mha_kv_per_token)
