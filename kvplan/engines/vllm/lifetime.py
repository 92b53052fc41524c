"""Blocks of a running request: what is taken, what a window frees, and who is admitted."""

from __future__ import annotations

from kvplan.engines.arithmetic import ceil_div


def window_blocks_freed(computed: int, window: int, block_size: int, retained: int = 0) -> int:
    """Leading blocks that have left the window once `computed` tokens are processed.

    Source: v1/core/single_type_kv_cache_manager.py SlidingWindowManager.
    """
    return max(0, computed - window + 1 - retained) // block_size


def chunk_blocks_freed(computed: int, chunk: int, block_size: int) -> int:
    """Leading blocks below the present chunk. Source: ChunkedLocalAttentionManager."""
    return computed // chunk * chunk // block_size


def blocks_of_tokens(
    computed: int, new: int, block_size: int, max_model_len: int, lookahead: int = 0
) -> int:
    """Blocks a request holds after a step; look-ahead slots are for draft tokens.

    Source: v1/core/kv_cache_manager.py allocate_slots.
    """
    return ceil_div(min(computed + new + lookahead, max_model_len), block_size)


def window_peak_blocks(prompt: int, chunk: int, window: int, block_size: int) -> int:
    """Most blocks a window layer holds during a chunked prefill without prefix caching.

    Out-of-window blocks are freed before the blocks of a chunk are taken. Source:
    KVCacheManager.allocate_slots; the planner's bound is one block above for aligned chunks.
    """
    peak = computed = 0
    while computed < prompt:
        new = min(chunk, prompt - computed)
        freed = window_blocks_freed(computed, window, block_size)
        peak = max(peak, ceil_div(computed + new, block_size) - freed)
        computed += new
    return peak


def decode_blocks(prompt: int, block_size: int, steps: int) -> list[int]:
    """Blocks held after each decode step: outputs are never reserved, a step adds one token."""
    return [ceil_div(prompt + step, block_size) for step in range(1, steps + 1)]


def blocks_to_allocate(needed: int, hits: int, evictable_hits: int) -> int:
    """Free blocks a request takes: a hit on an idle block leaves the free queue too.

    Null blocks of a window count as hits and are not evictable. Source:
    single_type_kv_cache_manager.py get_num_blocks_to_allocate.
    """
    return max(needed - hits, 0) + evictable_hits


def watermark_blocks(watermark: float, num_blocks: int) -> int:
    """Blocks kept free while others run: int(watermark x N). Source: kv_cache_manager.py."""
    return int(watermark * num_blocks)


def admitted_blocks(
    prompt: int,
    chunk: int,
    free: int,
    block_size: int,
    kept: int = 0,
    whole_prompt: bool = True,
) -> int | None:
    """Blocks of the first chunk if the request is admitted, else None.

    The whole prompt must fit beside the blocks kept free (the default from 0.20 on), not only its
    first chunk; what is kept counts only while another request is scheduled. Source:
    v1/core/sched/scheduler.py scheduler_reserve_full_isl.
    """
    first = ceil_div(min(chunk, prompt), block_size)
    needed = ceil_div(prompt, block_size) if whole_prompt else first
    return first if needed + kept <= free else None
