"""llama.cpp's caches: cells padded to 256, one cache for windows, streams, recurrent state."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.arithmetic import round_up
from kvplan.engines.formats import format_of
from kvplan.engines.shape import LayerGroup, ModelShape
from kvplan.errors import ValueProblem

CELL_STEP = 256


@dataclass(frozen=True)
class LlamaSettings:
    """Command-line arguments: -c, -np, --kv-unified, -ub, -ctk, -ctv, --swa-full, -fa."""

    context: int
    sequences: int = 1
    unified: bool = False
    micro_batch: int = 512
    type_k: str = "f16"
    type_v: str = "f16"
    swa_full: bool = False
    flash_attention: bool = True
    latent_value_copy: bool = False  # older builds keep a V tensor of latent width beside MLA
    rollback_copies: int = 0  # state copies kept for speculative decoding (rs_seq)


@dataclass(frozen=True)
class LlamaPlan:
    """Cells of each cache and bytes by part; cells count one stream."""

    context: int
    context_per_sequence: int
    cells: int
    window_cells: int
    streams: int
    key_bytes: int
    value_bytes: int
    window_key_bytes: int
    window_value_bytes: int
    state_bytes: int

    @property
    def full_bytes(self) -> int:
        """K and V of the layers that keep every token."""
        return self.key_bytes + self.value_bytes

    @property
    def window_bytes(self) -> int:
        """K and V of the window layers."""
        return self.window_key_bytes + self.window_value_bytes

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.full_bytes + self.window_bytes + self.state_bytes


def row_bytes(type_name: str, values: int) -> int:
    """Bytes of a row of values in blocks of the type. Source: ggml_row_size."""
    return format_of(type_name).vector_bytes(values)


def padded_context(context: int, sequences: int, unified: bool) -> tuple[int, int]:
    """Cells in all and for one sequence.

    All in steps of 256; not unified, each sequence gets its share rounded up. Source:
    llama-context.cpp.
    """
    whole = round_up(context, CELL_STEP)
    if unified or sequences == 1:
        return whole, whole
    each = round_up(whole // sequences, CELL_STEP)
    return each * sequences, each


def window_cells(
    base: int, window: int, micro_batch: int, sequences: int, unified: bool, full: bool = False
) -> int:
    """Cells of the window cache: the window of every sequence it serves and one micro-batch.

    Padded to 256 after the minimum with the base. Source: llama-kv-cache-iswa.cpp.
    """
    if full:
        return base
    served = sequences if unified else 1
    return round_up(min(base, window * served + micro_batch), CELL_STEP)


def window_cells_2025(window: int, batch: int, sequences: int, step: int = 32) -> int:
    """Cells of the first window caches (mid 2025): window x sequences + batch + 1, padded to 32.

    Source: ggml-org/llama.cpp pull request 13194.
    """
    return round_up(window * sequences + batch + 1, step)


def _rows(group: LayerGroup, settings: LlamaSettings, widest_value: int) -> tuple[int, int]:
    """Bytes of K and of V of one token in one layer; latents have no V.

    Without flash attention V is transposed and takes the width of the widest layer.
    """
    if group.kind == "mla":
        copy = row_bytes(settings.type_v, group.latent) if settings.latent_value_copy else 0
        return row_bytes(settings.type_k, group.latent + group.rope_dim), copy
    key = row_bytes(settings.type_k, group.kv_heads * group.head_dim)
    width = group.kv_heads * group.value_dim
    value = width if settings.flash_attention else widest_value
    return key, row_bytes(settings.type_v, value)


def state_bytes(shape: ModelShape, sequences: int, copies: int = 0) -> int:
    """Bytes of the recurrent states in fp32: convolution and state of every sequence.

    Each rollback copy keeps one more. Source: llama-memory-recurrent.cpp; LM Studio issue 1862
    prints 598.50 MiB for four sequences of Qwen3.6-27B.
    """
    elements = sum(
        group.layers * (group.state.conv_elements + group.state.state_elements)
        for group in shape.groups
        if group.kind == "recurrent" and group.state is not None
    )
    return elements * 4 * sequences * (1 + copies)


def plan(shape: ModelShape, settings: LlamaSettings) -> LlamaPlan:
    """The caches of one context; nothing is profiled, the context asked for is allocated.

    Chunks keep a window cache like sliding layers do. A cache without unification has one stream
    a sequence. Source: llama-kv-cache.cpp constructor, llama-kv-cache-iswa.cpp.
    """
    if not settings.flash_attention and format_of(settings.type_v).whole:
        what = f"V in {settings.type_v} without flash attention"
        raise ValueProblem(what, "llama.cpp refuses a quantised V then", "turn it on, or use f16")
    context, each = padded_context(settings.context, settings.sequences, settings.unified)
    streams = 1 if settings.unified else settings.sequences
    windows = {g.window or g.chunk for g in shape.groups if g.kind in ("sliding", "chunked")}
    narrow = 0
    if windows:
        narrow = window_cells(
            each,
            max(windows),
            settings.micro_batch,
            settings.sequences,
            settings.unified,
            settings.swa_full,
        )
    widest = max((g.kv_heads * g.value_dim for g in shape.groups), default=0)
    sums = {False: [0, 0], True: [0, 0]}
    for group in shape.groups:
        if group.kind not in ("full", "sliding", "chunked", "mla", "cross"):
            continue
        windowed = group.kind in ("sliding", "chunked")
        key, value = _rows(group, settings, widest)
        sums[windowed][0] += group.layers * key
        sums[windowed][1] += group.layers * value
    full, local = (
        [n * streams * cells for n in sums[w]] for w, cells in ((False, each), (True, narrow))
    )
    return LlamaPlan(
        context,
        each,
        each,
        narrow,
        streams,
        full[0],
        full[1],
        local[0],
        local[1],
        state_bytes(shape, settings.sequences, settings.rollback_copies),
    )
