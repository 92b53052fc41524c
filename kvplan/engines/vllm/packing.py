"""Block-outermost layouts: layers with unequal pages packed side by side within one block."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.arithmetic import ceil_div
from kvplan.engines.vllm.groups import Group, Placed, group_of
from kvplan.engines.vllm.unification import distinct, same_type
from kvplan.engines.vllm.versions import Rules


@dataclass
class _Bucket:
    """Layers of one type, by page size in order of first use."""

    layers: list[Placed]

    @property
    def by_page(self) -> dict[int, list[Placed]]:
        found: dict[int, list[Placed]] = {}
        for layer in self.layers:
            found.setdefault(layer.cache.page, []).append(layer)
        return found

    @property
    def balanced(self) -> bool:
        """One layer of each page size a repeat: all page sizes have as many layers."""
        return len({len(layers) for layers in self.by_page.values()}) == 1

    @property
    def repeats(self) -> int:
        """How often the pattern of page sizes repeats."""
        return max(len(layers) for layers in self.by_page.values())

    def widest(self, groups: int) -> int:
        """Page bytes of the largest of the groups the bucket splits into."""
        return sum(ceil_div(len(v), groups) * page for page, v in self.by_page.items())


def least_padding_size(values: list[int], least: int) -> int:
    """The chunk size from `least` up that adds least when all values are rounded up to it.

    The larger of two equal ones wins. Source: kv_cache_planning.py _approximate_gcd.
    """
    candidates = range(max(1, least), max(max(values), least) + 1)
    return min(candidates, key=lambda size: (sum(-value % size for value in values), -size))


def _buckets(placed: list[Placed], rules: Rules) -> list[_Bucket]:
    buckets: list[_Bucket] = []
    for layer in placed:
        for bucket in buckets:
            if same_type([*distinct(bucket.layers), layer.cache], rules):
                bucket.layers.append(layer)
                break
        else:
            buckets.append(_Bucket([layer]))
    return buckets


def pack_groups(placed: list[Placed], stages: int, rules: Rules) -> list[Group] | None:
    """Groups of whole patterns for a layout that packs pages; None when all pages are equal.

    Buckets that mix page sizes in equal counts set how many repeats a group holds; state buckets,
    and windows where nothing mixes, are split to fit the block the others need. Source:
    kv_cache_planning.py _get_packed_kv_cache_groups.
    """
    if len({layer.cache.page for layer in placed}) <= 1:
        return None
    buckets = _buckets(placed, rules)
    mixed = [b.repeats for b in buckets if b.balanced and len(b.by_page) > 1]
    repeats = 0
    if mixed:
        repeats = least_padding_size([b.repeats for b in buckets if b.balanced], max(mixed))

    def pattern_groups(bucket: _Bucket) -> int:
        return ceil_div(bucket.repeats, repeats) if repeats and bucket.balanced else 1

    def is_state(bucket: _Bucket) -> bool:
        kind = bucket.layers[0].cache.kind
        return kind == "mamba" or (not repeats and kind == "sliding")

    anchor = max(b.widest(len(b.layers) if is_state(b) else pattern_groups(b)) for b in buckets)
    groups: list[Group] = []
    for bucket in buckets:
        count = pattern_groups(bucket)
        if is_state(bucket):
            states = max(anchor // bucket.layers[0].cache.page, 1)
            count = max(count, ceil_div(len(bucket.layers), states))
        if count == 1:
            groups.append(group_of(bucket.layers, stages, uniform_type=True))
            continue
        pattern = list(zip(*bucket.by_page.values(), strict=False))
        for i in range(count):
            members = [layer for repeat in pattern[i::count] for layer in repeat]
            groups.append(group_of(members, stages, uniform_type=True))
    return groups
