"""Unit cases of SGLang, TensorRT-LLM, llama.cpp and the tiers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from kvplan.engines import llama_cpp, sglang, sglang_window, tensorrt_llm, tiers
from kvplan.engines.arithmetic import GIB, MIB, ceil_div
from kvplan.engines.sglang_cells import SglangSettings
from kvplan.engines.shape import Layout, ModelShape, model_shape
from tests.engines.unit_cases import LONG, Answer, Inputs, attention_group, family


@family("pool_tokens", "swa_pool", "swa_request_cap")
def sglang_pool(i: Inputs) -> Answer:
    """SGLang's pools, or the window cap alone."""
    settings = _sglang_settings(i)
    answer: Answer = {}
    if "window" in i and "requests" in i:
        return {"swa_cap_tokens": sglang_window.window_request_cap(settings, i["window"])}
    shape = _sglang_shape(i)
    made = sglang.plan(shape, settings, Layout(), i.get("available_bytes", LONG))
    answer["cell_bytes"] = made.bytes_per_token_by_stage[0]
    answer["tokens"] = made.max_total_num_tokens
    answer["full_tokens"], answer["swa_tokens"] = made.full_tokens, made.window_tokens
    answer["swa_cap_tokens"] = made.window_tokens
    return answer


def _sglang_settings(i: Inputs) -> SglangSettings:
    renamed = {
        "chunked_prefill_size": i.get("chunked_prefill"),
        "max_running_requests": i.get("requests", i.get("max_running_requests")),
        "overlap_schedule": i.get("overlap", True),
        "swa_eviction_interval": i.get("eviction_interval", 128),
        "eagle_draft_layers": i.get("eagle_draft_layers", 0),
        "speculative": "draft_tokens" in i,
        "draft_tokens": i.get("draft_tokens", 4),
        "draft_steps": i.get("spec_steps", 3),
        "draft_topk": i.get("topk", 1),
        "decode_worker": i.get("mode") == "decode worker",
        "decode_extra_slots": i.get("extra_slots", 0),
        "disable_radix_cache": not i.get("radix_cache", True),
        "max_total_tokens": i.get("max_total_tokens"),
        "swa_full_tokens_ratio": i.get("swa_full_tokens_ratio", 0.8),
    }
    return SglangSettings(context_len=4096, page_size=i.get("page_size", 1), **renamed)


def _sglang_shape(i: Inputs) -> ModelShape:
    window = {"sliding_window": i.get("window", 8)}
    full = i.get("layers", i.get("full_layers", 2))
    pooled = "swa_full_tokens_ratio" in i or "full_layers" in i
    sliding = i.get("sliding_layers", 2 if pooled else 0)
    counts = {"full": full, "sliding": sliding}
    return model_shape([attention_group({**i, **window}, k, n) for k, n in counts.items() if n])


@family("pool_bytes")
def pool_bytes(i: Inputs) -> Answer:
    """Logged K and V of SGLang, or the byte pools of TensorRT-LLM."""
    if "max_gpu_total_bytes" in i:
        fraction = Fraction(str(i["free_gpu_memory_fraction"]))
        free, total = i["free_bytes"], i["max_gpu_total_bytes"]
        return {
            "primary_bytes": tensorrt_llm.pool_bytes(free, fraction, total),
            "secondary_bytes": i["host_cache_size"],
        }
    if "tokens_logged" in i:
        rows = sglang.allocated_rows(i["tokens_logged"], i["page_size"])
        side = rows * i["layers"] * i["kv_heads_per_rank"] * i["head_size"] * i["dtype_bytes"]
        return {"k_gib_logged": round(side / GIB, 2), "v_gib_logged": round(side / GIB, 2)}
    tokens = int(i["full_tokens"] * i["swa_full_tokens_ratio"]) // i["page_size"] * i["page_size"]
    rows = sglang.allocated_rows(tokens, i["page_size"])
    row = rows * i["sliding_layers"] * i["swa_kv_heads"] // i["tp"] * i["dtype_bytes"]
    return {
        "swa_tokens_logged": tokens,
        "swa_rows_allocated": rows,
        "swa_k_gib_logged": round(row * i["swa_head_dim"] / GIB, 2),
        "swa_v_gib_logged": round(row * i["swa_v_head_dim"] / GIB, 2),
    }


@family("alloc")
def alloc(i: Inputs) -> Answer:
    """Pages, rows and reserves of SGLang."""
    if "dcp" in i:
        return {"page_tokens": sglang.page_tokens(i["page_size"], i["dcp"])}
    if "context_len" in i:
        return {"row_tokens": sglang_window.row_tokens(i["context_len"], i["page_size"])}
    reserve = sglang_window.decode_reserve(i.get("page_size", 1), 1, 1, i["draft_tokens"])
    return {"reserve_tokens": reserve}


@family("retraction")
def retraction(i: Inputs) -> Answer:
    """The reserve ratio after requests were retracted."""
    ratio = tiers.sglang_ratio_after_retraction(
        i["decoded_tokens_left"], i["max_new_tokens_left"], i["retract_decode_steps"]
    )
    return {"new_token_ratio": ratio}


@family("llamacpp_k_bytes")
def llama_k(i: Inputs) -> Answer:
    """K of all layers in one type."""
    row = llama_cpp.row_bytes(i["type_k"], i["kv_heads"] * i["head_size"])
    return {"k_mib": i["layers"] * row * i["cells"] / MIB}


@family("llamacpp_iswa")
def llama_iswa(i: Inputs) -> Answer:
    """The two caches of a window model."""
    heads = {"kv_heads": i["kv_heads"], "head_size": i["head_size"]}
    window = {"sliding_window": i["n_swa"]}
    shape = model_shape(
        [
            attention_group(heads, "full", i["full_layers"]),
            attention_group({**heads, **window}, "sliding", i["swa_layers"]),
        ]
    )
    settings = llama_cpp.LlamaSettings(
        i.get("n_ctx", i.get("ctx_arg")), i["n_seq_max"], i["kv_unified"], i["n_ubatch"]
    )
    made = llama_cpp.plan(shape, settings)
    flat = llama_cpp.plan(shape, replace(settings, swa_full=True))
    return {
        "base_cells": made.cells,
        "base_mib": made.full_bytes / MIB,
        "base_k_mib": made.key_bytes / MIB,
        "swa_cells": made.window_cells,
        "swa_mib": made.window_bytes / MIB,
        "swa_k_mib": made.window_key_bytes / MIB,
        "flat_mib": flat.total_bytes / MIB,
    }


@family("vswa_window_clamp")
def vswa(i: Inputs) -> Answer:
    """Windows lowered level by level."""
    windows = tensorrt_llm.adjust_windows(
        i["layer_windows"], i["bytes_per_token_per_layer"], i["pool_bytes"], i["max_tokens"]
    )
    return {"adjusted_layer_windows": windows}


@family("host_tier_quota")
def host_tier(i: Inputs) -> Answer:
    """The automatic host tier."""

    def gib(name: str) -> int | None:
        return None if i[name] is None else i[name] * GIB

    return {
        "host_quota_bytes": tensorrt_llm.host_tier_quota(
            i["device_quota_gib"] * GIB,
            gib("host_available_gib"),
            i["colocated_ranks"],
            gib("memlock_limit_gib"),
            i["shares_device_memory"],
        )
    }


@family("estimation_tokens")
def estimation(i: Inputs) -> Answer:
    """The cache of the profiling run."""
    size, prompt = i["tokens_per_block"], i["request_input_tokens"]
    tokens = tensorrt_llm.estimation_tokens(prompt, i["requests"], size, i.get("beam_width", 1))
    return {"blocks_per_request": ceil_div(prompt + 1, size), "tokens": tokens}


@family("blocks_per_request")
def trt_blocks(i: Inputs) -> Answer:
    """Blocks a sequence needs at most."""
    size, sink = i["tokens_per_block"], i["sink_tokens"]
    window = i["window"] or i["input"] + i["output"]
    return {
        "sink_bubble": tensorrt_llm.sink_bubble(sink, size),
        "blocks": tensorrt_llm.sequence_blocks(
            i["input"], i["output"], window, size, sink_tokens=sink
        ),
    }


@family("tier_capacity")
def tier_capacity(i: Inputs) -> Answer:
    """Tiers below device memory."""
    if "DYN_KVBM_CPU_CACHE_GB" in i:
        blocks = tiers.kvbm_blocks(i["DYN_KVBM_CPU_CACHE_GB"], i["bytes_per_block"])
        return {"host_blocks": blocks, "host_tokens": blocks * 16}
    if "kv_offloading_size_gib" in i:
        chunks = tiers.vllm_offload_chunks(
            i["kv_offloading_size_gib"], i["bytes_per_block_all_ranks"], i["blocks_per_chunk"]
        )
        return {"cpu_chunks": chunks, "cpu_tokens": chunks * 16 * i["blocks_per_chunk"]}
    pages, tokens = tiers.hicache_tokens(
        i["page_size"],
        i["device_tokens"],
        i["hicache_ratio"],
        i["hicache_size_gb"],
        i.get("bytes_per_token", 131072),
    )
    return {"host_pages": pages, "host_tokens": tokens}


@family("transfer_size")
def transfer(i: Inputs) -> Answer:
    """Bytes a prefill hands over."""
    token = i.get("bytes_per_token_per_layer")
    if token is None:
        token = 2 * i["kv_heads"] * i["head_size"] * i["dtype_bytes"]
    moved = tiers.transfer_bytes(
        i["prompt_tokens"], i["block_size"], token * i["block_size"], i["layers"]
    )
    return {"transfer_bytes": moved, "ms_at_50_GB_per_s": round(moved / 50e9 * 1e3, 2)}


@family("eviction")
def eviction(i: Inputs) -> Answer:
    """What Mooncake evicts above its watermark."""
    target, least = tiers.mooncake_eviction(
        i["used_ratio"], i["high_watermark"], i["eviction_ratio"]
    )
    return {"target_fraction": round(target, 9), "lower_bound_fraction": round(least, 9)}
