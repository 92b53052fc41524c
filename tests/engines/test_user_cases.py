"""What users measured or were told, recomputed by the accounting: one entry for each case."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from kvplan.engines import llama_cpp, tensorrt_llm, tiers
from kvplan.engines.arithmetic import GIB, KIB, MIB
from kvplan.engines.formats import (
    KvStorage,
    format_of,
    latent_bytes,
    layer_token_bytes,
    ratio_to_bf16,
)
from kvplan.engines.length import (
    LengthCurve,
    Term,
    admitted_curve,
    architecture_curve,
    fit_two_points,
    unwindowed_curve,
)
from kvplan.engines.parallel import (
    heads_per_rank,
    kv_copies,
    layer_token_bytes_per_rank,
    spread_token_bytes,
    tokens_by_stage,
)
from kvplan.engines.shape import LayerGroup, Layout, ModelShape, model_shape
from kvplan.engines.vllm.alignment import aligned_block
from kvplan.engines.vllm.grouping import padding_layers
from kvplan.engines.vllm.planning import plan
from kvplan.engines.vllm.prefix import hit_unit, shared_prefix_tokens
from kvplan.engines.vllm.requests import full_blocks, sliding_blocks
from kvplan.engines.vllm.settings import VllmSettings
from tests.engines.research import read_cases

GB = 10**9
BF16 = KvStorage()
Check = tuple[float | Fraction, float, float]  # computed, expected, relative tolerance


def full(layers: int, kv_heads: int, head_dim: int, **fields: int) -> LayerGroup:
    """A group of full layers."""
    return LayerGroup("full", layers, kv_heads=kv_heads, head_dim=head_dim, **fields)


def windows(layers: int, kv_heads: int, head_dim: int, window: int) -> LayerGroup:
    """A group of sliding-window layers."""
    return LayerGroup("sliding", layers, kv_heads=kv_heads, head_dim=head_dim, window=window)


def mla(layers: int, indexer_dim: int = 0) -> LayerGroup:
    """DeepSeek's latent of 512 and rope of 64."""
    return LayerGroup("mla", layers, latent=512, rope_dim=64, indexer_dim=indexer_dim)


def kv(tokens: int, *groups: LayerGroup, storage: KvStorage = BF16) -> int:
    """Bytes of one request in the architecture's own terms."""
    return architecture_curve(model_shape(groups), storage).bytes_at(tokens)


def rate(*groups: LayerGroup, storage: KvStorage = BF16) -> int:
    """Bytes of one token while every layer grows."""
    return sum(g.layers * layer_token_bytes(g, storage) for g in groups)


def pool(shape: ModelShape, gib: float, length: int, batch: int = 8192, **fields: object) -> int:
    """Tokens that vLLM 0.33 prints for a pool."""
    settings = VllmSettings("0.33", 16, length, batch, **fields)  # type: ignore[arg-type]
    return plan(shape, settings, Layout(), int(gib * GIB)).printed_tokens or 0


QWEN3_06B, LLAMA_8B, LLAMA_70B = full(28, 8, 128), full(32, 8, 128), full(80, 8, 128)
LLAMA_405B, QWEN25_7B = full(126, 8, 128), full(28, 4, 128)
GEMMA3_27B = (full(10, 16, 128), windows(52, 16, 128, 1024))
GEMMA4_31B = (full(10, 4, 512), windows(50, 16, 256, 1024))
FP8, FP8_MLA = KvStorage("fp8"), KvStorage("fp8_ds_mla")
MISTRAL_22B, QWEN35_27B = full(56, 8, 128), full(16, 4, 256)

CASES: dict[str, Callable[[], list[Check]]] = {
    "UC-002": lambda: [
        (rate(QWEN3_06B), 114688, 0),
        (pool(model_shape([QWEN3_06B]), 69.66, 4096), 652144, 1e-3),
        (pool(model_shape([QWEN3_06B]), 69.66, 4096) / 4096, 159.21, 5e-4),
    ],
    "UC-005": lambda: [
        (1952 * 16 * rate(LLAMA_8B) / GIB, 3.81, 1e-3),
        (1952 / full_blocks(20000, 16), 1.56, 2e-3),
        (1478 / full_blocks(29000, 16), 0.82, 6e-3),
    ],
    "UC-006": lambda: [
        (rate(QWEN25_7B), 57344, 0),
        (kv(3072, QWEN25_7B) / GIB, 0.164, 1e-3),
    ],
    "UC-008": lambda: [
        (Fraction(rate(full(1, 8, 5120 // 32)), rate(full(1, 8, 128))), 1.25, 0),
        (Fraction(rate(full(1, 8, 2880 // 64)), rate(full(1, 8, 64))), 0.703, 1e-3),
    ],
    "UC-010": lambda: [
        (kv(2048, full(40, 64, 128)) / MIB, 2560, 0),
        (kv(2048, LLAMA_8B) / MIB, 256, 0),
        (kv(2048, LLAMA_70B) / MIB, 640, 0),
    ],
    "UC-011": lambda: [
        (kv(50000, full(60, 8, 128)) / MIB, 11718.75, 0),
        (kv(200000, full(60, 8, 128)) / GIB, 45.776, 1e-4),
    ],
    "UC-012": lambda: [
        (kv(16000, LLAMA_405B) / GIB, 7.69, 1e-4),
        (kv(128000, LLAMA_405B) / GIB, 61.52, 1e-4),
        (kv(128000, full(126, 16, 128)) / GIB, 123.05, 1e-4),
    ],
    "UC-013": lambda: [(Fraction(rate(full(32, 32, 128)), rate(LLAMA_8B)), 4, 0)],
    "UC-014": lambda: [(rate(full(32, 32, 128)), 2 * 32 * 32 * 128 * 2, 0)],
    "UC-016": lambda: [(kv(8192, LLAMA_8B) / GIB, 1.0, 0)],
    "UC-017": lambda: [
        (kv(8192, LLAMA_70B) / GB, 2.684, 1e-3),
        (kv(8192, LLAMA_70B) / GIB, 2.5, 0),
    ],
    "UC-018": lambda: [((80 * GB * 0.9 - 16 * GB - 2 * GIB) // rate(LLAMA_8B), 410858, 1e-5)],
    "UC-020": lambda: [
        (kv(65536, LLAMA_8B) / kv(32768, LLAMA_8B), 2, 0),
        (kv(131072, LLAMA_70B) / kv(131072, LLAMA_8B), 2.5, 0),
    ],
    "UC-021": lambda: [
        (kv(49152, MISTRAL_22B) / MIB, 10752, 0),
        (kv(49152, MISTRAL_22B, storage=KvStorage("q8_0")) / MIB, 5712, 0),
        (ratio_to_bf16(MISTRAL_22B, KvStorage("q8_0")), 0.53125, 0),
    ],
    "UC-022": lambda: [
        (kv(262144, QWEN35_27B) / GIB, 16.0, 0),
        (kv(262144, QWEN35_27B, storage=KvStorage("f16", "q4_0")) / GIB, 10.25, 0),
    ],
    "UC-025": lambda: [(format_of("nvfp4").element, 0.5625, 0)],
    "UC-026": lambda: [
        (rate(full(48, 4, 128), storage=FP8), 49152, 0),
        (kv(221000, full(48, 4, 128), storage=FP8) / GIB, 10.117, 1e-4),
        (int(5.59 * GIB) // rate(full(48, 4, 128), storage=FP8), 122115, 1e-4),
    ],
    "UC-028": lambda: [
        (kv(131072, *GEMMA3_27B) / GIB, 10.406, 1e-4),
        (kv(262144, QWEN35_27B) / GIB, 16.0, 0),
        (kv(163840, mla(61)) / GIB, 10.723, 1e-4),
        (kv(262144, mla(61)) / GIB, 17.156, 1e-4),
        (kv(40960, QWEN3_06B) / GIB, 4.375, 0),
    ],
    "UC-029": lambda: [
        (kv(65536, full(61, 128, 192, value_head_dim=128)) / GIB, 305.0, 0),
        (kv(65536, mla(61), storage=KvStorage("int4")) / GIB, 1.07, 3e-3),
    ],
    "UC-030": lambda: [
        (_llama_mla() / KIB, 129.6, 1e-3),
        (rate(full(61, 128, 192, value_head_dim=128)) / KIB, 4880, 0),
    ],
    "UC-031": lambda: [
        (rate(mla(61, 128), storage=FP8_MLA), 48068, 0),
        (1462784 * rate(mla(61), storage=FP8_MLA) / GIB, 54.52, 5e-4),
        (1462784 * rate(mla(61, 128), storage=FP8_MLA) / GIB, 65.48, 5e-4),
        (975424 * rate(mla(61, 128), storage=FP8_MLA) / GIB, 43.67, 5e-4),
    ],
    "UC-032": lambda: [
        (latent_bytes(512, 64, FP8_MLA), 656, 0),
        (latent_bytes(512, 64, KvStorage("nvfp4_latent_bf16_rope")), 432, 0),
    ],
    "UC-033": lambda: [
        (kv(1048576, full(43, 1, 512)) / GIB, 86.0, 0),  # what the wrong path gives
        (rate(full(43, 1, 512)) / rate(LayerGroup("mla", 43, latent=512)), 2, 0),
    ],
    "UC-035": lambda: [(kv_copies(1, 8), 164.6 / 21.4, 0.05)],
    "UC-036": lambda: [(kv_copies(1, 8), 8, 0), (kv_copies(1, 8, 8), 1, 0)],
    "UC-038": lambda: [(heads_per_rank(2, 4), 1, 0), (kv_copies(2, 4), 2, 0)],
    "UC-039": lambda: [
        (
            Fraction(
                rate(full(64, 8, 128)), 64 * layer_token_bytes_per_rank(full(1, 8, 128), BF16, 4)
            ),
            4.0,
            0,
        )
    ],
    "UC-041": lambda: [
        (kv(262144, full(48, 4, 128)) / GIB, 24.0, 0),
        (262144 * _stages(full(48, 4, 128), 2, (16, 32))[0] / GIB, 8.0, 0),
        (int(3.18 * GIB) // _stages(full(48, 4, 128), 2, (16, 32))[0], 104202, 1e-5),
    ],
    "UC-042": lambda: [
        (rate(full(92, 8, 128)), 376832, 0),
        (202752 * min(_stages(full(92, 8, 128), 8)) / GIB, 8.51, 1e-3),
        (202752 * max(_stages(full(92, 8, 128), 8)) / GIB, 9.28, 1e-3),
    ],
    "UC-044": lambda: [(tokens_by_stage((3 * GIB, 8 * GIB), (16 * KIB, 64 * KIB)), 131072, 0)],
    "UC-045": lambda: [(tokens_by_stage((10 * GIB, 27 * GIB), (KIB, KIB)) / MIB, 10, 0)],
    "UC-046": lambda: [
        (sliding_blocks(16384, 16, 4096, 8192) * 16, 12304, 0),
        (2198512 / (sliding_blocks(16384, 16, 4096, 8192) * 16), 178.68, 1e-4),
    ],
    "UC-047": lambda: [
        (rate(full(18, 8, 64), windows(18, 8, 64, 128)), 73728, 0),
        (architecture_curve(_gpt_oss(18), BF16).growth_at(128), 36864, 0),
        (int(5.38 * GIB) // rate(full(36, 8, 64)), 78384, 1e-3),
    ],
    "UC-048": lambda: [
        (32 * architecture_curve(_gpt_oss(12), BF16).bytes_at(8192) / GIB, 6.094, 1e-4),
        (32 * unwindowed_curve(_gpt_oss(12), BF16).bytes_at(8192) / GIB, 12.0, 0),
    ],
    "UC-049": lambda: [
        (rate(*GEMMA4_31B) / KIB, 880, 0),
        (architecture_curve(model_shape(GEMMA4_31B), BF16).growth_at(1024) / KIB, 80, 0),
        (_longest(GEMMA4_31B, 74.95), 972134, 5e-4),
        (pool(model_shape(GEMMA4_31B), 64.68, 262144), 626950, 1e-5),
    ],
    "UC-050": lambda: [
        # the batch is not given: the measured gain lies between 2,048 and 8,192 tokens in flight
        (_typed_gain(GEMMA4_31B, 8192) < 143327 / 35552 < _typed_gain(GEMMA4_31B, 2048), 1, 0),
        (_typed_gain(GEMMA4_26B, 8192) < 664225 / 171536 < _typed_gain(GEMMA4_26B, 2048), 1, 0),
    ],
    "UC-051": lambda: [
        (llama_cpp.window_cells_2025(1024, 2048, 1), 3104, 0),
        (llama_cpp.window_cells_2025(1024, 512, 1), 1568, 0),
    ],
    "UC-055": lambda: [
        (fit_two_points((50000, 3300 * 50000 + 7), (500000, 3300 * 500000 + 7))[0], 3300, 0),
        (fit_two_points((50000, 3300 * 50000 + 7), (500000, 3300 * 500000 + 7))[1], 7, 0),
    ],
    "UC-056": lambda: [
        (
            398000 * LengthCurve((Term("v4", 3300, fixed=32 * 10**8),)).average_at(50000) / GIB,
            24.95,
            1e-3,
        )
    ],
    "UC-057": lambda: [
        (sliding_blocks(131072, 4, 4, 32768), 8194, 0),
        (sliding_blocks(131072, 4, 4, 32768) * 7 * 32 * KIB / GIB, 1.75, 1e-3),
        (6 * sliding_blocks(131072, 4, 4, 32768) * 7 * 32 * KIB / GIB, 10.5, 1e-3),
    ],
    "UC-058": lambda: [(260006 / 8192, 31.74, 5e-4), (1077542 / 262144, 4.11, 1e-3)],
    "UC-059": lambda: [(aligned_block(262144, 512, 128), 512, 0)],
    "UC-061": lambda: [(9 + padding_layers(9, 5), 10, 0), (9 + padding_layers(9, 3), 9, 0)],
    "UC-062": lambda: [
        (rate(QWEN35_27B, storage=FP8) / KIB, 32, 0),
        (302921 * rate(QWEN35_27B, storage=FP8) / GIB, 9.244, 1e-3),
        (full_blocks(262144, 1568), 168, 0),
    ],
    "UC-064": lambda: [(kv(262144, QWEN35_27B) / MIB, 16384, 0)],
    "UC-066": lambda: [(873 * 14611968 / GIB, 11.88, 1e-3), (873 / 45, 19.4, 1e-3)],
    "UC-067": lambda: [(shared_prefix_tokens(240, 784), 0, 0)],
    "UC-068": lambda: [
        (hit_unit([128, 4096, 32, 2, 8]), 4096, 0),
        (shared_prefix_tokens(2048, hit_unit([128, 4096, 32, 2, 8])), 0, 0),
    ],
    "UC-069": lambda: [
        (hit_unit([128 * 128]), 16384, 0),
        (shared_prefix_tokens(16383, 128 * 128), 0, 0),
        (shared_prefix_tokens(4096, 32 * 128), 4096, 0),
    ],
    "UC-070": lambda: [(shared_prefix_tokens(2501, 800, blocks_dropped=1), 1600, 0)],
    "UC-077": lambda: [
        (rate(full(36, 8, 128)), 147456, 0),
        ((40464 - 36720) * rate(full(36, 8, 128)) / GIB, 0.514, 1e-3),
    ],
    "UC-080": lambda: [
        (5385 * 16 * rate(full(36, 8, 128)) / MIB, 12116.25, 0),
        ((5385 - 1) * 16, 86144, 0),
    ],
    "UC-094": lambda: [
        (tiers.lmcache_tokens(50, 131072), 409600, 0),
        (tiers.lmcache_tokens(50, 32 * layer_token_bytes_per_rank(LLAMA_8B, BF16, 2)), 819200, 0),
        (tiers.lmcache_tokens(50, 32 * layer_token_bytes_per_rank(LLAMA_8B, BF16, 8)), 3276800, 0),
    ],
    "UC-101": lambda: [
        (50 * kv(10000, LLAMA_70B) / GB, 163.84, 0),
        (50 * 10000 * 80 * layer_token_bytes_per_rank(LLAMA_70B, BF16, 2) / GB, 81.92, 0),
    ],
    "UC-104": lambda: [(kv(16384, LLAMA_8B) / GIB, 2.0, 0)],
    "UC-107": lambda: [
        (layer_token_bytes(full(1, 4, 128), BF16) * 16 // 2, 16384, 0),
        (1572864 // (layer_token_bytes(full(1, 4, 128), BF16) * 16 // 2), 96, 0),
    ],
    "UC-112": lambda: [(kv(7500, QWEN25_7B) / 1e6, 430.08, 0)],
    "UC-114": lambda: [
        (kv(131072, LLAMA_70B) / GIB, 40.0, 0),
        (kv(131072, LLAMA_70B, storage=FP8) / GIB, 20.0, 0),
    ],
    "UC-118": lambda: [(_refused_len(), 1, 0)],
    "UC-119": lambda: [
        (llama_cpp.padded_context(16384, 4, unified=True)[0], 16384, 0),
        (4 * llama_cpp.padded_context(16384, 4, unified=True)[1], 65536, 0),
    ],
    "UC-124": lambda: [(50 * kv(600, full(32, 32, 128)) / GIB, 14.65, 1e-3)],
    "UC-126": lambda: [
        (64 * rate(full(32, 32, 128)) / MIB, 32, 0),
        (
            tensorrt_llm.primary_blocks_cpp(
                Fraction("0.9") * Fraction("21.89") * GIB, rate(full(32, 32, 128)), 64
            ),
            631,
            0,
        ),
    ],
    "UC-127": lambda: [
        (69524783104 / rate(full(32, 32, 128)), 132608, 0),
        (kv(5120, full(32, 32, 128)) / GIB, 2.5, 0),
    ],
    "UC-128": lambda: [(tensorrt_llm.max_batch(20 * GIB, rate(LLAMA_8B), 4096, 32), 40, 0.02)],
    "UC-133": lambda: [
        ((4 * 80 * 0.9 - 140) * GB // kv(4096, LLAMA_70B), 110, 0),
        ((4 * 80 - 70) * GB // kv(4096, LLAMA_70B, storage=FP8), 372, 0),
    ],
    "UC-134": lambda: [
        (rate(full(8, 1, 512)) / KIB, 16, 0),
        (rate(full(8, 8, 512)) / KIB, 128, 0),
    ],
    "UC-137": lambda: [
        (rate(QWEN35_27B), 65536, 0),
        (kv(131072, QWEN35_27B) / GIB, 8.0, 0),
        (kv(262144, QWEN35_27B) / GIB, 16.0, 0),
        (kv(10**6, QWEN35_27B) / GB, 65.5, 1e-3),
    ],
    "UC-138": lambda: [
        (tensorrt_llm.primary_blocks(10**12, 819200, 64, max_tokens=24576) * 64, 24576, 0),
        (kv(24576, full(40, 40, 128)) / GIB, 18.75, 0),
    ],
}

GEMMA4_26B = (full(5, 2, 512), windows(25, 8, 256, 1024))

# Marked testable, but not about bytes, tokens, blocks, layouts or formats of the cache.
ELSEWHERE = {
    "weights, activations, graphs and other tenants": (78, 83, 87, 88, 90, 91),
    "a rule of a configuration or a lint": (65, 76, 95, 96, 99, 100, 120, 121, 123),
    "link, disk and transfer times": (108, 109, 111, 113),
    "scheduling over time": (93, 115, 117),
    "labels and weights of other tools": (98, 130, 132, 135),
}


def _stages(group: LayerGroup, stages: int, split: tuple[int, ...] | None = None) -> list[int]:
    layout = Layout(pipeline=stages, partition=split)
    return list(spread_token_bytes(model_shape([group]), BF16, layout).by_stage)


def _gpt_oss(layers: int) -> ModelShape:
    return model_shape([full(layers, 8, 64), windows(layers, 8, 64, 128)])


def _longest(groups: tuple[LayerGroup, ...], gib: float) -> int:
    return architecture_curve(model_shape(groups), BF16).tokens_from_bytes(int(gib * GIB)) or 0


def _llama_mla() -> int:
    settings = llama_cpp.LlamaSettings(256, latent_value_copy=True)
    return llama_cpp.plan(model_shape([mla(61)]), settings).total_bytes // 256


def _typed_gain(groups: tuple[LayerGroup, ...], in_flight: int) -> float:
    """How much longer one pool lasts at 32,768 tokens when windows are groups of their own."""
    shape = model_shape(groups)
    alone = admitted_curve(shape, BF16, in_flight).bytes_at(32768)
    return unwindowed_curve(shape, BF16).bytes_at(32768) / alone


def _refused_len() -> bool:
    """A length above the pool is refused at the start."""
    settings = VllmSettings("0.33", 16, 262144, 8192)
    return not plan(model_shape(GEMMA4_31B), settings, Layout(), 10 * GIB).fits


@pytest.mark.parametrize("name", CASES)
def test_user_case(name: str) -> None:
    """The right answer of the case comes out within the tolerance it states."""
    for computed, expected, tolerance in CASES[name]():
        assert float(computed) == pytest.approx(expected, rel=tolerance or 1e-12), name


def test_every_testable_case_is_answered_or_belongs_elsewhere() -> None:
    """No case of the research data is left out silently."""
    named = set(CASES) | {f"UC-{n:03}" for numbers in ELSEWHERE.values() for n in numbers}
    cases = read_cases("user_cases.jsonl")
    testable = {case["id"] for case in cases if not case["testable"].startswith("no")}
    assert testable - named == set()
