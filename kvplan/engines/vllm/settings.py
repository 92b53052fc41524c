"""The engine arguments that move vLLM's KV accounting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LAYOUTS = ("LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC")


@dataclass(frozen=True)
class VllmSettings:
    """Engine arguments; a figure that moves an answer has no default here.

    `ssm_dtype` is `mamba_ssm_cache_dtype` ("auto" follows the convolution; empty takes the dtype
    the model publishes). `checkpoint_blocks` is what the release's mixer asks for in "align" mode:
    1 for Mamba-2 in 0.33, where the released planner gives 217 blocks for Nemotron-Nano-9B-v2.
    """

    version: str
    block_size: int
    max_model_len: int
    max_num_batched_tokens: int
    kv_dtype: str = "bf16"
    model_dtype: str = "bf16"
    async_scheduling: bool = False
    model_runner: Literal["v1", "v2"] = "v1"
    concurrent_batches: int | None = None  # given, it is not derived
    hybrid_manager: bool = True
    num_gpu_blocks_override: int | None = None
    auto_fit: bool = False
    kv_cache_layout: str = "LBNHC"
    # recurrent layers
    mamba_cache_mode: Literal["none", "align", "all"] = "none"
    ssm_dtype: str = ""
    speculative_tokens: int = 0
    checkpoint_blocks: int = 0
    checkpoint_alignment: int = 1
    mamba_chunk_size: int = 0
    kernel_block: int = 16
    # windows that keep tokens for several draft modules; encoder-decoder models; 0.6 swap
    extra_retained_tokens: int = 0
    encoder_budget: int = 0
    swap_bytes: int = 0

    @property
    def block_outermost(self) -> bool:
        """Whether a block spans the layers, so that pages of unequal size can be packed."""
        return self.kv_cache_layout.startswith("B")


def max_concurrent_batches(async_scheduling: bool, model_runner: str, pipeline: int) -> int:
    """Batches in flight: one a pipeline stage; async scheduling adds one (V1 runner: only alone).

    Source: vLLM 0.33.0 config/vllm.py VllmConfig.max_concurrent_batches.
    """
    if async_scheduling and model_runner == "v2":
        return pipeline + 1
    if async_scheduling and pipeline <= 1:
        return 2
    return pipeline


def tokens_in_flight(settings: VllmSettings, pipeline: int, every_batch: bool) -> int:
    """Tokens scheduled but not yet settled: a full batch for each batch in flight.

    Source: vLLM 0.33.0 VllmConfig.max_in_flight_tokens; releases before it count one batch.
    """
    if not every_batch:
        return settings.max_num_batched_tokens
    batches = settings.concurrent_batches
    if batches is None:
        batches = max_concurrent_batches(settings.async_scheduling, settings.model_runner, pipeline)
    return batches * settings.max_num_batched_tokens
