"""The window pool sized from running requests, and what decoding allocates in SGLang."""

from __future__ import annotations

from kvplan.engines.arithmetic import ceil_div, round_up
from kvplan.engines.sglang_cells import SglangSettings


def speculative_alloc(page_size: int, steps: int, topk: int, draft_tokens: int) -> int:
    """Tokens one decode step allocates without overlap: the draft tree or the verified tokens.

    Whole pages; a branch of a tree may straddle one more. Source: utils/common.py
    spec_decode_alloc_len_per_request.
    """
    branch, verified = steps, draft_tokens
    if page_size > 1:
        branch = round_up(branch + (page_size if topk > 1 else 0), page_size)
        verified = round_up(verified, page_size)
    return max(branch * topk, verified)


def decode_alloc(page_size: int, steps: int, topk: int, draft_tokens: int) -> int:
    """Tokens one decode step allocates with overlap; trees on larger pages take whole branches.

    Source: mem_cache/allocation_sizing.py get_alloc_len_per_decode.
    """
    if page_size == 1 or topk == 1:
        return max(steps * topk, draft_tokens)
    pages = ceil_div(page_size - 1 + steps, page_size)
    return max(pages * page_size * topk, draft_tokens)


def decode_reserve(page_size: int, steps: int, topk: int, draft_tokens: int) -> int:
    """Tokens reserved for each request at a decode step: two allocations, as steps overlap.

    N-gram and block drafts (DFLASH) have no tree: steps and topk are 1. Source:
    get_alloc_reserve_per_decode.
    """
    return 2 * decode_alloc(page_size, steps, topk, draft_tokens)


def row_tokens(context_len: int, page_size: int) -> int:
    """Tokens of a row of the request table: the context in whole pages."""
    return round_up(context_len, page_size)


def window_request_cap(settings: SglangSettings, window: int) -> int:
    """Window tokens that the running requests can hold at worst.

    Each keeps its window, what waits for eviction, one page of alignment and what a step
    allocates. Prefill adds its chunks in flight (2 with overlap) and a page; a decode worker adds
    a window and a page for each extra slot. Source: pool_configurator.py compute_swa_request_cap.
    """
    page = settings.page_size
    speculates = settings.speculates
    tree = (settings.draft_steps, settings.draft_topk, settings.draft_tokens)
    if not speculates:
        step = page
    elif settings.overlap_schedule:
        step = 2 * decode_alloc(page, *tree)
    else:
        step = speculative_alloc(page, *tree)
    waiting = max(1, settings.swa_eviction_interval) * (settings.draft_tokens if speculates else 1)
    each = window + waiting + page + step
    asked = settings.max_running_requests or 0
    requests = max(1, asked // settings.attention_data_parallel)
    if settings.decode_worker:
        return each * requests + (window + page) * settings.decode_extra_slots
    chunks = 2 if settings.overlap_schedule else 1
    return each * requests + chunks * (settings.chunked_prefill_size or 0) + page
