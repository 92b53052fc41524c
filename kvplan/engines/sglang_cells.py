"""SGLang's bytes of one token on one rank of one stage: full layers, windows, MLA, drafts."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.formats import KvStorage, format_of, indexer_bytes
from kvplan.engines.parallel import heads_per_rank, stage_of_layer
from kvplan.engines.shape import LayerGroup, Layout, ModelShape
from kvplan.errors import ValueProblem

KNOWN = ("0.5", "0.5.23")
_ELEMENTS = {"bf16": 2, "fp16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "mxfp8": 1}
FORMATS = (*_ELEMENTS, "nvfp4")


@dataclass(frozen=True)
class SglangSettings:
    """Server arguments that move the pools; defaults are the engine's own.

    `draft_tokens`, `draft_steps` and `draft_topk` are what EAGLE chooses by itself for most models.
    """

    context_len: int
    page_size: int = 1
    kv_dtype: str = "bf16"
    version: str = "0.5.23"
    swa_full_tokens_ratio: float = 0.8
    max_total_tokens: int | None = None
    max_running_requests: int | None = None
    chunked_prefill_size: int | None = None
    disable_radix_cache: bool = False
    overlap_schedule: bool = True
    attention_data_parallel: int = 1
    decode_worker: bool = False
    decode_extra_slots: int = 0
    swa_eviction_interval: int = 128
    eagle_draft_layers: int = 0
    speculative: bool = False  # also without draft layers of the target's shape
    draft_tokens: int = 4
    draft_steps: int = 3
    draft_topk: int = 1
    mamba_full_memory_ratio: float = 0.9
    mamba_extra_buffer: bool = False
    max_mamba_cache_size: int | None = None
    ssm_dtype: str = ""
    conv_dtype: str = "bf16"

    @property
    def speculates(self) -> bool:
        """Whether decoding drafts tokens."""
        return self.speculative or self.eagle_draft_layers > 0


@dataclass(frozen=True)
class StageLayers:
    """Layers of one stage: kept in full, windowed, with an indexer; and the window (tokens)."""

    full: int
    windowed: int
    indexed: int
    window: int
    elsewhere: bool  # other stages keep tokens
    unpaired: bool = False  # a window model whose stage has no window layer: the engine asserts


@dataclass(frozen=True)
class Cells:
    """Bytes one token costs on one rank: in all pools, in the full pool, in the window pool."""

    token: float
    full_token: int
    window_token: int
    layers: StageLayers


def latent_width(group: LayerGroup, kv_dtype: str, sparse: bool) -> int:
    """Elements of one MLA vector; a sparse model in fp8_e4m3 keeps scales and a bf16 rope (656).

    `sparse` is a property of the model: layers that reuse another's index keep that record too.
    Source: kv_cache_configurator.py calculate_mla_kv_cache_dim.
    """
    if sparse and kv_dtype == "fp8_e4m3":
        return group.latent + group.latent // 128 * 4 + group.rope_dim * 2
    return group.latent + group.rope_dim


def layer_token_bytes(
    group: LayerGroup, kv_dtype: str, tensor: int, decode_context: int, sparse: bool = False
) -> int:
    """Bytes of one token in one layer on one rank, without an indexer.

    Source: DefaultPoolConfigurator._compute_cell_size, HybridSWAPoolConfigurator.
    """
    if group.kind in ("recurrent", "shared", "none"):
        return 0
    if group.kind == "mla":
        width = latent_width(group, kv_dtype, sparse)
        if kv_dtype == "nvfp4":
            return width // 2 + (group.latent + group.rope_dim) // 16
        return width * _ELEMENTS[kv_dtype]
    heads = heads_per_rank(group.kv_heads, tensor, decode_context)
    dims = (group.head_dim, group.value_dim)
    if kv_dtype == "nvfp4":
        return heads * sum(format_of("nvfp4").vector_bytes(dim) for dim in dims)
    scales = heads * sum(dims) // 32 if kv_dtype == "mxfp8" else 0
    return heads * sum(dims) * _ELEMENTS[kv_dtype] + scales


def _layers_of(
    shape: ModelShape, split: tuple[int, ...], stage: int
) -> tuple[list[LayerGroup], StageLayers, list[LayerGroup]]:
    """The layers of a stage: those kept in full, what is counted of them, and the windows."""
    local = [
        shape.groups[index]
        for at, kept in zip(stage_of_layer(split), shape.order, strict=True)
        if at == stage
        for index in kept
    ]
    windowed = [g for g in local if g.kind in ("sliding", "chunked")]
    full = [g for g in local if g.kind in ("full", "mla", "cross")]
    layers = StageLayers(
        len(full),
        len(windowed),
        sum(1 for g in full if g.indexer_dim),
        max((g.window or g.chunk for g in windowed), default=0),
        any(g.kind != "recurrent" and g.layers for g in shape.groups),
        not windowed and not {"sliding", "chunked"}.isdisjoint(shape.kinds),
    )
    return full, layers, windowed


def cells_of(
    shape: ModelShape,
    settings: SglangSettings,
    layout: Layout,
    split: tuple[int, ...],
    stage: int,
) -> Cells:
    """The bytes of a token on one stage, with the draft layers every stage is charged for.

    EAGLE drafts are taken to have the target's layer: a share of the cell, cut to whole bytes.
    Windows (and chunks) have a pool of their own beside full layers. Source: pool_configurator.py.
    """
    if settings.kv_dtype not in FORMATS:
        what = f"SGLang has no KV cache dtype '{settings.kv_dtype}' that is read here"
        raise ValueProblem(what, f"known: {', '.join(FORMATS)}", "choose one of them")
    full, layers, windowed = _layers_of(shape, split, stage)
    tensor, dcp = layout.tensor, layout.decode_context
    if windowed:
        return _window_cells(full, windowed, settings, tensor, layers)
    sparse = max((g.indexer_dim for g in shape.groups), default=0)
    per_layer = [layer_token_bytes(g, settings.kv_dtype, tensor, dcp, sparse > 0) for g in full]
    key = indexer_bytes(sparse, KvStorage()) if sparse else 0
    plain, drafts = sum(per_layer), settings.eagle_draft_layers
    token = plain + layers.indexed * key * dcp
    if drafts and full:
        token += int(plain * drafts / len(full)) * (dcp if key else 1) + drafts * key * dcp
    return Cells(token, token, 0, layers)


def _window_cells(
    full: list[LayerGroup],
    windowed: list[LayerGroup],
    settings: SglangSettings,
    tensor: int,
    layers: StageLayers,
) -> Cells:
    """Full rows (draft layers among them) and window rows; without full layers one pool."""
    window_layer = layer_token_bytes(windowed[0], settings.kv_dtype, tensor, 1)
    window = window_layer * layers.windowed
    drafts = settings.eagle_draft_layers
    if not full:
        own = window + window_layer * drafts
        return Cells(own, 0, own, layers)
    full_layer = layer_token_bytes(full[0], settings.kv_dtype, tensor, 1)
    rows = full_layer * (layers.full + drafts)
    token = rows + settings.swa_full_tokens_ratio * window
    return Cells(token, rows, window, layers)
