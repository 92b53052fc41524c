"""Shape, settings and free bytes in, the plan out: fit, number of blocks, and the log lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from kvplan.engines.arithmetic import largest
from kvplan.engines.shape import Layout, ModelShape
from kvplan.engines.vllm.grouping import plan_groups
from kvplan.engines.vllm.groups import Grouping
from kvplan.engines.vllm.records import GroupPlan, Plan, Refusal
from kvplan.engines.vllm.requests import DcpWithSlidingWindow, Demand, demand
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.unification import PlannerError
from kvplan.engines.vllm.versions import Rules, rules_for
from kvplan.errors import ValueProblem


@dataclass(frozen=True)
class _Planner:
    """The pieces one plan is computed from."""

    rules: Rules
    grouping: Grouping
    demand: Demand

    def cache_blocks(self, length: int) -> list[int]:
        """Blocks of one request in each of the different caches."""
        blocks = self.demand.blocks
        return [blocks(cache, length) for cache in self.grouping.caches]

    def request_blocks(self, length: int, stage: int) -> int:
        """Blocks of one request in all groups; in a mixed group the layer that needs most."""
        each = self.cache_blocks(length)
        grouping = self.grouping
        here = self.rules.uniform_stage_page
        profile = grouping.profiles[stage] if here else grouping.whole_profile
        return sum(max([each[i] for i in members]) * alike for members, alike in profile)

    def block_bytes(self, stage: int) -> int:
        """Bytes of one block id on a stage; 0.11 charges a stage all pages of a mixed group."""
        groups = self.grouping.groups
        if groups and groups[0].uniform_type and not self.rules.uniform_stage_page:
            return groups[0].page
        return self.grouping.block_bytes[stage]

    def needed(self, length: int, stage: int) -> int:
        """Bytes one request of that length needs on a stage, as the fit check counts them.

        From 0.20 on block ids times the widest group; before, the layers as they are: no padding,
        and windows as windows even where the hybrid manager will turn them full.
        """
        if self.rules.check_groups:
            blocks = self.request_blocks(length, stage)
            return blocks * self.grouping.block_bytes[stage] if self.grouping.groups else 0
        return sum(
            count * self.demand.blocks(cache, length) * cache.page
            for cache, count in self.grouping.layers[stage]
        )

    def longest(self, available: int, stage: int, limit: int) -> int:
        """The longest request up to `limit` that fits; 0 if one token does not.

        Source: estimate_max_model_len, _estimate_max_model_len_from_groups.
        """
        return largest(lambda length: self.needed(length, stage) <= available, limit)

    def printed(self, blocks: int, length: int, stage: int) -> tuple[int, float]:
        """Tokens and concurrency as logged; concurrency counts the null block in."""
        if self.rules.tokens == "blocks":
            tokens = blocks * self.smallest_block(length)
            return tokens, tokens / length
        concurrency = blocks / self.request_blocks(length, stage)
        return self.tokens(blocks, concurrency, length), concurrency

    def smallest_block(self, length: int) -> int:
        """Tokens of the smallest block of any group."""
        return min(g.first.block_size or length for g in self.grouping.groups)

    def tokens(self, blocks: int, concurrency: float, length: int) -> int:
        """The figure of the "KV cache size" line, in the release's own meaning.

        0.33 multiplies two floats and cuts: that rounding is kept. Source: get_kv_cache_capacity
        (0.33), _report_kv_cache_config (0.20), get_kv_cache_config_from_groups (0.11).
        """
        if self.rules.tokens == "requests":
            return int(concurrency * length)
        share = blocks // len(self.grouping.groups)
        return share * self.smallest_block(length) * self.demand.context_ranks


def plan(
    shape: ModelShape,
    settings: VllmSettings,
    layout: Layout,
    available_bytes: int | Sequence[int],
) -> Plan:
    """What vLLM decides at start-up from the bytes each rank has left for KV.

    Rank = stage x tensor parallel + tensor rank; one figure stands for all ranks. Source:
    get_kv_cache_configs of each release (0.8: get_kv_cache_config and unify_kv_cache_configs).
    """
    rules = rules_for(settings.version)
    if rules.stages == "vllm-v0":
        what = "the V0 engine of vLLM 0.6 plans by other rules"
        raise ValueProblem(what, "it has one kind of block", "call vllm.v0.plan")
    ranks = layout.tensor * layout.pipeline
    available = _by_rank(available_bytes, ranks)
    stages = [rank // layout.tensor for rank in range(ranks)]
    request = demand(
        settings, rules, layout.pipeline, layout.decode_context, layout.prefill_context
    )
    grouping, blocks, split = plan_groups(shape, settings, rules, layout)
    planner = _Planner(rules, grouping, request)
    described = Plan(
        rules.version,
        "ok",
        split,
        settings.max_model_len,
        padding=grouping.padding,
        attention_block_size=blocks.attention if blocks.aligned else None,
        state_page_padded=blocks.padded_state,
    )
    try:
        return _decide(planner, settings, described, stages, available)
    except DcpWithSlidingWindow:
        message = "DCP not support sliding window."
        refusal = Refusal("dcp_with_sliding_window", "AssertionError", message=message)
        return replace(described, outcome="error", error=refusal)
    except PlannerError as error:
        return replace(
            described, outcome="error", error=Refusal(error.kind, error.type, message=str(error))
        )


def _by_rank(available: int | Sequence[int], ranks: int) -> list[int]:
    if isinstance(available, int):
        return [available] * ranks
    if len(available) != ranks:
        what = f"{len(available)} memory figures for {ranks} ranks"
        raise ValueProblem(what, "every rank has its own", f"give 1 or {ranks}")
    return list(available)


def _decide(
    planner: _Planner,
    settings: VllmSettings,
    described: Plan,
    stages: list[int],
    available: list[int],
) -> Plan:
    """Auto-fit, fit check, blocks of each rank, the minimum, and what is printed."""
    rules, length = planner.rules, settings.max_model_len
    failure = planner.grouping.failure
    if rules.check_groups and failure:
        raise failure
    override = settings.num_gpu_blocks_override
    planned = available
    if override is not None and rules.override_resizes:
        planned = [override * _block_bytes(planner, stage) for stage in stages]
    spare = [
        memory - (_block_bytes(planner, stage) if rules.null_block else 0)
        for memory, stage in zip(planned, stages, strict=True)
    ]
    if spare[0] <= 0 and planner.grouping.groups and not settings.auto_fit:
        refusal = Refusal("no_memory", "ValueError", available_bytes=spare[0])
        return _refused(planner, described, refusal, length)
    if settings.auto_fit and rules.can_auto_fit:
        described = _with_needs(planner, described, length)
        length = min(
            planner.longest(memory, stage, length)
            for memory, stage in zip(spare, stages, strict=True)
        )
        if length <= 0:
            refusal = Refusal("auto_fit_impossible", "ValueError")
            return replace(described, outcome="refused", error=refusal)
        described = replace(described, fitted_max_model_len=length)
    reached = len(stages)
    if planner.grouping.failing_stage is not None:
        reached = stages.index(planner.grouping.failing_stage) + 1
    checked = _check_fit(planner, stages[:reached], spare[:reached], length)
    if checked is not None:
        return _refused(planner, described, checked, settings.max_model_len)
    if failure:
        raise failure
    described = _with_needs(planner, described, settings.max_model_len)
    return _size_pool(planner, described, stages, planned, override, length)


def _refused(planner: _Planner, described: Plan, refusal: Refusal, length: int) -> Plan:
    """A refusal; what a request takes is left out where a later stage cannot count it."""
    with suppress(DcpWithSlidingWindow):
        described = _with_needs(planner, described, length)
    return replace(described, outcome="refused", error=refusal)


def _block_bytes(planner: _Planner, stage: int) -> int:
    size = planner.block_bytes(stage)
    if size == 0 and planner.grouping.groups:
        message = f"pipeline stage {stage} keeps no KV, and the engine has no page size for it"
        raise PlannerError("stage_without_layers", _empty_stage_error(planner), message)
    return size


def _empty_stage_error(planner: _Planner) -> str:
    """What the division by no page, or the check before it, raises."""
    groups = planner.grouping.groups
    if planner.rules.null_block:
        return "ValueError" if len(groups) > 1 else "ZeroDivisionError"
    return "ZeroDivisionError" if groups[0].uniform_type else "AssertionError"


def _with_needs(planner: _Planner, described: Plan, length: int) -> Plan:
    """The plan with its groups and what one request of `length` takes on each stage."""
    stages = range(len(described.layers_by_stage))
    grouping = planner.grouping
    each = planner.cache_blocks(length)
    groups = tuple(
        GroupPlan(
            group.kind,
            group.layers,
            group.first.block_size or length,
            group.page,
            max(each[i] for i in members),
        )
        for group, members in zip(grouping.groups, grouping.members, strict=True)
    )
    return replace(
        described,
        groups=groups,
        bytes_per_block_by_stage=tuple(planner.block_bytes(s) for s in stages),
        needed_bytes_by_stage=tuple(planner.needed(length, s) for s in stages),
        blocks_per_request=sum(group.blocks_per_request for group in groups),
    )


def _check_fit(
    planner: _Planner, stages: list[int], spare: list[int], length: int
) -> Refusal | None:
    """The first rank that cannot hold one request of max_model_len, as it reports it.

    Source: _check_enough_kv_cache_memory (0.20, 0.33), check_enough_kv_cache_memory before.
    """
    for stage, memory in dict.fromkeys(zip(stages, spare, strict=True)):
        if planner.rules.check_groups and not planner.grouping.groups:
            continue
        if not planner.rules.check_groups and not planner.grouping.layers[stage]:
            continue
        if memory <= 0:
            return Refusal("no_memory", "ValueError", available_bytes=memory)
        needed = planner.needed(length, stage)
        if needed > memory:
            estimate = None
            if planner.rules.prints_estimate:
                estimate = planner.longest(memory, stage, length) or None
            return Refusal("max_model_len_does_not_fit", "ValueError", needed, memory, estimate)
    return None


def _size_pool(
    planner: _Planner,
    described: Plan,
    stages: list[int],
    planned: list[int],
    override: int | None,
    length: int,
) -> Plan:
    """Blocks of every rank, the smallest for all, and the log lines."""
    if not planner.grouping.groups:
        return replace(described, num_gpu_blocks=1)
    pairs = list(dict.fromkeys(zip(planned, stages, strict=True)))
    counts = [
        override if override is not None else max(memory // _block_bytes(planner, stage), 0)
        for memory, stage in pairs
    ]
    blocks = min(counts)
    if planner.rules.prints_each_rank:
        lines = [planner.printed(n, length, pair[1]) for n, pair in zip(counts, pairs, strict=True)]
        if len(set(lines)) > 1:
            ranks = zip(planned, stages, strict=True)
            by_pair = dict(zip(pairs, lines, strict=True))
            lines = [by_pair[rank] for rank in ranks]
    else:
        lines = [planner.printed(blocks, length, 0)]
    tokens, concurrency = min(lines)
    return replace(
        described,
        num_gpu_blocks=blocks,
        printed_tokens=tokens,
        max_concurrency=concurrency,
        printed_by_rank=tuple(lines) if len(set(lines)) > 1 else (),
    )


def longest_fitting_length(
    shape: ModelShape,
    settings: VllmSettings,
    layout: Layout,
    available_bytes: int | Sequence[int],
    limit: int,
) -> int:
    """The engine's own search for the longest request up to `limit`, smallest over the ranks."""
    rules = rules_for(settings.version)
    ranks = layout.tensor * layout.pipeline
    grouping, _, _ = plan_groups(shape, settings, rules, layout)
    request = demand(
        settings, rules, layout.pipeline, layout.decode_context, layout.prefill_context
    )
    planner = _Planner(rules, grouping, request)
    found = []
    for rank, memory in enumerate(_by_rank(available_bytes, ranks)):
        stage = rank // layout.tensor
        if settings.num_gpu_blocks_override is not None and rules.override_resizes:
            memory = settings.num_gpu_blocks_override * planner.block_bytes(stage)
        spare = memory - (planner.block_bytes(stage) if rules.null_block else 0)
        found.append(planner.longest(spare, stage, limit))
    return min(found)
