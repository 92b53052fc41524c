"""Prefix-cache hits in whole blocks: full layers, windows, and the rate the log prints."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from kvplan.engines.arithmetic import ceil_div, round_down


def prompt_hit_tokens(
    prompt: int, cached: int, block_size: int, drop_last_block: bool = False
) -> int:
    """Tokens of a prompt found in the cache: whole blocks, and at least one token is computed.

    EAGLE and MTP give up one more block. Source: v1/core/kv_cache_manager.py get_computed_blocks.
    """
    blocks = min(cached, prompt - 1) // block_size
    return max(blocks - (1 if drop_last_block else 0), 0) * block_size


def salted_hit_tokens(
    prompt: int, cached: int, block_size: int, stored_salt: str | None, salt: str | None
) -> int:
    """Hits under a cache salt: it is hashed into the first block, so other salts never share.

    Source: v1/core/kv_cache_utils.py generate_block_hash_extra_keys.
    """
    return prompt_hit_tokens(prompt, cached, block_size) if salt == stored_salt else 0


def window_hit_blocks(
    cached: Sequence[bool], window: int, block_size: int, drop_last_block: bool = False
) -> int:
    """Blocks of the longest hit a window layer allows.

    The hit must end in ceil((W - 1) / block) cached blocks in a row, one more where the last block
    is dropped; a run from the very start may be shorter. Source:
    single_type_kv_cache_manager.py SlidingWindowManager.find_longest_cache_hit.
    """
    needed = ceil_div(window - 1, block_size) + (1 if drop_last_block else 0)
    run = end = 0
    for index in range(len(cached) - 1, -1, -1):
        if not cached[index]:
            run = 0
            continue
        if run == 0:
            end = index + 1
        run += 1
        if run >= needed:
            break
    hit = end if run else 0
    return max(hit - (1 if drop_last_block and hit else 0), 0)


def hit_unit(block_sizes: Sequence[int]) -> int:
    """Tokens a hit is a multiple of when groups have blocks of several sizes: their LCM."""
    return lcm(*block_sizes)


def shared_prefix_tokens(prefix: int, unit: int, blocks_dropped: int = 0) -> int:
    """Tokens of a shared prefix that can be reused: whole units, less those dropped."""
    return max(round_down(prefix, unit) - blocks_dropped * unit, 0)


def hit_rate(observations: Sequence[tuple[int, int, int]], window_requests: int = 1000) -> float:
    """Share of queried tokens that hit, over the most recent requests.

    Each observation is (requests, queried tokens, hit tokens); old ones leave whole. Source:
    v1/metrics/stats.py CachingMetrics, 1,000 requests by default.
    """
    kept = [seen for seen in observations if seen[0]]
    while len(kept) > 1 and sum(requests for requests, _, _ in kept) > window_requests:
        kept.pop(0)
    queried = sum(queries for _, queries, _ in kept)
    return sum(hits for _, _, hits in kept) / queried if queried else 0.0
