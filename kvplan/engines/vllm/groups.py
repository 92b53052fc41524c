"""Layers that share a block table: groups, how many layers of each stage they hold, their pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from kvplan.engines.vllm.caches import Cache


@dataclass(frozen=True)
class Placed:
    """One layer's cache and the pipeline stage it is on."""

    cache: Cache
    stage: int


@dataclass(frozen=True)
class Group:
    """Layers with one block table; `uniform_type` groups mix pages that grow alike.

    `members` are the distinct caches with their number of layers on each stage.
    """

    members: tuple[tuple[Cache, tuple[int, ...]], ...]
    uniform_type: bool = False

    @property
    def first(self) -> Cache:
        """The cache that stands for the group in the log lines."""
        return self.members[0][0]

    @cached_property
    def stage_layers(self) -> tuple[int, ...]:
        """Layers of the group on each stage."""
        return tuple(sum(counts) for counts in zip(*(c for _, c in self.members), strict=True))

    @cached_property
    def stage_pages(self) -> tuple[int, ...]:
        """Bytes one block takes in all layers of the group on each stage."""
        pages = [[cache.page * n for n in counts] for cache, counts in self.members]
        return tuple(sum(page) for page in zip(*pages, strict=True))

    @cached_property
    def layers(self) -> int:
        """Layers of the group in the whole model."""
        return sum(self.stage_layers)

    @cached_property
    def page(self) -> int:
        """Page of one layer; of all layers together where pages are mixed."""
        return sum(self.stage_pages) if self.uniform_type else self.first.page

    @property
    def kind(self) -> str:
        """The kind as the planner names it."""
        return "uniform_type" if self.uniform_type else self.first.kind

    def caches_on(self, stage: int) -> list[Cache]:
        """The distinct caches a stage has of a mixed group; the whole group's if it has none."""
        here = [cache for cache, counts in self.members if counts[stage]]
        return here or [cache for cache, _ in self.members]


def group_of(placed: Iterable[Placed], stages: int, uniform_type: bool = False) -> Group:
    """One group from its layers, in order of first use."""
    counts: dict[Cache, list[int]] = {}
    for layer in placed:
        counts.setdefault(layer.cache, [0] * stages)[layer.stage] += 1
    members = tuple((cache, tuple(per_stage)) for cache, per_stage in counts.items())
    if not uniform_type and len(members) > 1:
        # merged caches differ only in a recorded window; the first stands for all
        total = tuple(sum(n) for n in zip(*(c for _, c in members), strict=True))
        members = ((members[0][0], total),)
    return Group(members, uniform_type)


@dataclass(frozen=True)
class Padding:
    """Layers added to a bucket, and the waste the engine warns of (percent, two decimals)."""

    layers: int
    waste_percent: float


@dataclass(frozen=True)
class Grouping:
    """The groups of the whole model, what was padded, and the layers before any merging."""

    groups: tuple[Group, ...]
    padding: tuple[Padding, ...]
    layers: tuple[tuple[tuple[Cache, int], ...], ...]  # per stage: distinct caches and counts
    failure: Exception | None = None  # what the engine raises while grouping
    failing_stage: int | None = None  # the stage it raises for, where each is grouped alone

    @cached_property
    def caches(self) -> tuple[Cache, ...]:
        """The different caches of all groups."""
        return tuple(dict.fromkeys(cache for g in self.groups for cache, _ in g.members))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """For each group, its caches as positions in `caches`."""
        at = {cache: index for index, cache in enumerate(self.caches)}
        return tuple(tuple(at[cache] for cache, _ in g.members) for g in self.groups)

    @cached_property
    def profiles(self) -> tuple[tuple[tuple[tuple[int, ...], int], ...], ...]:
        """For each stage, the caches that decide a group's blocks and how many groups are alike."""
        at = {cache: index for index, cache in enumerate(self.caches)}
        found = []
        for stage in range(len(self.layers)):
            alike: dict[tuple[int, ...], int] = {}
            for group in self.groups:
                here = tuple(at[cache] for cache in group.caches_on(stage))
                alike[here] = alike.get(here, 0) + 1
            found.append(tuple(alike.items()))
        return tuple(found)

    @cached_property
    def whole_profile(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """The same for the whole model."""
        return tuple((members, self.members.count(members)) for members in set(self.members))

    @cached_property
    def block_bytes(self) -> tuple[int, ...]:
        """Bytes of one block id on each stage: the widest group decides."""
        if not self.groups:
            return tuple(0 for _ in self.layers)
        return tuple(max(p) for p in zip(*(g.stage_pages for g in self.groups), strict=True))


def layers_by_stage(
    placed: Sequence[Placed], stages: int
) -> tuple[tuple[tuple[Cache, int], ...], ...]:
    """The distinct caches of each stage with their number of layers."""
    found: list[dict[Cache, int]] = [{} for _ in range(stages)]
    for layer in placed:
        found[layer.stage][layer.cache] = found[layer.stage].get(layer.cache, 0) + 1
    return tuple(tuple(counts.items()) for counts in found)
