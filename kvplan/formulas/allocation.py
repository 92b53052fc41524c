"""Contiguous and paged allocation: requests that fit, and the memory that stays unused."""

from kvplan.registry import formula
from kvplan.values.ops import (
    ceil_div,
    count,
    count_fitting,
    floor_div,
    keep_at_most,
    minimum,
    share_above,
    sum_first,
)

PAGED = "Kwon et al. 2023, arXiv:2309.06180, sec. 4.2"
RESERVED = "Kwon et al. 2023, arXiv:2309.06180, sec. 3.1"


@formula(unit="token", symbol="n_i", per="request", source="prompt and output are both kept")
def request_tokens(prompt_tokens, output_tokens):
    """Tokens each request holds when it ends."""
    return prompt_tokens + output_tokens


@formula(unit="1", symbol="Q", source="length of the workload")
def request_count(request_tokens):
    """Requests of the workload."""
    return count(request_tokens)


# Contiguous: every sequence reserves its longest possible length


@formula(unit="1", symbol="S_r", source=RESERVED)
def contiguous_slots(kv_budget, reserve, kv_per_token):
    """Reservations that the budget holds."""
    return floor_div(kv_budget, reserve * kv_per_token)


@formula(unit="1", symbol="N_r", source=RESERVED)
def contiguous_batch(contiguous_slots, request_count):
    """Requests admitted, each to one reservation, never more than there are."""
    return minimum(contiguous_slots, request_count)


@formula(unit="B", symbol="C_res", show="GiB", digits=1, source=RESERVED)
def contiguous_reserved(contiguous_batch, reserve, kv_per_token):
    """Bytes reserved for the admitted requests."""
    return contiguous_batch * reserve * kv_per_token


@formula(unit="B", symbol="C_used", show="GiB", digits=1, source=RESERVED)
def contiguous_used(request_tokens, contiguous_batch, kv_per_token):
    """Bytes the admitted requests use; one longer than its reservation counts in full."""
    return sum_first(request_tokens, contiguous_batch) * kv_per_token


@formula(unit="1", symbol="w_r", show="%", digits=1, source=RESERVED)
def contiguous_waste(contiguous_used, contiguous_reserved):
    """Share of the reserved bytes not used; negative when requests outgrow their reservation."""
    return 1 - contiguous_used / contiguous_reserved


@formula(unit="1", symbol="ρ_r", show="%", digits=1, source="requests that cannot finish")
def rejected_share(request_tokens, reserve):
    """Share of the requests of the workload that are longer than the reservation."""
    return share_above(request_tokens, reserve)


@formula(unit="token", symbol="a_i", per="request", source="admission by length")
def admissible_tokens(request_tokens, reserve):
    """Lengths of the requests that fit their reservation; longer ones are turned away."""
    return keep_at_most(request_tokens, reserve)


@formula(unit="1", symbol="N_a", source=RESERVED)
def admissible_batch(contiguous_slots, admissible_tokens):
    """Requests admitted when those longer than the reservation are turned away."""
    return minimum(contiguous_slots, count(admissible_tokens))


@formula(unit="1", symbol="w_a", show="%", digits=1, source=RESERVED)
def admissible_waste(admissible_tokens, admissible_batch, reserve):
    """Share of the reserved slots not used by requests that fit their reservation."""
    return 1 - sum_first(admissible_tokens, admissible_batch) / (admissible_batch * reserve)


# Paged: slots are handed out a page at a time


@formula(unit="1", symbol="P", source=PAGED)
def pool_pages(kv_budget, page, kv_per_token):
    """Whole pages the budget holds."""
    return floor_div(kv_budget, page * kv_per_token)


@formula(unit="token", symbol="n_pool", source=PAGED)
def pool_tokens(pool_pages, page):
    """Token slots in whole pages."""
    return pool_pages * page


@formula(unit="B", symbol="M_rest", show="MiB", digits=0, source=PAGED)
def pool_remainder(kv_budget, pool_tokens, kv_per_token):
    """Bytes of the budget too few for one more page."""
    return kv_budget - pool_tokens * kv_per_token


@formula(unit="1", symbol="P_i", per="request", source=PAGED)
def request_pages(request_tokens, page):
    """Pages each request holds; the last one may be partly empty."""
    return ceil_div(request_tokens, page)


@formula(unit="1", symbol="N_p", source=PAGED)
def paged_batch(request_pages, pool_pages):
    """Requests that fit the pool in order of arrival, at their final length."""
    return count_fitting(request_pages, pool_pages)


@formula(unit="1", symbol="P_used", source=PAGED)
def pages_used(request_pages, paged_batch):
    """Pages the admitted requests hold, each one entry of a block table."""
    return sum_first(request_pages, paged_batch)


@formula(unit="B", symbol="C_p", show="GiB", digits=1, source=PAGED)
def paged_bytes(pages_used, page, kv_per_token):
    """Bytes of the pages held."""
    return pages_used * page * kv_per_token


@formula(unit="B", symbol="C_live", show="GiB", digits=1, source=PAGED)
def paged_logical_bytes(request_tokens, paged_batch, kv_per_token):
    """Bytes of the tokens that exist in the pages held."""
    return sum_first(request_tokens, paged_batch) * kv_per_token


@formula(unit="1", symbol="w_p", show="%", digits=2, source=PAGED)
def paged_internal_waste(paged_logical_bytes, paged_bytes):
    """Share of the pages held that holds no token."""
    return 1 - paged_logical_bytes / paged_bytes


# One request of a known length


@formula(unit="1", symbol="P_n", source=PAGED)
def sequence_pages(context, page):
    """Pages one sequence holds."""
    return ceil_div(context, page)


@formula(unit="token", symbol="s_n", source=PAGED)
def sequence_slots(sequence_pages, page):
    """Token slots of the pages one sequence holds."""
    return sequence_pages * page


@formula(unit="token", symbol="e_n", source=PAGED)
def sequence_unused_slots(sequence_slots, context):
    """Slots of the last page that hold no token."""
    return sequence_slots - context


@formula(unit="1", symbol="w_n", show="%", digits=2, source=PAGED)
def sequence_waste(sequence_unused_slots, sequence_slots):
    """Share of one sequence's slots that hold no token."""
    return sequence_unused_slots / sequence_slots


@formula(unit="B", symbol="C_n", show="MiB", digits=1, source=PAGED)
def paged_sequence_bytes(sequence_slots, kv_per_token):
    """Bytes of the pages one sequence holds."""
    return sequence_slots * kv_per_token


@formula(unit="1", symbol="N_n", source=PAGED)
def paged_sequences(pool_pages, sequence_pages):
    """Sequences of one length that the pool holds at this moment, without room to grow."""
    return floor_div(pool_pages, sequence_pages)


# The same three figures whichever allocator is meant: what is given selects it


@formula(unit="1", symbol="N_adm", given="reserve", source=RESERVED)
def admitted_batch(contiguous_batch):
    """Requests admitted: with `reserve` given, each to one reservation."""
    return contiguous_batch


@formula(unit="B", symbol="C_held", show="GiB", digits=1, given="reserve", source=RESERVED)
def held_bytes(contiguous_reserved):
    """Bytes taken from the pool: with `reserve` given, whole reservations."""
    return contiguous_reserved


@formula(unit="B", symbol="C_log", show="GiB", digits=1, given="reserve", source=RESERVED)
def logical_bytes(contiguous_used):
    """Bytes the admitted requests would use, each on its own and without rounding."""
    return contiguous_used


@formula(unit="1", symbol="N_adm", given="page", source=PAGED)
def admitted_batch(paged_batch):
    """Requests admitted: with `page` given, as pages allow."""
    return paged_batch


@formula(unit="B", symbol="C_held", show="GiB", digits=1, given="page", source=PAGED)
def held_bytes(paged_bytes):
    """Bytes taken from the pool: with `page` given, whole pages."""
    return paged_bytes


@formula(unit="B", symbol="C_log", show="GiB", digits=1, given="page", source=PAGED)
def logical_bytes(paged_logical_bytes):
    """Bytes the admitted requests would use, each on its own and without rounding."""
    return paged_logical_bytes


@formula(unit="token", symbol="e_mean", digits=1, source=PAGED)
def mean_unused_slots(paged_internal_waste, pages_used, page, paged_batch):
    """Slots without a token for one admitted request, on average."""
    return paged_internal_waste * pages_used * page / paged_batch
