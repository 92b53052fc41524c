"""Caches that differ: whether they count as one, one type, or must get pages of one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kvplan.engines.vllm.caches import Cache, promoted
from kvplan.engines.vllm.groups import Placed
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.versions import Rules


class PlannerError(Exception):
    """The engine's planner raises here, and the server does not start."""

    def __init__(self, kind: str, type_: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.type, self.message = kind, type_, message


def same_cache(caches: Sequence[Cache]) -> bool:
    """Whether all layers share one cache; full layers may differ in a recorded window.

    Two different windows among full layers are an error of the engine. Source: the merge methods
    of kv_cache_interface.py, is_kv_cache_spec_uniform.
    """
    first = caches[0]
    if all(cache == first for cache in caches[1:]):
        return True
    if not all(cache.kind == "full" for cache in caches):
        return False
    windows = {cache.window for cache in caches if cache.window}
    chunks = {cache.chunk for cache in caches if cache.chunk}
    if len(windows) > 1 or len(chunks) > 1:
        message = "All attention layers in the same KV cache group must have the same window size."
        raise PlannerError("windows_differ", "ValueError", message)
    if windows and chunks:
        return False
    same = all(
        (c.block_size, c.identity, c.padded) == (first.block_size, first.identity, first.padded)
        for c in caches[1:]
    )
    if same and first.slotted and not all(cache.slotted for cache in caches):
        message = "'FullAttentionSpec' object has no attribute 'tq_slot_size'"
        raise PlannerError("slots_cannot_be_merged", "AttributeError", message)
    return same


def same_type(caches: Sequence[Cache], rules: Rules) -> bool:
    """Whether all layers need the same token slots, so that one group may mix their pages.

    Source: UniformTypeKVCacheSpecs.is_uniform_type and is_uniform_with_collection.
    """
    first = caches[0]
    if len({cache.block_size for cache in caches}) > 1:
        return False
    if first.is_full:
        return all(cache.is_full for cache in caches)
    if any(cache.kind != first.kind for cache in caches):
        return False
    if first.kind == "sliding":
        return len({cache.window for cache in caches}) == 1
    if first.kind == "chunked":
        return len({cache.chunk for cache in caches}) == 1
    if first.kind == "mamba" and rules.unify == "pad":
        return len({cache.page for cache in caches}) == 1
    return True


def promote_windows(placed: list[Placed], settings: VllmSettings, rules: Rules) -> list[Placed]:
    """Without the hybrid manager windows and chunks are allocated in full, if a full layer exists.

    What is still of several types afterwards is an error. Source: unify_hybrid_kv_cache_specs.
    """
    caches = distinct(placed)
    if not caches or same_cache(caches) or same_type(caches, rules):
        return placed
    full = {cache.block_size for cache in caches if cache.is_full}
    local = any(cache.kind in ("sliding", "chunked") for cache in caches)
    if full and local:
        one = next(iter(full)) if len(full) == 1 else 0
        turned = {
            cache: promoted(cache, settings, rules, one or cache.block_size)
            for cache in caches
            if cache.kind in ("sliding", "chunked")
        }
        placed = [replace(p, cache=turned.get(p.cache, p.cache)) for p in placed]
    caches = distinct(placed)
    if rules.grouped and not (same_cache(caches) or same_type(caches, rules)):
        message = "Hybrid KV cache manager is disabled but the layers are of several types."
        raise PlannerError("cannot_unify_without_hybrid_manager", "ValueError", message)
    return placed


def unify_pages(placed: list[Placed], rules: Rules) -> list[Placed]:
    """Every layer gets the largest page: more tokens in a block, else padding, else an error.

    A smaller page that divides the largest multiplies its block. What does not divide is padded in
    0.33, states always there, MLA never; 0.20 refuses what does not divide and cannot stretch a
    state; 0.11 refuses unequal pages. Source: unify_kv_cache_spec_page_size.
    """
    caches = distinct(placed)
    target = max(cache.page for cache in caches)
    if all(cache.page == target for cache in caches):
        return placed
    changed = {cache: _with_page(cache, target, rules) for cache in caches}
    return [replace(layer, cache=changed[layer.cache]) for layer in placed]


def _with_page(cache: Cache, target: int, rules: Rules) -> Cache:
    if cache.page == target:
        return cache
    if rules.unify == "pad" and cache.kind == "mamba":
        return replace(cache, padded=target)
    stretches = rules.unify != "refuse" and cache.kind != "mamba" and cache.padded is None
    if stretches and target % cache.page == 0:
        return replace(cache, block_size=cache.block_size * (target // cache.page))
    if rules.unify == "pad" and cache.kind != "mla":
        return replace(cache, padded=target)
    message = f"a page of {cache.page} bytes cannot be brought to {target} bytes"
    raise PlannerError("pages_cannot_be_unified", "NotImplementedError", message)


def distinct(placed: Sequence[Placed]) -> list[Cache]:
    """The different caches in order of first use."""
    return list(dict.fromkeys(layer.cache for layer in placed))
