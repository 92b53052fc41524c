"""SGLang's pools: bytes of a token, the token, window and state pools, and running requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvplan.engines.arithmetic import round_down, round_up
from kvplan.engines.parallel import stage_layers, stage_of_layer, state_elements_per_rank
from kvplan.engines.sglang_cells import KNOWN, Cells, SglangSettings, StageLayers, cells_of
from kvplan.engines.sglang_window import window_request_cap
from kvplan.engines.shape import Layout, ModelShape
from kvplan.errors import ValueProblem, suggest


class PoolError(Exception):
    """SGLang raises here, and the server does not start."""

    def __init__(self, kind: str, type_: str) -> None:
        super().__init__(kind)
        self.kind, self.type = kind, type_


@dataclass(frozen=True)
class SglangPlan:
    """The pools of one replica; token counts leave out the padding page that is allocated too.

    `full_tokens` and `window_tokens` are None without a window pool.
    """

    outcome: str
    layers_by_stage: tuple[int, ...]
    bytes_per_token_by_stage: tuple[float, ...] = ()
    max_total_num_tokens: int | None = None
    full_tokens: int | None = None
    window_tokens: int | None = None
    max_running_requests: int | None = None
    max_mamba_cache_size: int | None = None
    state_bytes_per_request: int | None = None
    bytes_left_for_tokens_by_stage: tuple[int, ...] = ()
    error: str = ""
    error_type: str = ""

    @property
    def fits(self) -> bool:
        """Whether the server starts with these arguments."""
        return self.outcome == "ok"


@dataclass(frozen=True)
class _Pool:
    total: int
    full: int | None = None
    window: int | None = None


def plan(
    shape: ModelShape, settings: SglangSettings, layout: Layout, available_bytes: int
) -> SglangPlan:
    """What SGLang sizes from the bytes left for KV on the rank that has least.

    State slots come first, then tokens of every pipeline stage, and the smallest stage decides.
    Source: SGLang 0.5.23 mem_cache/kv_cache_configurator.py, model_executor/pool_configurator.py.
    """
    if settings.version not in KNOWN:
        what = f"SGLang {settings.version} is not known"
        fix = suggest(settings.version, KNOWN) or "choose one of them"
        raise ValueProblem(what, f"known releases: {', '.join(KNOWN)}", fix)
    split = stage_layers(shape.depth, layout.pipeline, "sglang", layout.partition)
    made = SglangPlan("ok", split)
    try:
        slots, left = None, available_bytes
        if "recurrent" in shape.kinds:
            slots, left, per_request = _state_pool(shape, settings, layout, split, left)
            made = replace(made, max_mamba_cache_size=slots, state_bytes_per_request=per_request)
            if slots <= 0:
                raise PoolError("not_enough_memory_for_state_cache", "RuntimeError")
        cells = [cells_of(shape, settings, layout, split, s) for s in range(layout.pipeline)]
        if any(cell.layers.unpaired for cell in cells):
            raise PoolError("stage_without_window_layers", "AssertionError")
        if slots is not None:
            lefts = tuple(left for _ in cells)
            made = replace(made, bytes_left_for_tokens_by_stage=lefts)
        pool = _token_pool(cells, settings, left)
        requests = running_requests(pool.total, settings, slots)
    except PoolError as error:
        made = replace(made, bytes_left_for_tokens_by_stage=())
        if slots is not None and slots <= 0:
            made = replace(made, max_mamba_cache_size=None, state_bytes_per_request=None)
        outcome = "error" if error.type == "AssertionError" else "refused"
        return replace(made, outcome=outcome, error=error.kind, error_type=error.type)
    return replace(
        made,
        bytes_per_token_by_stage=tuple(cell.token for cell in cells),
        max_total_num_tokens=pool.total,
        full_tokens=pool.full,
        window_tokens=pool.window,
        max_running_requests=requests,
    )


def slots_per_request(settings: SglangSettings) -> int:
    """State slots of a running request: 3, and 1 or 2 (overlap) to track with an extra buffer.

    Without a radix cache one. Source: _calculate_mamba_ratio, get_mamba_tracking_slots.
    """
    if settings.disable_radix_cache:
        return 1
    tracking = 2 if settings.overlap_schedule else 1
    return 3 + (tracking if settings.mamba_extra_buffer else 0)


def state_bytes_per_request(shape: ModelShape, settings: SglangSettings, tensor: int) -> int:
    """Bytes all recurrent layers of the model keep for one slot on one tensor-parallel rank.

    The convolution is bf16 and the state fp32 unless told otherwise. Source:
    configs/mamba_utils.py mamba2_state_dtype, mamba_cache_per_req.
    """
    size = {"fp32": 4, "bf16": 2, "fp16": 2}
    total = 0
    for group in shape.groups:
        if group.kind != "recurrent" or group.state is None:
            continue
        conv, state = state_elements_per_rank(group.state, tensor)
        dtype = settings.ssm_dtype or group.state.state_dtype or "fp32"
        total += group.layers * (conv * size[settings.conv_dtype] + state * size[dtype])
    return total


def _state_pool(
    shape: ModelShape,
    settings: SglangSettings,
    layout: Layout,
    split: tuple[int, ...],
    available: int,
) -> tuple[int, int, int]:
    """Slots of the state pool, bytes left for tokens, bytes of one slot in all layers.

    The pool takes ratio / (1 + ratio) of the memory, and one padding slot; the largest stage's
    share is charged to every stage. The float arithmetic is the engine's. Source:
    _handle_max_mamba_cache.
    """
    per_request = state_bytes_per_request(shape, settings, layout.tensor)
    stages = stage_of_layer(split)
    recurrent = [
        stage
        for stage, kept in zip(stages, shape.order, strict=True)
        if any(shape.groups[i].kind == "recurrent" for i in kept)
    ]
    worst = max((recurrent.count(s) for s in range(layout.pipeline)), default=0)
    slot = int(per_request * (worst / max(len(recurrent), 1)))
    drafts = settings.draft_tokens if settings.speculates else 0
    left = float(available)
    running = max(1, (settings.max_running_requests or 0) // settings.attention_data_parallel)
    ratio = slots_per_request(settings)
    if settings.max_mamba_cache_size is not None:
        slots = settings.max_mamba_cache_size // settings.attention_data_parallel
        left -= slot * (min(running, slots // ratio) + 1) * drafts
    elif settings.disable_radix_cache and settings.max_running_requests is not None:
        slots = running
        left -= slot * (slots + 1) * drafts
    else:
        share = settings.mamba_full_memory_ratio
        budget = available * share / (1 + share)
        slots = int((budget - slot * (1 + drafts)) // (slot * (1 + drafts / ratio)))
        left -= slot * (min(running, slots // ratio) + 1) * drafts
    return slots, int(left - (slots + 1) * slot), per_request


def _token_pool(cells: Sequence[Cells], settings: SglangSettings, left: int) -> _Pool:
    """Tokens of every stage, the smallest of them, and the pools that belong to it.

    Source: config_from_budget and _apply_token_constraints.
    """
    pools = [_stage_pool(cell, settings, left) for cell in cells]
    tokens = min(pool.total for pool in pools)
    if settings.max_total_tokens is not None:
        tokens = min(tokens, settings.max_total_tokens)
    first = pools[0]
    if tokens != first.total:
        first = _stage_pool_from_tokens(cells[0], settings, tokens)
    return first


def _stage_pool(cell: Cells, settings: SglangSettings, left: int) -> _Pool:
    """The pools one stage could hold in `left` bytes."""
    page = settings.page_size
    if cell.layers.windowed and cell.layers.full and _caps_requests(settings):
        window = round_up(window_request_cap(settings, cell.layers.window), page)
        rest = left - window * cell.window_token
        full = round_down(int(rest // cell.full_token), page)
        if full <= 0:
            raise PoolError("not_enough_memory", "RuntimeError")
        return _Pool(full, full, window)
    if cell.token == 0:
        tokens = settings.max_total_tokens or settings.context_len
        tokens = 2**63 - 1 if cell.layers.elsewhere else tokens
    else:
        tokens = int(max(left, 0) // cell.token)
    return _checked(_divide(cell, settings, tokens))


def _stage_pool_from_tokens(cell: Cells, settings: SglangSettings, tokens: int) -> _Pool:
    """The pools of a stage once the number of tokens is capped."""
    if cell.layers.windowed and cell.layers.full and _caps_requests(settings):
        window = round_up(window_request_cap(settings, cell.layers.window), settings.page_size)
        full = round_down(tokens, settings.page_size)
        return _checked(_Pool(full, full, min(window, tokens)))
    return _checked(_divide(cell, settings, tokens))


def _divide(cell: Cells, settings: SglangSettings, tokens: int) -> _Pool:
    """Whole pages; beside full layers a window pool of `swa_full_tokens_ratio` times as many.

    Source: HybridSWAPoolConfigurator._solve_pool_sizes, validate_swa_pool_size.
    """
    page = settings.page_size
    whole = round_down(tokens, page)
    if not cell.layers.windowed:
        return _Pool(whole)
    if not cell.layers.full:
        return _Pool(whole, 0, whole)
    window = round_down(int(whole * settings.swa_full_tokens_ratio), page)
    if cell.layers.window + page >= window:
        raise PoolError("swa_pool_too_small", "ValueError")
    return _Pool(whole, whole, window)


def _checked(pool: _Pool) -> _Pool:
    if pool.total <= 0:
        raise PoolError("not_enough_memory", "RuntimeError")
    return pool


def _caps_requests(settings: SglangSettings) -> bool:
    """Whether the window pool is sized from the running requests instead of the ratio.

    Source: SWARequestCapPoolConfigurator.is_applicable.
    """
    chunked = settings.decode_worker or (settings.chunked_prefill_size or 0) > 0
    return settings.max_running_requests is not None and settings.disable_radix_cache and chunked


def running_requests(tokens: int, settings: SglangSettings, slots: int | None = None) -> int:
    """Requests that may run at once: asked for, or 512 per context length between 2048 and 4096.

    At most half the tokens, and what the state slots allow. Source: resolve_max_num_reqs.
    """
    if settings.max_running_requests is not None:
        asked = max(1, settings.max_running_requests // settings.attention_data_parallel)
    else:
        asked = max(min(int(tokens / settings.context_len * 512), 4096), 2048)
    most = min(asked, tokens // 2)
    if slots is not None:
        most = min(most, slots // slots_per_request(settings))
        if most <= 0:
            raise PoolError("not_enough_memory_for_state_cache", "RuntimeError")
    return most


def allocated_rows(tokens: int, page_size: int) -> int:
    """Rows a pool allocates: its tokens and one padding page, whose slot 0 is a dummy.

    Source: mem_cache/memory_pool.py; confirmed by the log of MiMo-V2-Flash (300,352 rows).
    """
    return tokens + page_size


def page_tokens(page_size: int, decode_context: int) -> int:
    """Tokens of a page of the allocator, widened by decode-context parallel.

    Source: mem_cache/allocation_sizing.py get_alloc_page_size.
    """
    return page_size * decode_context


__all__ = [
    "PoolError",
    "SglangPlan",
    "SglangSettings",
    "StageLayers",
    "allocated_rows",
    "page_tokens",
    "plan",
    "running_requests",
    "slots_per_request",
    "state_bytes_per_request",
]
