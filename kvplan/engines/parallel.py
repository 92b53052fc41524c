"""What a rank, a replica and a cluster hold: heads split and copied, layers split over stages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from kvplan.engines.arithmetic import ceil_div
from kvplan.engines.formats import KvStorage, indexer_bytes, latent_bytes, pair_bytes
from kvplan.engines.shape import ATTENTION, LayerGroup, Layout, ModelShape, RecurrentState
from kvplan.errors import ValueProblem

Split = Literal["vllm", "vllm-v0", "sglang", "tensorrt-llm"]


def heads_per_rank(kv_heads: int, tensor: int, decode_context: int = 1) -> int:
    """KV heads one tensor-parallel rank stores; at least one, so heads are copied beyond that.

    Source: vLLM config/model.py get_num_kv_heads (decode_context 1), SGLang configs/model_config.py
    get_num_kv_heads, where decode-context ranks count as copies.
    """
    return max(1, kv_heads // (tensor // decode_context))


def kv_copies(kv_heads: int, tensor: int, decode_context: int = 1) -> Fraction:
    """How many times the cluster stores each token: tp / (min(tp, heads) x dcp); MLA has 1 head.

    Source: vLLM docs, context parallel deployment; vLLM issue 34076 and its kin.
    """
    return Fraction(tensor, min(tensor, kv_heads) * decode_context)


def stage_layers(
    layers: int, stages: int, rule: Split = "vllm", partition: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Layers of each pipeline stage by the engine's rule.

    - vllm (0.8 and later), distributed/utils.py get_pp_indices: one extra layer to each of the
      last stages but one, counted backwards; the last stage never gets one.
    - vllm-v0 (0.6.6): the last stage takes all that is left over.
    - sglang 0.5.23, distributed/utils.py: one extra layer to each of the last stages.
    - tensorrt-llm, mapping.py pp_layers: one extra layer to each of the first stages.
    """
    if partition is not None:
        if len(partition) != stages or sum(partition) != layers or min(partition) < 0:
            what = f"the partition {list(partition)} is not {stages} stages of {layers} layers"
            raise ValueProblem(what, "it must name every stage and sum to the layers", "correct it")
        return partition
    base, extra = divmod(layers, stages)
    if rule == "vllm-v0":
        return (*[base] * (stages - 1), base + extra)
    counts = [base] * stages
    first = {"vllm": stages - 1 - extra, "sglang": stages - extra, "tensorrt-llm": 0}[rule]
    for stage in range(first, first + extra):
        counts[stage] += 1
    return tuple(counts)


def stage_of_layer(split: tuple[int, ...]) -> tuple[int, ...]:
    """The stage of every layer in order."""
    return tuple(stage for stage, count in enumerate(split) for _ in range(count))


def state_elements_per_rank(
    state: RecurrentState, tensor: int, speculative_tokens: int = 0
) -> tuple[int, int]:
    """Elements of the convolution and of the recurrent state one rank keeps for a request.

    Channels and heads are split over the ranks. Mamba-2 groups that do not divide by the ranks are
    extended by ranks - groups, i.e. copied. The convolution of all mixers but Mamba-1 also keeps
    the speculative tokens. Source: vLLM model_executor/layers/mamba/mamba_utils.py
    MambaStateShapeCalculator, SGLang configs/mamba_utils.py.
    """
    channels = state.conv_channels
    if state.mixer == "mamba2" and state.groups % tensor:
        channels += 2 * (tensor - state.groups) * state.group_dim
    spare = 0 if state.mixer in ("mamba1", "lightning", "linear") else speculative_tokens
    kept = state.conv_kernel - 1 + spare if state.conv_kernel else 0
    for amount, what in ((channels, "conv channels"), (state.state_elements, "state elements")):
        if amount % tensor:
            problem = f"{amount} {what} do not divide by tensor parallel {tensor}"
            raise ValueProblem(problem, "an engine refuses this split", "choose another size")
    return channels // tensor * kept, state.state_elements // tensor


def layer_token_bytes_per_rank(group: LayerGroup, storage: KvStorage, tensor: int) -> int:
    """Bytes one token keeps in one layer on one rank: heads split, MLA and its indexer copied."""
    if group.kind == "mla":
        indexer = indexer_bytes(group.indexer_dim, storage) if group.indexer_dim else 0
        return latent_bytes(group.latent, group.rope_dim, storage) + indexer
    if group.kind not in ATTENTION:
        return 0
    heads = heads_per_rank(group.kv_heads, tensor)
    return heads * pair_bytes(group.head_dim, group.value_dim, storage)


@dataclass(frozen=True)
class Spread:
    """Bytes of one more token, or of one sequence, seen from three places."""

    worst_rank: int
    replica: int
    cluster: int
    by_stage: tuple[int, ...]


def spread_token_bytes(
    shape: ModelShape, storage: KvStorage, layout: Layout, rule: Split = "vllm"
) -> Spread:
    """Bytes every token costs in all layers, by rank, by replica and by cluster.

    Windows are not applied: this is the rate while every layer still grows. Decode-context ranks
    share the tokens, so a rank holds 1/dcp of them (rounded up); a cluster has `data` replicas.
    """
    split = stage_layers(shape.depth, layout.pipeline, rule, layout.partition)
    by_stage = [0] * layout.pipeline
    for stage, kept in zip(stage_of_layer(split), shape.order, strict=True):
        for index in kept:
            by_stage[stage] += layer_token_bytes_per_rank(
                shape.groups[index], storage, layout.tensor
            )
    for group in shape.draft:
        by_stage[-1] += group.layers * layer_token_bytes_per_rank(group, storage, layout.tensor)
    per_rank = tuple(ceil_div(b, layout.decode_context) for b in by_stage)
    replica = sum(b * layout.tensor // layout.decode_context for b in by_stage)
    return Spread(max(per_rank), replica, replica * layout.data, per_rank)


def tokens_by_stage(
    available_by_stage: tuple[int, ...], token_bytes_by_stage: tuple[int, ...]
) -> int:
    """Tokens a pipeline holds: the stage with least memory for each of its layers decides."""
    pairs = zip(available_by_stage, token_bytes_by_stage, strict=True)
    return min(available // rate for available, rate in pairs if rate)
