"""Unit cases of whole vLLM plans."""

from __future__ import annotations

from dataclasses import replace

from kvplan.engines.arithmetic import GIB
from kvplan.engines.shape import LayerGroup, Layout, ModelShape, RecurrentState, model_shape
from kvplan.engines.vllm import alignment, planning
from kvplan.engines.vllm.records import Plan
from kvplan.engines.vllm.settings import VllmSettings
from tests.engines.unit_cases import LONG, Answer, Inputs, attention_group, family, settings_of


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
    block = planning.plan(shape, settings, layout, LONG).bytes_per_block_by_stage[0]
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
    available = i.get("available_bytes", LONG)
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
