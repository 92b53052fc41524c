"""The attention block of a model with recurrent layers: grown until a page holds one state."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from kvplan.engines.arithmetic import ceil_div, round_up
from kvplan.engines.formats import TURBOQUANT, format_of
from kvplan.engines.parallel import heads_per_rank
from kvplan.engines.shape import ATTENTION, LayerGroup, ModelShape
from kvplan.engines.vllm.caches import attention_cache, element_bytes, state_bytes
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.versions import Rules

SMALLEST_MLA_STEP = 128  # 0.33: kernel blocks of TRT-LLM and FlashInfer MLA come in 128 tokens


@dataclass(frozen=True)
class Blocks:
    """Tokens of an attention block and of a state block, and the padded state page (or None).

    A state block of 0 tokens stands for the whole request (max_model_len).
    """

    attention: int
    state: int
    padded_state: int | None = None
    aligned: bool = False


def aligned_block(state_page: int, token_bytes: int, step: int, smallest: int = 16) -> int:
    """The least multiple of `step` whose attention page is not below one state page.

    It is then rounded up to every backend's smallest kernel block. Source: vLLM
    platforms/interface.py _align_hybrid_block_size; 0.11 models/config.py, where step is 16.
    """
    return round_up(step * ceil_div(state_page, step * token_bytes), smallest)


def padding_percent(padded_page: int, state_page: int) -> float:
    """What the log line "Padding mamba page size by" prints, to two decimals."""
    return round(100 * (padded_page - state_page) / state_page, 2)


def aligned_step(settings: VllmSettings, rules: Rules, mla: bool) -> int:
    """Tokens the attention block is a multiple of before it is fitted to the state.

    0.11: always 16. Later the larger of the kernel block and the configured block; MLA in 0.33 at
    least 128. "align" (0.33) also keeps the mixers' checkpoint alignment, "all" (0.20) the chunk.
    """
    if rules.attention_first:
        return 16
    step = max(settings.kernel_block, settings.block_size)
    if mla and rules.in_flight_batches:
        step = max(step, SMALLEST_MLA_STEP)
    if settings.mamba_cache_mode == "align" and rules.in_flight_batches:
        step = lcm(step, settings.checkpoint_alignment)
    if settings.mamba_cache_mode == "all":
        step = lcm(step, settings.mamba_chunk_size or 1)
    return step


def probe_token_bytes(group: LayerGroup, settings: VllmSettings, rules: Rules, tensor: int) -> int:
    """Bytes of one attention token as the alignment measures it.

    It asks the model for one head count and head size, so V's own size, the scales of MLA in 0.33
    and packed records are not seen. Source: _align_hybrid_block_size of each release.
    """
    element = element_bytes(settings.kv_dtype, settings.model_dtype)
    scales = 8 if settings.kv_dtype.endswith("_per_token_head") else 0
    if group.kind == "mla":
        width = (group.latent + group.rope_dim) * element
        if rules.attention_first:
            return 2 * width
        return width if rules.unify == "pad" else width + scales
    plain = LayerGroup("full", 1, kv_heads=group.kv_heads, head_dim=group.head_dim)
    if settings.kv_dtype in TURBOQUANT and rules.unify != "pad":
        return heads_per_rank(group.kv_heads, tensor) * 2 * group.head_dim * element
    if settings.kv_dtype == "nvfp4":
        per_head = 2 * format_of("nvfp4").vector_bytes(group.head_dim)
        return heads_per_rank(group.kv_heads, tensor) * per_head
    return attention_cache(plain, settings, rules, tensor, 1).token_bytes


def blocks_of(shape: ModelShape, settings: VllmSettings, rules: Rules, tensor: int) -> Blocks:
    """Block sizes of the model: as configured, or aligned where attention meets recurrent layers.

    A state block holds the whole request in mode "none", else as much as an attention block.
    """
    groups = [*shape.groups, *shape.draft]
    states = [g for g in groups if g.kind == "recurrent" and g.layers]
    attention = [g for g in groups if g.kind in (*ATTENTION, "mla") and g.layers]
    whole = settings.mamba_cache_mode == "none"
    configured = settings.block_size
    if not states or not attention:
        return Blocks(configured, 0 if whole else configured)
    page = max(state_bytes(g, settings, rules, tensor) for g in states)
    mla = any(g.kind == "mla" for g in attention)
    first = next((g for g in attention if g.kind in ("mla", "full")), attention[0])
    token_bytes = probe_token_bytes(first, settings, rules, tensor)
    step = aligned_step(settings, rules, mla)
    smallest = settings.kernel_block if rules.in_flight_batches else 1
    block = max(configured, aligned_block(page, token_bytes, step, smallest))
    padded = block * token_bytes
    state_block = 0 if whole else block
    return Blocks(block, state_block, None if padded == page else padded, aligned=True)
