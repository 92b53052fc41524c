"""TensorRT-LLM's pools: bytes of a token, blocks by code path, windows that share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from kvplan.engines.arithmetic import ceil_div
from kvplan.engines.parallel import heads_per_rank

FREE_MEMORY_FRACTION = Fraction(9, 10)
TOKENS_PER_BLOCK = 32
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


def elements_per_token(kv_heads: Sequence[int], head_dim: int, tensor: int, mla: bool) -> int:
    """Elements one token keeps on one rank: K and V of every local layer, or one latent.

    `kv_heads` lists the heads of each local layer of the whole model; with MLA `head_dim` is latent
    + rope. Source: _torch/pyexecutor/resource_manager.py get_cache_bytes_per_token.
    """
    if mla:
        return len(kv_heads) * head_dim
    return 2 * sum(heads_per_rank(heads, tensor) for heads in kv_heads) * head_dim


def bytes_of_elements(elements: int, dtype: str) -> int:
    """Bytes of the elements; nvfp4 takes half a byte and one fp8 scale for 16 elements."""
    if dtype == "nvfp4":
        return ceil_div(elements, 2) + elements // 16
    return elements * _BYTES[dtype]


def pool_bytes(
    free: int,
    fraction: Fraction = FREE_MEMORY_FRACTION,
    max_gpu_total_bytes: int = 0,
) -> int:
    """Bytes of the primary pool: a fraction of what is free after the weights, or a given total.

    Source: resource_manager.py calculate_max_num_blocks_for_vswa.
    """
    return max_gpu_total_bytes if max_gpu_total_bytes > 0 else int(free * fraction)


def primary_blocks(
    pool: int | Fraction,
    token_bytes: int,
    tokens_per_block: int = TOKENS_PER_BLOCK,
    max_tokens: int | None = None,
) -> int:
    """Blocks of the primary pool on the Python path: cut. The smallest rank decides for all.

    `max_tokens` beside a fraction lowers the count. Source: resource_manager.py
    calculate_max_num_blocks.
    """
    tokens = Fraction(pool) / token_bytes
    if max_tokens is not None:
        tokens = min(tokens, Fraction(max_tokens))
    return int(tokens // tokens_per_block)


def primary_blocks_cpp(
    pool: int | Fraction,
    token_bytes: int,
    tokens_per_block: int = TOKENS_PER_BLOCK,
    max_tokens: int | None = None,
) -> int:
    """Blocks of the primary pool on the C++ path: whole tokens, then rounded up to blocks.

    Source: batch_manager/kvCacheManager.cpp calculateMaxNumBlocks.
    """
    tokens = int(Fraction(pool) / token_bytes)
    if max_tokens is not None:
        tokens = min(tokens, max_tokens)
    return ceil_div(tokens, tokens_per_block)


def secondary_blocks(host_bytes: int, token_bytes: int, tokens_per_block: int) -> int:
    """Blocks of the host pool. Source: calculate_max_num_blocks."""
    return host_bytes // token_bytes // tokens_per_block


def sink_bubble(sink_tokens: int, tokens_per_block: int) -> int:
    """Tokens lost behind sink tokens that do not fill a block. Source: getSinkBubbleLength."""
    return -sink_tokens % tokens_per_block


def beam_blocks(
    length: int, window: int, tokens_per_block: int = TOKENS_PER_BLOCK, sink_tokens: int = 0
) -> int:
    """Blocks one beam needs at most. Source: calculateMaxBlockRequirementsPerBeam."""
    tokens = min(length, window) + sink_bubble(sink_tokens, tokens_per_block)
    return ceil_div(tokens, tokens_per_block)


def sequence_blocks(
    prompt: int,
    output: int,
    window: int,
    tokens_per_block: int = TOKENS_PER_BLOCK,
    beams: int = 1,
    sink_tokens: int = 0,
) -> int:
    """Blocks one request needs at most; beams share the blocks that hold only prompt tokens.

    Source: kvCacheManager.cpp calculateMaxBlockRequirements.
    """
    if beams == 1:
        return beam_blocks(prompt + output, window, tokens_per_block, sink_tokens)
    if window <= output:
        return beam_blocks(window, window, tokens_per_block, sink_tokens) * beams
    shared_tokens = min(window, prompt + output) - output
    bubble = sink_bubble(sink_tokens, tokens_per_block)
    shared = (shared_tokens + bubble) // tokens_per_block
    rest = output + shared_tokens - shared * tokens_per_block
    return shared + ceil_div(rest, tokens_per_block) * beams


def largest_window(
    prompt: int,
    output: int,
    blocks: int,
    tokens_per_block: int = TOKENS_PER_BLOCK,
    beams: int = 1,
    sink_tokens: int = 0,
) -> int:
    """The attention window the engine lowers itself to when a sequence does not fit.

    Source: kvCacheManager.cpp calculateMaxAttentionWindow.
    """
    needed = sequence_blocks(0, output, output, tokens_per_block, beams, sink_tokens)
    if needed > blocks:
        return blocks // beams * tokens_per_block
    return min(output + (blocks - needed) * tokens_per_block, prompt + output)


def adjust_windows(
    layer_windows: Sequence[int],
    layer_token_bytes: int,
    pool: int,
    max_tokens: int | None = None,
) -> list[int]:
    """Windows of all layers lowered until one sequence fits: water is poured in level by level.

    All layers rise together; a layer that reaches its window leaves; what is left is shared by the
    others until the bytes or `max_tokens` run out. Nothing changes when a sequence fits with room
    to spare. Source: resource_manager.py adjust_window_sizes_for_vswa.
    """
    counts = {w: layer_windows.count(w) for w in sorted(set(layer_windows))}
    if sum(window * n * layer_token_bytes for window, n in counts.items()) < pool:
        return list(layer_windows)
    level, left, layers, below = 0, pool, len(layer_windows), 0
    adjusted: dict[int, int] = {}
    lowered = list(layer_windows)
    for window, count in counts.items():
        if left > 0 and layers:
            rise = min(left // (layers * layer_token_bytes), window - below)
            left -= rise * layers * layer_token_bytes
            level += rise
            if level < window:
                left = 0
            if max_tokens is not None and level >= max_tokens:
                level, left = max_tokens, 0
        adjusted[window] = level
        # the engine maps the whole list again at every level
        lowered = [adjusted.get(w, w) for w in lowered]
        layers -= count
        below = window
    return lowered


def window_blocks(
    pool: int,
    token_bytes_by_window: Mapping[int, int],
    tokens_per_block: int = TOKENS_PER_BLOCK,
    shares: Sequence[Fraction] | None = None,
) -> dict[int, int]:
    """Blocks of each window's pool; the pools share the memory equally unless shares are given.

    `token_bytes_by_window` counts one token in all layers of that window. Source:
    resource_manager.py calculate_max_num_blocks_for_vswa, TRTLLM_WINDOW_SIZE_SHARES.
    """
    windows = sorted(token_bytes_by_window)
    parts = shares or [Fraction(1, len(windows))] * len(windows)
    return {
        window: int(pool * part / token_bytes_by_window[window] // tokens_per_block)
        for window, part in zip(windows, parts, strict=True)
    }


def estimation_tokens(
    input_tokens: int,
    requests: int,
    tokens_per_block: int,
    beams: int = 1,
    extra_tokens: int = 1,
    attention_ranks: int = 1,
) -> int:
    """Tokens of the small cache of the profiling run: every request in blocks of its own.

    One token is generated; with attention data parallelism each rank holds its share of the
    requests. Source: _torch/pyexecutor/_util.py _get_token_num_for_estimation.
    """
    blocks = ceil_div(input_tokens + extra_tokens, tokens_per_block) * requests
    return ceil_div(blocks, attention_ranks) * beams * tokens_per_block


def host_tier_quota(
    device_quota: int,
    host_available: int | None,
    colocated_ranks: int = 1,
    memlock_limit: int | None = None,
    shares_device_memory: bool = False,
) -> int:
    """Bytes the automatic host tier takes on one rank; None stands for a limit that is not known.

    At most the device quota, half of the rank's share of free host memory, and 0.8 of the lock
    limit. Where host and device are one memory, the device quota is taken off first, and nothing
    may be left; elsewhere a result that is not positive falls back to the device quota. Source:
    kv_cache_manager_v2.py _compute_auto_host_tier_quota.
    """
    limits = [device_quota]
    if host_available is not None:
        own = device_quota if shares_device_memory else 0
        limits.append((host_available - own) // colocated_ranks // 2)
    if memlock_limit is not None:
        limits.append(memlock_limit * 4 // 5)
    quota = min(limits)
    if quota > 0:
        return quota
    return 0 if shares_device_memory else device_quota


def max_batch(pool: int, token_bytes: int, max_sequence: int, tokens_per_block: int) -> int:
    """Sequences of `max_sequence` tokens in a pool: blocks over blocks of a sequence.

    Source: ai-dynamo/aiconfigurator pull request 652, within 2 % on 72 measured points.
    """
    blocks = pool // (token_bytes * tokens_per_block)
    return blocks // ceil_div(max_sequence, tokens_per_block)
