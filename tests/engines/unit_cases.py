"""Unit cases in, answers out: the registry of translations and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.engines.shape import LayerGroup
from kvplan.engines.vllm.settings import VllmSettings

Inputs = Mapping[str, Any]
Answer = dict[str, Any]
_DTYPE = {1: "fp8", 2: "bf16", 4: "fp32"}
LONG = 2**50  # memory that never binds
FAMILIES: dict[str, Callable[[Inputs], Answer]] = {}


def family(*names: str) -> Callable[[Callable[[Inputs], Answer]], Callable[[Inputs], Answer]]:
    """Register the translation of a family."""

    def register(function: Callable[[Inputs], Answer]) -> Callable[[Inputs], Answer]:
        FAMILIES.update(dict.fromkeys(names, function))
        return function

    return register


def settings_of(i: Inputs) -> VllmSettings:
    """Engine arguments of a vLLM case on the newest release."""
    dtype = i.get("cache_dtype") or _DTYPE[i.get("dtype_bytes", i.get("bytes_per_element", 2))]
    if i.get("bytes_per_token") == 656:
        dtype = "fp8_ds_mla"
    auto = str(i.get("max_model_len", "")).startswith("auto")
    length = int(i["max_model_len"].split()[-1]) if auto else i.get("max_model_len", 16)
    return VllmSettings(
        version="0.33",
        block_size=i.get("block_size", 16),
        max_model_len=length,
        max_num_batched_tokens=i.get("max_num_batched_tokens", 16),
        kv_dtype=dtype,
        model_dtype=dtype if dtype in ("bf16", "fp32") else "bf16",
        concurrent_batches=i.get("concurrent_batches", 1),
        hybrid_manager=i.get("hybrid_manager", True),
        num_gpu_blocks_override=i.get("num_gpu_blocks_override"),
        auto_fit=auto,
        mamba_cache_mode=i.get("mamba_cache_mode", "none"),
        checkpoint_blocks=1 if "mamba_layers" in i else 0,
    )


def attention_group(i: Inputs, kind: str, layers: int, head_dim: int = 0) -> LayerGroup:
    """Attention layers; heads of one rank stand for a model on one rank."""
    return LayerGroup(
        kind,  # type: ignore[arg-type]
        layers,
        kv_heads=i.get("kv_heads", i.get("kv_heads_per_rank", i.get("num_kv_heads", 8))),
        head_dim=head_dim or i.get("head_size", i.get("head_size_k", 128)),
        value_head_dim=None if head_dim else i.get("head_size_v"),
        window=i.get("sliding_window", 0) if kind == "sliding" else 0,
        chunk=i.get("attention_chunk_size", 0) if kind == "chunked" else 0,
    )
