"""Bytes that attention keeps for each token, from the shape of the model."""

from kvplan.registry import formula
from kvplan.values.ops import total


@formula(
    unit="B/token",
    symbol="k_g",
    per="layer_group",
    kind="full",
    source="Ainslie et al. 2023, arXiv:2305.13245, sec. 2.2",
)
def group_kv_per_token(layers, kv_heads, head_dim, kv_element):
    """Keys and values that every layer of the group keeps for one token; the 2 counts K and V."""
    return 2 * layers * kv_heads * head_dim * kv_element


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


@formula(
    unit="B/token",
    symbol="k_g,mha",
    per="layer_group",
    kind="full",
    source="Ainslie et al. 2023, arXiv:2305.13245, sec. 2.2",
)
def group_mha_kv_per_token(layers, query_heads, head_dim, kv_element):
    """The same group if every query head had K and V of its own; the 2 counts K and V."""
    return 2 * layers * query_heads * head_dim * kv_element


@formula(unit="B/token", symbol="k_mha", source="sum over the layer groups of the model")
def mha_kv_per_token(group_mha_kv_per_token):
    """Bytes one token would cost without grouped queries, in all layers."""
    return total(group_mha_kv_per_token)
