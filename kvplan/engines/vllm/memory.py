"""Bytes vLLM leaves for KV on one rank, by release, and the advice it prints after start-up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from kvplan.engines.arithmetic import MIB

BUFFER = 150 * MIB  # what the advice keeps back


@dataclass(frozen=True)
class Ledger:
    """What is taken from the requested share before KV; bytes of one rank.

    `non_torch` is NCCL, the CUDA context and workspaces; `activation_peak` what the profiling run
    takes for a moment. `graphs` is the estimate for CUDA graphs (0.21 and later), `multimodal` the
    reserve for inter-process tensors (0.33).
    """

    total: int
    utilization: Fraction
    weights: int
    non_torch: int
    activation_peak: int
    graphs: int = 0
    multimodal: int = 0


def requested_bytes(total: int, utilization: Fraction, rounds_up: bool = True) -> int:
    """The share of the device the engine asks for; start-up fails when less is free.

    Source: 0.33 v1/worker/utils.py request_memory (rounded up); earlier releases cut.
    """
    share = total * utilization
    return ceil(share) if rounds_up else int(share)


def available_bytes(ledger: Ledger, rounds_up: bool = True) -> int:
    """Bytes left for KV: requested - weights - non-torch - activation peak - graphs - reserve.

    0.33 measures weights and non-torch memory as one difference of free memory. Source:
    v1/worker/gpu_worker.py determine_available_memory; 0.6 worker/worker.py.
    """
    requested = requested_bytes(ledger.total, ledger.utilization, rounds_up)
    taken = ledger.weights + ledger.non_torch + ledger.activation_peak
    return requested - taken - ledger.graphs - ledger.multimodal


def advised_kv_bytes(limit: int, consumed: int, activation_peak: int, graphs: int) -> int:
    """The figure advised for --kv-cache-memory under a limit (requested or free at the start).

    The printed activation peak already holds the graph estimate, so graphs count twice. Source:
    0.33 v1/worker/gpu_worker.py compile_or_warm_up_model.
    """
    return limit - consumed - activation_peak - graphs - BUFFER


def utilization_without_graphs(utilization: float, graphs: int, total: int) -> float:
    """The utilization that older releases would have had to get the same KV.

    Source: the log line on VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS, 0.21 and later.
    """
    return utilization - graphs / total


def utilization_with_graphs(utilization: float, graphs: int, total: int) -> float:
    """The utilization that restores the KV older releases had."""
    return utilization + graphs / total


def batch_defaults(device_gib: float, is_a100: bool, server: bool) -> tuple[int, int]:
    """max_num_batched_tokens and max_num_seqs where they are not given.

    Source: 0.33 engine/arg_utils.py get_batch_defaults.
    """
    if device_gib >= 160:
        return 16384, 1024
    if device_gib >= 70 and not is_a100:
        return (8192 if server else 16384), 1024
    return (2048 if server else 8192), 256
