"""All layers in, groups out: the engine's order of decisions, with padding and packing."""

from __future__ import annotations

from kvplan.engines.arithmetic import ceil_div
from kvplan.engines.parallel import stage_layers, stage_of_layer
from kvplan.engines.shape import Layout, ModelShape
from kvplan.engines.vllm.alignment import Blocks, blocks_of
from kvplan.engines.vllm.caches import Cache, layer_caches, refuse_unknown
from kvplan.engines.vllm.groups import (
    Group,
    Grouping,
    Padding,
    Placed,
    group_of,
    layers_by_stage,
)
from kvplan.engines.vllm.packing import pack_groups
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.unification import (
    PlannerError,
    distinct,
    promote_windows,
    same_cache,
    same_type,
    unify_pages,
)
from kvplan.engines.vllm.versions import Rules


def place_caches(
    shape: ModelShape, settings: VllmSettings, rules: Rules, layout: Layout, blocks: Blocks
) -> tuple[list[Placed], tuple[int, ...]]:
    """The caches of all layers with their stage, in the order the engine meets them.

    Draft layers follow on the last stage. 0.11 lists attention layers before recurrent ones on
    each stage. Source: gpu_model_runner.py get_kv_cache_spec.
    """
    split = stage_layers(shape.depth, layout.pipeline, rules.stages, layout.partition)
    kept = [
        layer_caches(
            group, settings, rules, layout, blocks.attention, blocks.state, blocks.padded_state
        )
        for group in (*shape.groups, *shape.draft)
    ]
    placed = [
        Placed(cache, stage)
        for stage, indices in zip(stage_of_layer(split), shape.order, strict=True)
        for index in indices
        for cache in kept[index]
    ]
    last = layout.pipeline - 1
    for caches, group in zip(kept[len(shape.groups) :], shape.draft, strict=True):
        placed += [Placed(cache, last) for _ in range(group.layers) for cache in caches]
    if rules.attention_first:
        placed.sort(key=lambda layer: (layer.stage, layer.cache.kind == "mamba"))
    return placed, split


def group_size(counts: list[int], by_maximum: bool) -> int:
    """Layers of a group: the smallest bucket, or the largest where it is below 1.5 times that.

    Source: _get_kv_cache_groups_uniform_page_size; 0.11 always takes the smallest.
    """
    smallest, largest = min(counts), max(counts)
    return largest if by_maximum and 2 * largest < 3 * smallest else smallest


def padding_layers(layers: int, size: int) -> int:
    """Layers added so that a bucket fills whole groups."""
    return -layers % size


def split_buckets(
    placed: list[Placed], stages: int, by_maximum: bool
) -> tuple[tuple[Group, ...], tuple[Padding, ...]]:
    """Equal caches form buckets; a bucket of n layers gives ceil(n / size) groups.

    Group i takes layers i, i + k, i + 2k, so that pipeline stages get alike shares.
    """
    buckets: dict[object, list[Placed]] = {}
    for layer in placed:
        buckets.setdefault(layer.cache, []).append(layer)
    size = group_size([len(b) for b in buckets.values()], by_maximum)
    groups: list[Group] = []
    padding: list[Padding] = []
    for bucket in buckets.values():
        added = padding_layers(len(bucket), size)
        if added:
            padding.append(Padding(added, round(added / len(bucket) * 100, 2)))
        count = ceil_div(len(bucket), size)
        groups += [group_of(bucket[i::count], stages) for i in range(count)]
    return tuple(groups), tuple(padding)


def group_layers(
    placed: list[Placed], stages: int, settings: VllmSettings, rules: Rules
) -> Grouping:
    """The groups of the whole model, in the engine's order of decisions.

    Windows turned full without the hybrid manager; no layers, no group; one cache, one group; one
    type, one mixed group; packing in block-outermost layouts; else equal pages and buckets.
    Source: get_kv_cache_groups.
    """
    raw = layers_by_stage(placed, stages)
    if not rules.grouped:
        return _one_group(placed, stages, settings, rules)
    if not settings.hybrid_manager:
        placed = promote_windows(placed, settings, rules)
    caches = distinct(placed)
    if not caches:
        return Grouping((), (), raw)
    if same_cache(caches):
        return Grouping((group_of(placed, stages),), (), raw)
    if same_type(caches, rules):
        return Grouping((group_of(placed, stages, uniform_type=True),), (), raw)
    if settings.block_outermost and rules.in_flight_batches:
        groups = pack_groups(placed, stages, rules)
        if groups:
            return Grouping(tuple(groups), (), raw)
    groups_, padding = split_buckets(unify_pages(placed, rules), stages, rules.group_by_maximum)
    return Grouping(groups_, padding, raw)


def _one_group(placed: list[Placed], stages: int, settings: VllmSettings, rules: Rules) -> Grouping:
    """The only group of 0.8: each stage by itself must have one type of cache, and all the same.

    Source: get_kv_cache_config, create_kv_cache_group_specs, unify_kv_cache_configs of 0.8.5.
    """
    raw = layers_by_stage(placed, stages)
    promoted: list[Placed] = []
    for stage in range(stages):
        local = promote_windows([p for p in placed if p.stage == stage], settings, rules)
        caches = distinct(local)
        message, type_ = "", ""
        if len({_type_of(cache) for cache in caches}) != 1:
            message, type_ = "Only one type of KV cache is supported.", "NotImplementedError"
        elif len({cache.identity for cache in caches}) > 1:
            message, type_ = "All layers in a group must share one KVCacheSpec.", "AssertionError"
        if message:
            failure = PlannerError("several_cache_types", type_, message)
            return Grouping((), (), raw, failure, stage)
        promoted += local
    if len({(_type_of(cache), cache.identity) for cache in distinct(promoted)}) > 1:
        failure = PlannerError("stages_differ", "AssertionError", "stages differ in their cache")
        return Grouping((), (), raw, failure)
    return Grouping((group_of(promoted, stages),), (), raw)


def _type_of(cache: Cache) -> tuple[bool, int, int, int]:
    """What layers of 0.8 must have in common (KVCacheSpec.type_id)."""
    window = 0 if cache.is_full else cache.window
    return cache.is_full, window, cache.block_size, cache.page


def plan_groups(
    shape: ModelShape, settings: VllmSettings, rules: Rules, layout: Layout
) -> tuple[Grouping, Blocks, tuple[int, ...]]:
    """Grouping, block sizes and layers by stage; length, batch and memory do not move them."""
    key = (
        shape,
        layout,
        rules.version,
        settings.block_size,
        settings.kv_dtype,
        settings.model_dtype,
        settings.hybrid_manager,
        settings.kv_cache_layout,
        settings.mamba_cache_mode,
        settings.ssm_dtype,
        settings.speculative_tokens,
        settings.checkpoint_alignment,
        settings.mamba_chunk_size,
        settings.kernel_block,
    )
    found = _PLANNED.get(key)
    if found is None:
        if len(_PLANNED) >= _MOST_PLANNED:
            _PLANNED.clear()
        found = _PLANNED[key] = _plan_groups(shape, settings, rules, layout)
    return found


_Planned = tuple[Grouping, Blocks, tuple[int, ...]]
_PLANNED: dict[tuple[object, ...], _Planned] = {}
_MOST_PLANNED = 4096


def _plan_groups(
    shape: ModelShape, settings: VllmSettings, rules: Rules, layout: Layout
) -> _Planned:
    refuse_unknown(settings, rules)
    blocks = blocks_of(shape, settings, rules, layout.tensor)
    placed, split = place_caches(shape, settings, rules, layout, blocks)
    try:
        grouping = group_layers(placed, layout.pipeline, settings, rules)
    except PlannerError as error:
        raw = layers_by_stage(placed, layout.pipeline)
        grouping = Grouping((), (), raw, failure=error)
    return grouping, blocks, split
