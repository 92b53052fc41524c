"""The V0 engine of vLLM 0.6: one block size for all layers, GPU and CPU blocks, the watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.engines.arithmetic import ceil_div
from kvplan.engines.parallel import heads_per_rank, stage_layers, stage_of_layer
from kvplan.engines.shape import ATTENTION, LayerGroup, Layout, ModelShape
from kvplan.engines.vllm.caches import element_bytes, refuse_unknown
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.versions import rules_for
from kvplan.errors import ValueProblem

EXPANDED_HEAD = 256  # 0.6 pads the 192 elements of a DeepSeek head; latents are not cached


@dataclass(frozen=True)
class V0Plan:
    """Blocks of one replica; there is no null block, and every block can be handed out."""

    version: str
    outcome: str
    layers_by_stage: tuple[int, ...]
    bytes_per_block_by_stage: tuple[int, ...]
    num_gpu_blocks: int
    num_cpu_blocks: int
    tokens: int
    max_concurrency: float
    error: str = ""

    @property
    def fits(self) -> bool:
        """Whether the engine starts with these arguments."""
        return self.outcome == "ok"


def _layer_block_bytes(group: LayerGroup, settings: VllmSettings, tensor: int) -> int:
    """Bytes of one block in one layer: twice heads x head size, whatever the kind of attention.

    MLA was stored as expanded heads. Source: worker/cache_engine.py get_cache_block_size,
    config.py get_head_size of 0.6.6.post1.
    """
    heads, dim = group.kv_heads, group.head_dim
    if group.kind == "mla":
        if not group.query_heads:
            what = "vLLM 0.6 stores MLA as expanded heads, and query_heads is not given"
            raise ValueProblem(what, "the latent is not cached", "give query_heads")
        heads, dim = group.query_heads, EXPANDED_HEAD
    elif group.kind not in ATTENTION:
        return 0
    element = element_bytes(settings.kv_dtype, settings.model_dtype)
    return 2 * settings.block_size * heads_per_rank(heads, tensor) * dim * element


def plan(
    shape: ModelShape,
    settings: VllmSettings,
    layout: Layout,
    available_bytes: int | Sequence[int],
) -> V0Plan:
    """Blocks, CPU blocks of the swap space, and whether max_model_len fits; smallest rank decides.

    Source: 0.6.6.post1 worker/worker.py determine_num_available_blocks,
    raise_if_cache_size_invalid, executor/distributed_gpu_executor.py.
    """
    rules = rules_for(settings.version)
    refuse_unknown(settings, rules)
    split = stage_layers(shape.depth, layout.pipeline, "vllm-v0", layout.partition)
    sizes = [0] * layout.pipeline
    for stage, kept in zip(stage_of_layer(split), shape.order, strict=True):
        for index in kept:
            sizes[stage] += _layer_block_bytes(shape.groups[index], settings, layout.tensor)
    ranks = layout.tensor * layout.pipeline
    memory = [available_bytes] * ranks if isinstance(available_bytes, int) else available_bytes
    stages = [rank // layout.tensor for rank in range(ranks)]
    pairs = [(m, sizes[s]) for m, s in zip(memory, stages, strict=True) if sizes[s]]
    gpu = min((max(m // size, 0) for m, size in pairs), default=0)
    cpu = min((settings.swap_bytes // size for _, size in pairs), default=0)
    tokens = gpu * settings.block_size
    error = ""
    if pairs and gpu <= 0:
        error = "no_memory"
    elif pairs and settings.max_model_len > tokens:
        error = "max_model_len_does_not_fit"
    return V0Plan(
        rules.version,
        "refused" if error else "ok",
        split,
        tuple(sizes),
        gpu,
        cpu,
        tokens,
        tokens / settings.max_model_len,
        error,
    )


def window_blocks(window: int, block_size: int) -> int:
    """Blocks a request keeps of a window that spans all layers.

    Source: core/block_manager.py max_block_sliding_window.
    """
    return window // block_size + 2


def admission(
    prompt_tokens: int, block_size: int, total: int, free: int, watermark: float = 0.01
) -> str:
    """OK, LATER or NEVER: a prompt may not leave fewer blocks free than the watermark.

    Source: core/block_manager.py can_allocate.
    """
    kept = int(watermark * total)
    needed = ceil_div(prompt_tokens, block_size)
    if total - needed < kept:
        return "NEVER"
    return "OK" if free - needed >= kept else "LATER"
