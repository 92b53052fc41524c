"""The cache of one layer on one rank: what kind it is and how many bytes a block takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from kvplan.engines.formats import (
    ALIASES,
    LATENT_RECORDS,
    TURBOQUANT,
    KvStorage,
    format_of,
    indexer_bytes,
    turboquant_slot_bytes,
)
from kvplan.engines.parallel import heads_per_rank, state_elements_per_rank
from kvplan.engines.shape import LayerGroup, Layout, RecurrentState
from kvplan.engines.vllm.settings import LAYOUTS, VllmSettings
from kvplan.engines.vllm.versions import Rules
from kvplan.errors import ValueProblem

CacheKind = Literal["full", "sliding", "chunked", "mla", "mamba", "cross"]
_HEAD_SCALED = ("fp8_per_token_head", "int8_per_token_head", "int4_per_token_head")


@dataclass(frozen=True)
class Cache:
    """One layer's cache; two layers with equal caches can share a group.

    A page is `token_bytes` x `block_size` (a state is `state_bytes`), or `padded` where that is
    set. `identity` holds what else must agree: heads, head sizes and format.
    """

    kind: CacheKind
    block_size: int
    token_bytes: int = 0
    state_bytes: int = 0
    padded: int | None = None
    window: int = 0
    chunk: int = 0
    identity: tuple[int | str, ...] = ()
    slotted: bool = False  # 0.20 keeps turboquant slots in a class of their own

    @property
    def page(self) -> int:
        """Bytes of one block in one layer."""
        return self.unpadded if self.padded is None else self.padded

    @property
    def unpadded(self) -> int:
        """Bytes of one block that hold content."""
        return self.state_bytes if self.kind == "mamba" else self.token_bytes * self.block_size

    @property
    def is_full(self) -> bool:
        """Whether it keeps every token (full attention and MLA count as one type)."""
        return self.kind in ("full", "mla")


def element_bytes(kv_dtype: str, model_dtype: str) -> int:
    """Bytes of a stored element: all quantised caches are arrays of bytes, else the dtype's size.

    Source: vLLM utils/torch_utils.py STR_DTYPE_TO_TORCH_DTYPE.
    """
    if kv_dtype == "auto":
        kv_dtype = model_dtype
    if kv_dtype in LATENT_RECORDS or kv_dtype in TURBOQUANT or kv_dtype.startswith("nvfp4"):
        return 1
    fmt = format_of(kv_dtype)
    return fmt.packed if fmt.values == 1 else 1


def _head_bytes(kind: str, dim: int, value_dim: int, settings: VllmSettings, rules: Rules) -> int:
    """K and V of one token and head. Sources, by release:

    0.33: AttentionSpec.state_content_size_bytes and the backends' customize_spec. 0.20:
    real_page_size_bytes, where windows ignore nvfp4 and chunks ignore V's own head size and int4
    does not exist. 0.11 and before: 2 x head_size x element, V's own size ignored.
    """
    dtype = settings.kv_dtype
    element = element_bytes(dtype, settings.model_dtype)
    if not rules.separate_value_dim:
        return 2 * dim * element
    packs_windows = rules.unify == "pad"
    if dtype in TURBOQUANT and (kind == "full" or packs_windows):
        return turboquant_slot_bytes(dtype, dim)
    if dtype.startswith("nvfp4") and (kind == "full" or packs_windows):
        if packs_windows and dim != value_dim:
            what = f"nvfp4 with K heads of {dim} and V heads of {value_dim}"
            raise ValueProblem(what, "vLLM 0.33 refuses unequal sides", "choose another format")
        fmt = format_of("nvfp4")
        return fmt.vector_bytes(dim) + fmt.vector_bytes(value_dim)
    if kind == "chunked" and not packs_windows:
        value_dim = dim
    if dtype == "int4_per_token_head":
        dim, value_dim = dim // 2, value_dim // 2
    scales = 8 if dtype in _HEAD_SCALED and rules.head_scales else 0
    return (dim + value_dim) * element + scales


def attention_cache(
    group: LayerGroup, settings: VllmSettings, rules: Rules, tensor: int, block_size: int
) -> Cache:
    """The cache of a layer with K and V heads on one rank; heads split, at least one each."""
    kind: CacheKind = group.kind  # type: ignore[assignment]
    if kind == "chunked" and rules.chunked_is_full:
        kind = "full"
    heads = heads_per_rank(group.kv_heads, tensor)
    per_head = _head_bytes(kind, group.head_dim, group.value_dim, settings, rules)
    return Cache(
        kind,
        block_size,
        heads * per_head,
        window=group.window if kind == "sliding" else 0,
        chunk=group.chunk if kind == "chunked" else 0,
        identity=_identity(heads, group.head_dim, group.value_dim, settings.kv_dtype, rules),
        slotted=settings.kv_dtype in TURBOQUANT and kind == "full" and rules.promoted_is_plain,
    )


def _identity(
    heads: int, dim: int, value_dim: int, kv_dtype: str, rules: Rules
) -> tuple[int | str, ...]:
    """What layers of one group must agree on; V's head size counts from 0.33 on, the
    quantisation mode from 0.20 on. Source: the merge methods of kv_cache_interface.py."""
    counts = rules.head_scales and not _is_plain(kv_dtype)
    if kv_dtype in TURBOQUANT and rules.promoted_is_plain:
        counts = False
    mode = kv_dtype if counts else ""
    return heads, dim, value_dim if rules.unify == "pad" else 0, mode


def _is_plain(kv_dtype: str) -> bool:
    return ALIASES.get(kv_dtype, kv_dtype) in ("auto", "bf16", "fp16", "fp32")


def latent_token_bytes(group: LayerGroup, settings: VllmSettings, rules: Rules) -> int:
    """One MLA vector of a token: packed records are opaque blobs of a fixed size.

    Source: mla_attention.py get_kv_cache_spec and MLACommonBackend.customize_spec (0.33, which
    adds 8 scale bytes in per-token-head formats); MLAAttentionSpec (0.20 and before).
    """
    dtype = settings.kv_dtype
    if dtype in LATENT_RECORDS:
        return LATENT_RECORDS[dtype].record_bytes(512, 64)
    width = group.latent + group.rope_dim
    if dtype == "int4_per_token_head" and rules.unify == "pad":
        width //= 2
    scales = 8 if dtype in _HEAD_SCALED and rules.unify == "pad" else 0
    return width * element_bytes(dtype, settings.model_dtype) + scales


def latent_caches(
    group: LayerGroup, settings: VllmSettings, rules: Rules, block_size: int
) -> tuple[Cache, ...]:
    """The latent of an MLA layer, copied on every rank, and the key of its indexer if it has one.

    Source: mla_attention.py get_kv_cache_spec; models/deepseek_v2.py DeepseekV32IndexerCache.
    """
    width = group.latent + group.rope_dim
    identity: tuple[int | str, ...] = (1, width, 0, settings.kv_dtype)
    latent = Cache("mla", block_size, latent_token_bytes(group, settings, rules), identity=identity)
    if not group.indexer_dim:
        return (latent,)
    key = indexer_bytes(group.indexer_dim, KvStorage())
    return latent, Cache("mla", block_size, key, identity=(1, key, 0, "indexer"))


def state_dtypes(state: RecurrentState, settings: VllmSettings, rules: Rules) -> tuple[str, str]:
    """Dtypes of the convolution and of the recurrent state.

    The convolution follows the model. The state follows `mamba_ssm_cache_dtype`, else the
    convolution; KDA keeps fp32 unless told otherwise (always in 0.20), gated delta nets follow the
    model in 0.11. Source: mamba_utils.py MambaStateDtypeCalculator.
    """
    conv = settings.model_dtype
    asked = settings.ssm_dtype or state.state_dtype or "auto"
    if state.mixer == "kda":
        fixed = asked == "auto" or rules.unify != "pad"
        return conv, "fp32" if fixed else asked
    if state.mixer in ("lightning", "linear", "short_conv"):
        return conv, conv
    if state.mixer == "gated_delta_net" and rules.attention_first:
        return conv, conv
    return conv, conv if asked == "auto" else asked


def state_bytes(group: LayerGroup, settings: VllmSettings, rules: Rules, tensor: int) -> int:
    """Bytes one request keeps in one recurrent layer on one rank."""
    assert group.state is not None  # the shape refuses a recurrent group without one
    conv, state = state_elements_per_rank(group.state, tensor, settings.speculative_tokens)
    dtypes = state_dtypes(group.state, settings, rules)
    size = [format_of(ALIASES.get(name, name)).packed for name in dtypes]
    return conv * size[0] + state * size[1]


def layer_caches(
    group: LayerGroup,
    settings: VllmSettings,
    rules: Rules,
    layout: Layout,
    block_size: int,
    state_block: int,
    padded_state: int | None,
) -> tuple[Cache, ...]:
    """The caches one layer of the group keeps on one rank; none for shared and empty layers."""
    if group.kind in ("shared", "none"):
        return ()
    if group.kind == "mla":
        return latent_caches(group, settings, rules, block_size)
    if group.kind == "recurrent":
        content = state_bytes(group, settings, rules, layout.tensor)
        mixer = group.state.mixer if group.state else ""
        return (Cache("mamba", state_block, 0, content, padded_state, identity=(mixer, content)),)
    return (attention_cache(group, settings, rules, layout.tensor, block_size),)


def promoted(cache: Cache, settings: VllmSettings, rules: Rules, block_size: int) -> Cache:
    """A window or chunk layer allocated as full attention because the hybrid manager is off.

    Releases up to 0.20 rebuild it from heads and K's head size and forget the format. Source:
    unify_hybrid_kv_cache_specs (0.8 to 0.20), _promote_local_kv_cache_specs (0.33).
    """
    if not rules.promoted_is_plain:
        padded = cache.padded
        if padded is not None:
            padded = max(padded, cache.token_bytes * block_size)
        return replace(cache, kind="full", block_size=block_size, padded=padded)
    heads, dim = int(cache.identity[0]), int(cache.identity[1])
    element = element_bytes(settings.kv_dtype, settings.model_dtype)
    plain = _identity(heads, dim, dim, "auto", rules)
    return replace(cache, kind="full", token_bytes=heads * 2 * dim * element, identity=plain)


def refuse_unknown(settings: VllmSettings, rules: Rules) -> None:
    """A format or a state cache mode that the release does not have is an error."""
    dtype = ALIASES.get(settings.kv_dtype, settings.kv_dtype)
    for asked, known, what in (
        (dtype, rules.formats, "KV cache dtype"),
        (settings.mamba_cache_mode, rules.state_modes, "mamba cache mode"),
        (settings.kv_cache_layout, LAYOUTS, "KV cache layout"),
    ):
        if asked not in known:
            problem = f"vLLM {rules.version} has no {what} '{asked}'"
            raise ValueProblem(problem, f"it has: {', '.join(known)}", "choose one of them")
