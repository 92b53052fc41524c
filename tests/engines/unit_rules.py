"""Unit cases of single vLLM rules: blocks, windows, hits, admission, memory."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from kvplan.engines.arithmetic import GIB
from kvplan.engines.parallel import stage_layers
from kvplan.engines.shape import Layout, model_shape
from kvplan.engines.vllm import lifetime, memory, prefix, requests, v0
from kvplan.engines.vllm.caches import Cache, attention_cache
from kvplan.engines.vllm.groups import Placed
from kvplan.engines.vllm.unification import unify_pages
from kvplan.engines.vllm.versions import rules_for
from tests.engines.unit_cases import Answer, Inputs, attention_group, family, settings_of


@family("context_parallel")
def context_parallel(i: Inputs) -> Answer:
    """Blocks and block sizes when context ranks share the tokens."""
    size, ranks = i["block_size"], i["dcp"]
    return {
        "blocks_per_request": requests.full_blocks(i.get("max_len", 0), size, ranks),
        "attention_tokens_per_block": requests.tokens_per_block(size, ranks, sharded=True),
        "mamba_tokens_per_block": requests.tokens_per_block(size, ranks, sharded=False),
    }


@family("page_unification")
def page_unification(i: Inputs) -> Answer:
    """Attention, state and draft layers brought to one page."""
    draft_size = i["draft_block_size"]
    caches = [
        Cache("mamba", 16, 0, i["mamba_page_bytes"]),
        Cache("full", draft_size, i["draft_page_bytes"] // draft_size, identity=("draft",)),
    ]
    if "attention_page_bytes" in i:
        size = i["attention_block_size"]
        caches.append(Cache("full", size, i["attention_page_bytes"] // size, identity=("own",)))
    unified = [p.cache for p in unify_pages([Placed(c, 0) for c in caches], rules_for("0.33"))]
    return {
        "page_bytes": unified[0].page,
        "mamba_page_padded": unified[0].padded,
        "draft_block_size": unified[1].block_size,
        "attention_block_size": unified[-1].block_size,
    }


@family("quantized_page")
def quantized_page(i: Inputs) -> Answer:
    """The page of a format with a scale for each token and head."""
    group = attention_group({**i, "kv_heads": i["num_kv_heads"]}, "full", 1)
    rules = rules_for("0.33")
    page = [
        attention_cache(
            group, settings_of({**i, "cache_dtype": dtype}), rules, 1, i["block_size"]
        ).page
        for dtype in ("fp8_per_token_head", "fp8")
    ]
    return {"page_bytes": page[0], "extra_over_plain": page[0] - page[1]}


@family("pp_partition")
def pp_partition(i: Inputs) -> Answer:
    """Layers of the stages, also as ranges."""
    explicit = tuple(i["partition"]) if "partition" in i else None
    split = stage_layers(i["layers"], i["pp"], "vllm", explicit)
    ends = [sum(split[: n + 1]) for n in range(len(split))]
    ranges = [[end - count, end] for end, count in zip(ends, split, strict=True)]
    return {"layers_per_stage": list(split), "ranges": ranges}


@family("sliding_window_bound")
def window_bound(i: Inputs) -> Answer:
    """Blocks a request may hold in a window layer."""
    in_flight = i["concurrent_batches"] * i["max_num_batched_tokens"]
    length, window = i["max_model_len"], i["sliding_window"]
    blocks = requests.sliding_blocks(length, i["block_size"], window, in_flight)
    return {"blocks_per_request": blocks}


@family("sliding_window_peak")
def window_peak(i: Inputs) -> Answer:
    """The most blocks a chunked prefill holds, and the bound planned for."""
    size, window, chunk = i["block_size"], i["sliding_window"], i["chunk_tokens"]
    prompt = i["prompt_tokens"]
    return {
        "peak_blocks": lifetime.window_peak_blocks(prompt, chunk, window, size),
        "bound_blocks": requests.sliding_blocks(prompt, size, window, chunk),
    }


@family("sliding_window_free", "chunked_local_free")
def freed(i: Inputs) -> Answer:
    """Blocks that have left a window or a chunk."""
    size = i["block_size"]
    if "sliding_window" in i:
        counts = [
            lifetime.window_blocks_freed(n, i["sliding_window"], size) for n in i["computed_tokens"]
        ]
    else:
        chunk = i["attention_chunk_size"]
        counts = [lifetime.chunk_blocks_freed(n, chunk, size) for n in i["computed_tokens"]]
    return {"null_blocks": counts}


@family("sliding_window_prefix_hit")
def window_hit(i: Inputs) -> Answer:
    """The longest hit a window allows."""
    cached = [bool(c) for c in i["cached_blocks"]]
    blocks = prefix.window_hit_blocks(
        cached, i["sliding_window"], i["block_size"], i.get("eagle", False)
    )
    return {"hit_blocks": blocks, "hit_tokens": blocks * i["block_size"]}


@family("prefix_caching")
def prefix_hit(i: Inputs) -> Answer:
    """Hits of a whole prompt, also under salts."""
    size, prompt = i["block_size"], i["prompt_tokens"]
    if "query_salts" in i:
        stored = i["stored_salt"]
        return {
            "hit_tokens": [
                prefix.salted_hit_tokens(prompt, prompt, size, stored, salt)
                for salt in i["query_salts"]
            ]
        }
    return {"hit_tokens": prefix.prompt_hit_tokens(prompt, i["cached_prefix_tokens"], size)}


@family("prefix_metrics")
def hit_rate(i: Inputs) -> Answer:
    """The rate over the most recent requests."""
    seen = [(r, q, h) for r, q, h in i["observations_requests_queries_hits"]]
    return {"hit_rate": prefix.hit_rate(seen, i.get("window_requests", 1000))}


@family("allocation")
def allocation(i: Inputs) -> Answer:
    """Blocks taken at once, with look-ahead, or while decoding."""
    if "decode_steps" in i:
        held = lifetime.decode_blocks(i["prompt_tokens"], i["block_size"], i["decode_steps"])
        return {
            "blocks_used_first_12_steps": held[11],
            "blocks_used_steps_13_to_28": held[12],
            "blocks_used_steps_29_to_30": held[28],
        }
    hits = i["hit_blocks"] + i["hit_blocks_null"]
    needed, evictable = i["total_blocks_needed"], i["hit_blocks_evictable"]
    return {"blocks_to_allocate": lifetime.blocks_to_allocate(needed, hits, evictable)}


@family("admission")
def admission(i: Inputs) -> Answer:
    """Whether a prompt is admitted beside the blocks kept free."""
    kept = lifetime.watermark_blocks(i["watermark"], i["num_blocks"])
    blocks = lifetime.admitted_blocks(
        i["prompt_tokens"],
        i["chunk_tokens"],
        i["num_blocks"] - 1,
        i["block_size"],
        kept if i["another_request_scheduled"] else 0,
        i["full_sequence_must_fit"],
    )
    return {"admitted": blocks is not None, "blocks_allocated": blocks}


@family("v0_blocks")
def v0_blocks(i: Inputs) -> Answer:
    """A V0 pool; the memory is printed to 0.01 GiB, the logged count lies inside the interval."""
    settings = replace(settings_of(i), version="0.6", swap_bytes=i.get("swap_space_gib", 0) * GIB)
    shape = model_shape([attention_group(i, "full", i["layers"])])
    reported = i["available_gib_reported"]
    made = [
        v0.plan(shape, settings, Layout(), int((reported + error) * GIB))
        for error in (-0.005, 0.005)
    ]
    return {
        "block_bytes": made[0].bytes_per_block_by_stage[0],
        "gpu_blocks_logged": range(made[0].num_gpu_blocks, made[1].num_gpu_blocks + 1),
        "cpu_blocks_logged": made[0].num_cpu_blocks,
    }


@family("available_memory")
def available_memory(i: Inputs) -> Answer:
    """Memory lines; printed terms are rounded to 0.01 GiB each, so intervals are given."""
    if "graph_estimate_gib" in i:
        share, graphs = i["gpu_memory_utilization"], i["graph_estimate_gib"]
        total = graphs / 0.0152  # the printed delta
        return {
            "equivalent_utilization_logged": round(
                memory.utilization_without_graphs(share, graphs, total), 4
            ),
            "suggested_utilization_logged": round(
                memory.utilization_with_graphs(share, graphs, total), 4
            ),
        }
    if "requested_gib" in i:
        return _advice(i)
    ledger = memory.Ledger(
        int(i["total_gib"] * GIB),
        Fraction(str(i["gpu_memory_utilization"])),
        int(i["weights_gib"] * GIB),
        int(i["non_torch_gib"] * GIB),
        int(i["peak_activation_gib"] * GIB),
    )
    requested = memory.requested_bytes(ledger.total, ledger.utilization) / GIB
    return {
        "usable_gib_logged": (requested - 0.01, requested + 0.01),
        "available_kv_gib_logged": _interval(memory.available_bytes(ledger) / GIB, 0.02),
    }


def _interval(value: float, error: float) -> tuple[float, float]:
    return value - error, value + error


def _advice(i: Inputs) -> Answer:
    peak = i["peak_activation_gib_including_graph_estimate"]
    consumed, graphs = i["consumed_gib"], i["graph_actual_gib"]

    def advised(limit: float) -> tuple[float, float]:
        given = [int(x * GIB) for x in (limit, consumed, peak, graphs)]
        return _interval(memory.advised_kv_bytes(*given), 0.02 * GIB)

    return {
        "available_kv_gib_logged": _interval(i["requested_gib"] - consumed - peak, 0.015),
        "suggested_kv_bytes_requested_limit": advised(i["requested_gib"]),
        "suggested_kv_bytes_gpu_limit": advised(i["free_at_start_gib"]),
    }
