"""Fetching KV that was computed before: bytes, time, and the bandwidth at which it pays."""

from kvplan.registry import formula

EVEN = "fetching and recomputing take equally long"


@formula(unit="B", symbol="k_p", show="GiB", digits=2, source="length times bytes per token")
def prefix_bytes(prefix, kv_per_token):
    """Bytes of the KV of a prefix."""
    return prefix * kv_per_token


@formula(unit="B/s", symbol="B*", show="GB/s", digits=2, source=EVEN)
def break_even_bandwidth(prefix_bytes, recompute_time):
    """Bandwidth above which fetching a prefix is faster than computing it; latency left out."""
    return prefix_bytes / recompute_time


@formula(unit="s", symbol="t_f", show="ms", digits=1, source="bytes over bandwidth")
def fetch_time(prefix_bytes, tier_bandwidth):
    """Time to fetch a prefix at the full bandwidth of a tier; latency left out."""
    return prefix_bytes / tier_bandwidth


@formula(unit="1", symbol="m_t", show="x", digits=1, source=EVEN)
def break_even_margin(tier_bandwidth, break_even_bandwidth):
    """How many times the break-even bandwidth a tier has."""
    return tier_bandwidth / break_even_bandwidth
