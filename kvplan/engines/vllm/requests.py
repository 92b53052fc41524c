"""Blocks one request can hold in one group at a given length, release by release."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.arithmetic import ceil_div
from kvplan.engines.vllm.caches import Cache
from kvplan.engines.vllm.settings import VllmSettings, tokens_in_flight
from kvplan.engines.vllm.versions import Rules


class DcpWithSlidingWindow(Exception):
    """The engine asserts that decode-context parallel is off for sliding windows."""


def full_blocks(length: int, block_size: int, context_ranks: int = 1) -> int:
    """Blocks of a layer that keeps every token; decode-context ranks share the tokens.

    Source: FullAttentionSpec.max_memory_usage_bytes.
    """
    return ceil_div(ceil_div(length, context_ranks), block_size)


def sliding_blocks(
    length: int, block_size: int, window: int, in_flight: int, retained: int = 0
) -> int:
    """Blocks of a window: its last W - 1 tokens and all tokens in flight, and one more block.

    The window may start inside a block, hence the one more, also where the length is the smaller.
    Source: SlidingWindowSpec.max_admission_blocks_per_request.
    """
    return ceil_div(min(window - 1 + retained + in_flight, length), block_size) + 1


def chunked_blocks(length: int, block_size: int, chunk: int, in_flight: int) -> int:
    """Blocks of a chunk and all tokens in flight; no further block.

    Source: ChunkedLocalAttentionSpec.max_admission_blocks_per_request.
    """
    return ceil_div(min(chunk + in_flight, length), block_size)


def state_blocks(
    mode: str, speculative_tokens: int, checkpoint_blocks: int, length: int, block_size: int
) -> int:
    """Blocks of a recurrent state: one, two with prefix caching, one a block in mode "all".

    Source: MambaSpec.max_memory_usage_bytes.
    """
    if mode == "all":
        return ceil_div(length, block_size)
    if mode == "align":
        return 2 + speculative_tokens + checkpoint_blocks
    return 1 + speculative_tokens


def tokens_per_block(block_size: int, context_ranks: int, sharded: bool) -> int:
    """Tokens of the request one block covers: attention is shared by context ranks, states not.

    Source: v1/core/kv_cache_utils.py resolve_kv_cache_block_sizes, MambaSpec.
    """
    return block_size * context_ranks if sharded else block_size


@dataclass(frozen=True)
class Demand:
    """What decides the blocks of one request besides its length."""

    settings: VllmSettings
    rules: Rules
    in_flight: int
    context_ranks: int
    decode_context: int

    def blocks(self, cache: Cache, length: int) -> int:
        """Blocks one request of that length can hold in a group of such layers."""
        settings = self.settings
        if cache.kind in ("full", "mla"):
            return full_blocks(length, cache.block_size, self.context_ranks)
        if cache.kind == "sliding":
            if self.decode_context > 1:
                raise DcpWithSlidingWindow
            retained = settings.extra_retained_tokens if self.rules.in_flight_batches else 0
            return sliding_blocks(length, cache.block_size, cache.window, self.in_flight, retained)
        if cache.kind == "chunked":
            return chunked_blocks(length, cache.block_size, cache.chunk, self.in_flight)
        if cache.kind == "cross":
            return ceil_div(settings.encoder_budget, cache.block_size)
        if self.rules.attention_first:
            return 1
        checkpoints = settings.checkpoint_blocks if self.rules.in_flight_batches else 0
        return state_blocks(
            settings.mamba_cache_mode,
            settings.speculative_tokens,
            checkpoints,
            length,
            cache.block_size,
        )


def demand(settings: VllmSettings, rules: Rules, pipeline: int, dcp: int, pcp: int) -> Demand:
    """The demand of one request under these settings; context ranks exist from 0.11 on."""
    ranks = 1 if not rules.grouped else dcp * (pcp if rules.unify == "scale" else 1)
    in_flight = tokens_in_flight(settings, pipeline, rules.in_flight_batches)
    return Demand(settings, rules, in_flight, ranks, dcp if rules.grouped else 1)
