"""Planner cases in, shapes and settings out: the words of planner_cases.jsonl in ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines import sglang
from kvplan.engines.sglang_cells import SglangSettings
from kvplan.engines.shape import LayerGroup, Layout, ModelShape, RecurrentState, model_shape
from kvplan.engines.vllm.planning import longest_fitting_length, plan
from kvplan.engines.vllm.records import Plan, gib_text
from kvplan.engines.vllm.settings import VllmSettings, max_concurrent_batches

Inputs = Mapping[str, Any]
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def recurrent_state(group: Inputs) -> RecurrentState:
    """Elements of the whole model from the published dimensions of a mixer."""
    d, mixer = group["dims"], group["mixer"]
    if mixer == "mamba1":
        inner, kernel = d["d_inner"], d["d_conv"]
        return RecurrentState(mixer, inner * (kernel - 1), kernel, inner * d["d_state"])
    if mixer == "mamba2":
        inner, kernel = d["n_heads"] * d["head_dim"], d["d_conv"]
        channels = inner + 2 * d["n_groups"] * d["d_state"]
        return RecurrentState(
            mixer,
            channels * (kernel - 1),
            kernel,
            inner * d["d_state"],
            heads=d["n_heads"],
            groups=d["n_groups"],
            group_dim=d["d_state"],
        )
    if mixer == "gated_delta_net":
        keys, values = d["num_key_heads"], d["num_value_heads"]
        channels = 2 * keys * d["key_head_dim"] + values * d["value_head_dim"]
        kernel = d["conv_kernel"]
        elements = values * d["value_head_dim"] * d["key_head_dim"]
        return RecurrentState(mixer, channels * (kernel - 1), kernel, elements)
    if mixer == "kda":
        inner, kernel = d["num_heads"] * d["head_dim"], d["conv_kernel"]
        return RecurrentState(mixer, 3 * inner * (kernel - 1), kernel, inner * d["head_dim"])
    if mixer == "short_conv":
        return RecurrentState(mixer, d["dim"] * (d["L_cache"] - 1), d["L_cache"])
    elements = d["num_heads"] * d["head_dim"] * d["head_dim"]
    return RecurrentState("lightning", state_elements=elements)


def shape_of(inputs: Inputs) -> ModelShape:
    """Layer groups and order; an indexer beside MLA becomes a field of the MLA layers it is on."""
    indexer = {
        letter: group
        for group in inputs["layer_groups"]
        if group["kind"] == "mla_indexer"
        for letter in group["letters"]
    }
    groups: list[LayerGroup] = []
    kept: dict[str, list[int]] = {}
    for given in inputs["layer_groups"]:
        if given["kind"] == "mla_indexer":
            continue
        for letter in given["letters"]:
            count = inputs["layer_order"].count(letter)
            key = indexer[letter]["dim"] if given["kind"] == "mla" and letter in indexer else 0
            kept.setdefault(letter, []).append(len(groups))
            groups.append(_group(given, count, key))
    order = [kept.get(letter, ()) for letter in inputs["layer_order"]]
    return model_shape(groups, order)


def _group(given: Inputs, layers: int, indexer_dim: int) -> LayerGroup:
    kind = given["kind"]
    if kind == "mamba":
        return LayerGroup("recurrent", layers, state=recurrent_state(given))
    if kind == "mla":
        return LayerGroup(
            "mla",
            layers,
            latent=given["latent_dim"],
            rope_dim=given["rope_dim"],
            indexer_dim=indexer_dim,
        )
    return LayerGroup(
        kind,
        layers,
        kv_heads=given["kv_heads"],
        head_dim=given["head_dim_k"],
        value_head_dim=given["head_dim_v"],
        window=given.get("window", 0),
        chunk=given.get("chunk", 0),
    )


def layout_of(inputs: Inputs) -> Layout:
    """Tensor, pipeline and decode-context parallel, with an explicit split if one is given."""
    partition = inputs.get("pp_layer_partition")
    return Layout(
        tensor=inputs["tensor_parallel"],
        pipeline=inputs["pipeline_parallel"],
        decode_context=inputs.get("decode_context_parallel", 1),
        partition=tuple(partition) if partition else None,
    )


def settings_of(case: Inputs) -> VllmSettings:
    """The engine arguments of a vLLM case."""
    i = case["inputs"]
    states = [g for g in i["layer_groups"] if g["kind"] == "mamba"]
    ssm = i.get("mamba_ssm_cache_dtype", "auto")
    return VllmSettings(
        version=case["version"],
        block_size=i["block_size"],
        max_model_len=i["max_model_len"],
        max_num_batched_tokens=i["max_num_batched_tokens"],
        kv_dtype=i["kv_cache_dtype"],
        model_dtype=_DTYPES[i["model_dtype"]],
        async_scheduling=i.get("async_scheduling", False),
        model_runner=i.get("model_runner", "v1"),
        hybrid_manager=i.get("hybrid_manager", True),
        num_gpu_blocks_override=i.get("num_gpu_blocks_override"),
        auto_fit=i.get("auto_fit", False),
        kv_cache_layout=i.get("kv_cache_layout", "LBNHC"),
        mamba_cache_mode=i.get("mamba_cache_mode", "none"),
        ssm_dtype=_DTYPES.get(ssm, ssm),
        speculative_tokens=i.get("num_speculative_tokens", 0),
        checkpoint_blocks=max((g.get("prefill_checkpoint_blocks", 0) for g in states), default=0),
        mamba_chunk_size=i.get("mamba_chunk_size", 0),
    )


def vllm_answer(case: Inputs) -> dict[str, Any]:
    """Everything a vLLM case may expect, under the names of the file."""
    i = case["inputs"]
    shape, settings, layout = shape_of(i), settings_of(case), layout_of(i)
    made = plan(shape, settings, layout, i["available_bytes_by_rank"])
    answer = _decision(made)
    if i.get("max_concurrent_batches"):
        assert i["max_concurrent_batches"] == max_concurrent_batches(
            settings.async_scheduling, settings.model_runner, layout.pipeline
        )
    if made.groups and "longest_fitting_len" in case["expected"]:
        limit = case["expected"]["longest_fitting_len"]["searched_up_to"]
        # the file searches with the memory of the first rank of each stage
        first = [i["available_bytes_by_rank"][r - r % layout.tensor] for r in range(layout.ranks)]
        value = longest_fitting_length(shape, settings, layout, first, limit)
        answer["longest_fitting_len"] = {"searched_up_to": limit, "value": value}
    return answer


def _decision(made: Plan) -> dict[str, Any]:
    rounds = made.version in ("0.20.0", "0.33.0")
    answer: dict[str, Any] = {
        "layers_by_stage": list(made.layers_by_stage),
        "outcome": made.outcome,
        "fits": made.fits,
        "attention_block_size": made.attention_block_size,
        "mamba_page_bytes_padded": made.state_page_padded,
        "fitted_max_model_len": made.fitted_max_model_len,
        "num_gpu_blocks": made.num_gpu_blocks,
        "printed_tokens": made.printed_tokens,
        "bytes_per_block_by_stage": list(made.bytes_per_block_by_stage),
        "needed_bytes_by_stage": list(made.needed_bytes_by_stage),
        "padding": [{"layers": p.layers, "waste_percent": p.waste_percent} for p in made.padding],
        "groups": [vars(g) for g in made.groups],
        "printed_by_rank": [[t, f"{c:.2f}"] for t, c in made.printed_by_rank],
    }
    if made.needed_bytes_by_stage:
        answer["needed_gib"] = gib_text(max(made.needed_bytes_by_stage), rounds)
    if made.max_concurrency is not None:
        answer["printed_max_concurrency"] = f"{made.max_concurrency:.2f}"
    if made.error is not None:
        error = made.error
        answer["error"] = {"type": error.type, "kind": error.kind}
        if error.needed_bytes is not None and error.available_bytes is not None:
            answer["error"] |= {
                "needed_gib": gib_text(error.needed_bytes, rounds),
                "available_gib": gib_text(error.available_bytes, rounds),
                "estimated_max_model_len": error.estimated_max_model_len,
            }
    return answer


def sglang_answer(case: Inputs) -> dict[str, Any]:
    """Everything an SGLang case may expect, under the names of the file."""
    i = case["inputs"]
    ssm = i.get("mamba_ssm_dtype", "")
    named = (
        "context_len",
        "page_size",
        "swa_full_tokens_ratio",
        "max_total_tokens",
        "max_running_requests",
        "chunked_prefill_size",
        "disable_radix_cache",
        "overlap_schedule",
        "swa_eviction_interval",
        "eagle_draft_layers",
        "mamba_full_memory_ratio",
        "mamba_extra_buffer",
        "max_mamba_cache_size",
    )
    settings = SglangSettings(
        version=case["version"],
        kv_dtype=i["kv_cache_dtype"],
        ssm_dtype=_DTYPES.get(ssm, ssm),
        **{name: i[name] for name in named if name in i},
    )
    made = sglang.plan(shape_of(i), settings, layout_of(i), i["available_bytes"])
    answer: dict[str, Any] = {
        "layers_by_stage": list(made.layers_by_stage),
        "outcome": made.outcome,
        "fits": made.fits,
        "bytes_per_token_by_stage": list(made.bytes_per_token_by_stage),
        "max_total_num_tokens": made.max_total_num_tokens,
        "full_max_total_num_tokens": made.full_tokens,
        "swa_max_total_num_tokens": made.window_tokens,
        "max_running_requests": made.max_running_requests,
        "max_mamba_cache_size": made.max_mamba_cache_size,
        "mamba_state_bytes_per_request_all_layers": made.state_bytes_per_request,
        "bytes_left_for_tokens_by_stage": list(made.bytes_left_for_tokens_by_stage),
    }
    if made.error:
        answer["error"] = {"type": made.error_type, "kind": made.error}
    return answer
