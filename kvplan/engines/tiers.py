"""Capacity of tiers below device memory, each in its system's own unit and rounding."""

from __future__ import annotations

from kvplan.engines.arithmetic import GIB, ceil_div, round_up

GB = 10**9  # what HiCache and KVBM call GB; all others mean 2^30
OS_PAGE = 4096


def vllm_offload_chunks(
    size_gib: int, block_bytes_all_ranks: int, blocks_per_chunk: int = 1
) -> int:
    """Chunks of vLLM's native CPU offload; chunks are rounded up to the OS page.

    The size is the total over tensor-parallel ranks. Source: vLLM 0.33.0
    v1/kv_offload/cpu/spec.py.
    """
    chunk = round_up(block_bytes_all_ranks * blocks_per_chunk, OS_PAGE)
    return size_gib * GIB // chunk


def kvbm_blocks(size_gb: int, block_bytes: int, override: int = 0) -> int:
    """Blocks of a Dynamo KVBM tier; its GB is 10^9. An override replaces the size.

    Source: ai-dynamo/dynamo block_manager/distributed/leader.rs compute_num_blocks.
    """
    return override if override > 0 else size_gb * GB // block_bytes


def hicache_tokens(
    page_size: int,
    device_tokens: int = 0,
    ratio: float = 0.0,
    size_gb: float = 0.0,
    token_bytes: int = 0,
) -> tuple[int, int]:
    """Pages and tokens of SGLang's host pool on one rank: a ratio of the device pool, or a size.

    A size in GB (10^9) goes before the ratio; one page is added for padding. Source: SGLang 0.5.23
    mem_cache/pool_host/base.py HostKVCache.
    """
    tokens = int(size_gb * 1e9 // token_bytes) if size_gb > 0 else int(device_tokens * ratio)
    pages = tokens // page_size + 1
    return pages, pages * page_size


def lmcache_chunk_bytes(token_bytes_per_rank: int, chunk_tokens: int = 256) -> int:
    """Bytes of an LMCache chunk on one rank. Source: LMCache 0.5.6 v1/config.py chunk_size."""
    return token_bytes_per_rank * chunk_tokens


def lmcache_tokens(size_gib: int, token_bytes_per_rank: int, chunk_tokens: int = 256) -> int:
    """Tokens one worker's CPU tier holds, in whole chunks; the size is per worker and 2^30."""
    chunks = size_gib * GIB // lmcache_chunk_bytes(token_bytes_per_rank, chunk_tokens)
    return chunks * chunk_tokens


def transfer_bytes(
    tokens: int, block_size: int, page_bytes: int, layers: int, context_ranks: int = 1
) -> int:
    """Bytes a prefill hands over on one rank: whole blocks of every layer.

    Source: vLLM distributed/kv_transfer connectors: a partial last block moves whole.
    """
    return ceil_div(ceil_div(tokens, context_ranks), block_size) * page_bytes * layers


def mooncake_eviction(used: float, watermark: float, ratio: float) -> tuple[float, float]:
    """Fraction Mooncake evicts above its watermark, and the least it is content with.

    Source: mooncake-store/src/master_service.cpp EvictionThreadFunc, BatchEvict.
    """
    if used <= watermark:
        return 0.0, 0.0
    target = max(ratio, used - watermark + ratio)
    return target, max(target / 2, used - watermark)


def sglang_ratio_after_retraction(
    decoded: list[int], asked: list[int], retract_decode_steps: int = 20
) -> float:
    """Share of unproduced output that SGLang reserves after requests were retracted.

    Source: SGLang 0.5.23 managers/scheduler_components/new_token_ratio_tracker.py.
    """
    return min(1.0, (sum(decoded) + retract_decode_steps * len(decoded)) / (sum(asked) + 1))
