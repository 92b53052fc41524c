"""Unit cases in, answers out: one translation for each family of engine_unit_cases.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from kvplan.engines import llama_cpp, sglang, sglang_window, tensorrt_llm, tiers
from kvplan.engines.arithmetic import GIB, MIB, ceil_div
from kvplan.engines.parallel import stage_layers
from kvplan.engines.sglang_cells import SglangSettings
from kvplan.engines.shape import LayerGroup, Layout, ModelShape, RecurrentState, model_shape
from kvplan.engines.vllm import alignment, lifetime, memory, planning, prefix, requests, v0
from kvplan.engines.vllm.caches import Cache, attention_cache
from kvplan.engines.vllm.groups import Placed
from kvplan.engines.vllm.records import Plan
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.unification import unify_pages
from kvplan.engines.vllm.versions import rules_for

Inputs = Mapping[str, Any]
Answer = dict[str, Any]
_DTYPE = {1: "fp8", 2: "bf16", 4: "fp32"}
_LONG = 2**50  # memory that never binds
FAMILIES: dict[str, Callable[[Inputs], Answer]] = {}


def family(*names: str) -> Callable[[Callable[[Inputs], Answer]], Callable[[Inputs], Answer]]:
    """Register the translation of a family."""

    def register(function: Callable[[Inputs], Answer]) -> Callable[[Inputs], Answer]:
        FAMILIES.update(dict.fromkeys(names, function))
        return function

    return register


def settings_of(i: Inputs) -> VllmSettings:
    """Engine arguments of a vLLM case on the newest release."""
    dtype = i.get("cache_dtype") or _DTYPE[i.get("dtype_bytes", i.get("bytes_per_element", 2))]
    if i.get("bytes_per_token") == 656:
        dtype = "fp8_ds_mla"
    auto = str(i.get("max_model_len", "")).startswith("auto")
    length = int(i["max_model_len"].split()[-1]) if auto else i.get("max_model_len", 16)
    return VllmSettings(
        version="0.33",
        block_size=i.get("block_size", 16),
        max_model_len=length,
        max_num_batched_tokens=i.get("max_num_batched_tokens", 16),
        kv_dtype=dtype,
        model_dtype=dtype if dtype in ("bf16", "fp32") else "bf16",
        concurrent_batches=i.get("concurrent_batches", 1),
        hybrid_manager=i.get("hybrid_manager", True),
        num_gpu_blocks_override=i.get("num_gpu_blocks_override"),
        auto_fit=auto,
        mamba_cache_mode=i.get("mamba_cache_mode", "none"),
        checkpoint_blocks=1 if "mamba_layers" in i else 0,
    )


def attention_group(i: Inputs, kind: str, layers: int, head_dim: int = 0) -> LayerGroup:
    """Attention layers; heads of one rank stand for a model on one rank."""
    return LayerGroup(
        kind,  # type: ignore[arg-type]
        layers,
        kv_heads=i.get("kv_heads", i.get("kv_heads_per_rank", i.get("num_kv_heads", 8))),
        head_dim=head_dim or i.get("head_size", i.get("head_size_k", 128)),
        value_head_dim=None if head_dim else i.get("head_size_v"),
        window=i.get("sliding_window", 0) if kind == "sliding" else 0,
        chunk=i.get("attention_chunk_size", 0) if kind == "chunked" else 0,
    )


def named_shape(i: Inputs) -> tuple[ModelShape, Layout]:
    """Groups under names such as full, sliding_head96 or stage1_full."""
    groups, stages = [], []
    for name, layers in i["layers"].items():
        parts = name.split("_")
        if parts[0].startswith("stage"):
            stages.append(layers)
            parts = parts[1:]
        head = next((int(p[4:]) for p in parts if p.startswith("head")), 0)
        groups.append(attention_group(i, parts[0], layers, head))
    if stages:
        return model_shape(groups), Layout(pipeline=len(stages), partition=tuple(stages))
    return model_shape(groups), Layout(tensor=i.get("workers", 1))


@family("max_model_len_estimate")
def estimate(i: Inputs) -> Answer:
    """The longest length in usable memory: the null block is added, for it is taken off again."""
    shape = model_shape([attention_group(i, "full", i["layers"])])
    settings, layout = settings_of(i), Layout()
    block = planning.plan(shape, settings, layout, _LONG).bytes_per_block_by_stage[0]
    available = i["available_bytes"] + block
    limit = settings.max_model_len
    longest = planning.longest_fitting_length(shape, settings, layout, available, limit)
    return {"estimated_max_model_len": longest}


@family("num_blocks_and_groups", "max_concurrency")
def groups_and_blocks(i: Inputs) -> Answer:
    """Planning of named layers, with the log lines."""
    shape, layout = named_shape(i)
    if layout.tensor > 1:  # every worker holds the layers with the heads given
        shape = model_shape([replace(g, kv_heads=g.kv_heads * layout.tensor) for g in shape.groups])
    settings = settings_of(i)
    if "num_blocks" in i:
        settings = replace(settings, num_gpu_blocks_override=i["num_blocks"])
    available = i.get("available_bytes", _LONG)
    return described(planning.plan(shape, settings, layout, available))


def described(made: Plan) -> Answer:
    """A plan under the names the cases use."""
    pages = {g.page_bytes for g in made.groups}
    blocks = {g.kind: g.blocks_per_request for g in made.groups}
    error = made.error
    return {
        "num_blocks": made.num_gpu_blocks,
        "num_blocks_every_worker": made.num_gpu_blocks,
        "group_sizes": [g.layers for g in made.groups],
        "group_layer_counts": [g.layers for g in made.groups],
        "group_size": max((g.layers for g in made.groups), default=0),
        "groups": len(made.groups),
        "num_groups": len(made.groups),
        "padding_layers": sum(p.layers for p in made.padding),
        "max_waste_percent": max((p.waste_percent for p in made.padding), default=0),
        "bytes_per_block": max(made.bytes_per_block_by_stage, default=0),
        "page_bytes": max(pages, default=0),
        "page_bytes_after_padding": max(pages, default=0),
        "fits": made.fits,
        "estimated_max_model_len": error.estimated_max_model_len if error else None,
        "needed_gib": round(error.needed_bytes / GIB, 2) if error and error.needed_bytes else None,
        "max_model_len": made.fitted_max_model_len,
        "tokens": made.printed_tokens,
        "tokens_logged": made.printed_tokens,
        "max_concurrency": made.max_concurrency,
        "blocks_per_request": made.blocks_per_request,
        "blocks_per_request_chunked": blocks.get("chunked"),
        "attention_block_size": made.attention_block_size,
    }


@family("capacity")
def capacity(i: Inputs) -> Answer:
    """A pool of one rank: attention of several kinds, latents, or a logged pool."""
    if "tokens_logged" in i:
        blocks = i["tokens_logged"] // 16
        return {
            "max_concurrency_logged": round(i["tokens_logged"] / i["max_model_len"], 2),
            "blocks_of_16": blocks,
            "kv_gib": round(blocks * 16 * 131072 / GIB, 2),
        }
    layout = Layout(tensor=i.get("dcp", 1), decode_context=i.get("dcp", 1))
    made = planning.plan(_capacity_shape(i), settings_of(i), layout, i["available_bytes"])
    return described(made)


def _capacity_shape(i: Inputs) -> ModelShape:
    if "bytes_per_token" in i:
        key = 128 if "indexer_layers" in i else 0
        return model_shape(
            [LayerGroup("mla", i["layers"], latent=512, rope_dim=64, indexer_dim=key)]
        )
    counts = {
        "full": i.get("layers", i.get("full_layers", 0)),
        "sliding": i.get("sliding_layers", 0),
        "chunked": i.get("chunked_layers", 0),
    }
    return model_shape([attention_group(i, kind, n) for kind, n in counts.items() if n])


@family("mamba_hybrid")
def mamba_hybrid(i: Inputs) -> Answer:
    """Alignment alone, a pool with states of a given size, or the logged Kimi-Linear pool."""
    if "state_page_bytes" in i:
        state, token = i["state_page_bytes"], i["attention_bytes_per_token"]
        block = alignment.aligned_block(state, token, i["kernel_block"])
        return {
            "attention_block_size": block,
            "padded_page_bytes": block * token,
            "padding_percent": alignment.padding_percent(block * token, state),
        }
    if "kda_layers" in i:
        return _kimi_linear(i)
    states = i.get("mamba_layers", i.get("gdn_layers", 0))
    state = RecurrentState("mamba2", state_elements=i["mamba_page_bytes"] // 2, groups=1)
    shape = model_shape(
        [attention_group(i, "full", i["full_layers"]), LayerGroup("recurrent", states, state=state)]
    )
    made = planning.plan(shape, settings_of(i), Layout(), i["available_bytes"])
    assert made.attention_block_size == i["attention_block_size"]
    return described(made)


def _kimi_linear(i: Inputs) -> Answer:
    heads, size = 32, 128
    inner = heads * size
    state = RecurrentState("kda", 3 * inner * 3, 4, inner * size)
    shape = model_shape(
        [
            LayerGroup("mla", i["mla_layers"], latent=512, rope_dim=64),
            LayerGroup("recurrent", i["kda_layers"], state=state),
        ]
    )
    answers = []
    for step in i["kernel_block_alignment"]:
        settings = VllmSettings("0.20", step, i["max_model_len"], 2048)
        memory_bytes = int(i["available_gib_reported"] * GIB)
        made = planning.plan(shape, settings, Layout(tensor=i["tp"]), memory_bytes)
        assert made.num_gpu_blocks is not None
        # 2.30 GiB is rounded: the logged pool lies inside the interval
        low, high = (int((2.3 + e) * GIB) // made.bytes_per_block_by_stage[0] for e in (-0.01, 0.0))
        assert low <= 318 <= high
        exact = replace(settings, num_gpu_blocks_override=318)
        made = planning.plan(shape, exact, Layout(tensor=i["tp"]), memory_bytes)
        answer = described(made)
        concurrency = round(made.max_concurrency or 0, 2)
        answers.append({**answer, "max_concurrency_logged": concurrency})
    assert answers[0] == answers[1]
    return answers[0]


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


@family("pool_tokens", "swa_pool", "swa_request_cap")
def sglang_pool(i: Inputs) -> Answer:
    """SGLang's pools, or the window cap alone."""
    settings = _sglang_settings(i)
    answer: Answer = {}
    if "window" in i and "requests" in i:
        return {"swa_cap_tokens": sglang_window.window_request_cap(settings, i["window"])}
    shape = _sglang_shape(i)
    made = sglang.plan(shape, settings, Layout(), i.get("available_bytes", _LONG))
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
