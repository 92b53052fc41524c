"""Prefix sharing: memory when requests point at the same pages, and the batch that allows."""

from kvplan.registry import formula
from kvplan.values.ops import ceil_div, count_fitting, floor_div, minimum, sum_first, total, where

SHARED = "Kwon et al. 2023, arXiv:2309.06180, sec. 4.4"


@formula(unit="token", symbol="T_own", source="the workload gives what follows the prefix")
def private_tokens(request_tokens, concurrent):
    """Tokens of the concurrent requests after their common prefix."""
    return sum_first(request_tokens, concurrent)


@formula(unit="token", symbol="T_own/c", digits=0, source="the mean of what follows the prefix")
def mean_private_tokens(private_tokens, concurrent):
    """Tokens after the common prefix for one request, on average."""
    return private_tokens / concurrent


@formula(unit="B", symbol="C_naive", show="GiB", digits=2, source=SHARED)
def unshared_bytes(concurrent, prefix, private_tokens, kv_per_token):
    """Bytes when every request keeps its own copy of the prefix, not rounded to pages."""
    return (concurrent * prefix + private_tokens) * kv_per_token


@formula(unit="B", symbol="C_shared", show="GiB", digits=2, source=SHARED)
def shared_bytes(prefix, page, private_tokens, kv_per_token):
    """Bytes when the prefix is kept once, in whole pages; private tokens are not rounded."""
    return (ceil_div(prefix, page) * page + private_tokens) * kv_per_token


@formula(unit="1", symbol="σ_sh", show="%", digits=1, source=SHARED)
def sharing_saved(shared_bytes, unshared_bytes):
    """Share of the bytes that keeping the prefix once saves."""
    return 1 - shared_bytes / unshared_bytes


@formula(unit="1", symbol="g_sh", show="x", digits=2, source=SHARED)
def sharing_gain(unshared_bytes, shared_bytes):
    """How many times the memory would hold such requests, at this many of them."""
    return unshared_bytes / shared_bytes


# The same with every private tail in whole pages


@formula(unit="token", symbol="p_full", source=SHARED)
def shareable_tokens(prefix, page):
    """Tokens of the prefix in full pages; a part-filled page is written to and cannot be shared."""
    return floor_div(prefix, page) * page


@formula(unit="1", symbol="P_own,i", per="request", source=SHARED)
def tail_pages(prefix, shareable_tokens, request_tokens, page):
    """Pages each request keeps for itself behind the shared ones."""
    return ceil_div(prefix - shareable_tokens + request_tokens, page)


@formula(unit="B", symbol="C_sh,p", show="GiB", digits=2, source=SHARED)
def shared_paged_bytes(shareable_tokens, tail_pages, concurrent, page, kv_per_token):
    """Bytes of whole pages when full prefix pages are kept once."""
    return (shareable_tokens + sum_first(tail_pages, concurrent) * page) * kv_per_token


@formula(unit="1", symbol="P_all,i", per="request", source=SHARED)
def prefixed_pages(prefix, request_tokens, page):
    """Pages each request holds when it keeps its own copy of the prefix."""
    return ceil_div(prefix + request_tokens, page)


@formula(unit="B", symbol="C_na,p", show="GiB", digits=2, source=SHARED)
def unshared_paged_bytes(prefixed_pages, concurrent, page, kv_per_token):
    """Bytes of whole pages when every request keeps its own copy of the prefix."""
    return sum_first(prefixed_pages, concurrent) * page * kv_per_token


@formula(unit="1", symbol="σ_sh,p", show="%", digits=1, source=SHARED)
def sharing_saved_paged(shared_paged_bytes, unshared_paged_bytes):
    """Share of the bytes saved, all in whole pages."""
    return 1 - shared_paged_bytes / unshared_paged_bytes


# A pool with one common prefix, filled in order of arrival


@formula(unit="token", symbol="q_i", per="request", source="each request shares what it has")
def overlapping_prefix(prefix, prompt_tokens):
    """Tokens taken as shared when a prompt shorter than the prefix shares all of itself."""
    return minimum(prefix, prompt_tokens)


@formula(unit="1", symbol="P_ov,i", per="request", source=SHARED)
def overlapping_pages(request_tokens, overlapping_prefix, page):
    """Pages each request keeps for itself when `overlapping_prefix` is shared."""
    return ceil_div(request_tokens - overlapping_prefix, page)


@formula(unit="1", symbol="P_pre", source=SHARED)
def prefix_pages(prefix, page):
    """Pages of the prefix, kept once."""
    return ceil_div(prefix, page)


@formula(unit="1", symbol="N_ov", source=SHARED)
def overlapping_batch(overlapping_pages, pool_pages, prefix_pages):
    """Requests that fit beside the prefix when shorter prompts count as shared."""
    return count_fitting(overlapping_pages, pool_pages - prefix_pages)


@formula(unit="B", symbol="C_ov", show="GiB", digits=1, source=SHARED)
def overlapping_held_bytes(overlapping_pages, overlapping_batch, prefix_pages, page, kv_per_token):
    """Bytes of the pages held, the prefix once."""
    return (sum_first(overlapping_pages, overlapping_batch) + prefix_pages) * page * kv_per_token


@formula(unit="B", symbol="C_ov,l", show="GiB", digits=1, source=SHARED)
def overlapping_logical_bytes(request_tokens, overlapping_batch, kv_per_token):
    """Bytes the same requests would hold without sharing."""
    return sum_first(request_tokens, overlapping_batch) * kv_per_token


@formula(unit="1", symbol="N_adm", given=("page", "prefix"), source=SHARED)
def admitted_batch(overlapping_batch):
    """Requests admitted: with `page` and `prefix` given, as pages allow beside the prefix."""
    return overlapping_batch


@formula(unit="B", symbol="C_held", show="GiB", digits=1, given=("page", "prefix"), source=SHARED)
def held_bytes(overlapping_held_bytes):
    """Bytes taken from the pool: with `page` and `prefix` given, the prefix once."""
    return overlapping_held_bytes


@formula(unit="B", symbol="C_log", show="GiB", digits=1, given=("page", "prefix"), source=SHARED)
def logical_bytes(overlapping_logical_bytes):
    """Bytes the admitted requests would use, each on its own and without rounding."""
    return overlapping_logical_bytes


@formula(unit="token", symbol="q_c,i", per="request", source="a prompt must hold the prefix")
def carried_prefix(prefix, prompt_tokens):
    """Tokens shared when only prompts at least as long as the prefix carry it."""
    return where(prompt_tokens >= prefix, prefix, 0 * prefix)


@formula(unit="1", symbol="P_c,i", per="request", source=SHARED)
def carrying_pages(request_tokens, carried_prefix, page):
    """Pages each request keeps for itself when `carried_prefix` is shared."""
    return ceil_div(request_tokens - carried_prefix, page)


@formula(unit="1", symbol="N_c", source=SHARED)
def carrying_batch(carrying_pages, pool_pages, prefix_pages):
    """Requests that fit beside the prefix when only prompts that hold it share it."""
    return count_fitting(carrying_pages, pool_pages - prefix_pages)


@formula(unit="1", symbol="P_grp", source=SHARED)
def group_of_requests_pages(request_pages):
    """Pages of all requests of the workload, taken as one group."""
    return total(request_pages)


@formula(unit="token", symbol="T_grp", source="prompt and output are both kept")
def group_of_requests_tokens(request_tokens):
    """Tokens of all requests of the workload, taken as one group."""
    return total(request_tokens)


@formula(unit="1", symbol="N_grp", source=SHARED)
def groups_in_pool(pool_pages, group_of_requests_pages):
    """Whole groups of requests that the pool holds."""
    return floor_div(pool_pages, group_of_requests_pages)
