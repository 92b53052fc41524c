"""What must hold for any shape: monotone, exact, never below the architecture, errors named."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.engines import sglang, tensorrt_llm
from kvplan.engines.arithmetic import ceil_div, largest
from kvplan.engines.formats import FORMATS, KvStorage, format_of, pair_bytes, ratio_to_bf16
from kvplan.engines.length import LengthCurve, Term, architecture_curve, regimes_at
from kvplan.engines.parallel import heads_per_rank, kv_copies, spread_token_bytes, stage_layers
from kvplan.engines.sglang_cells import SglangSettings
from kvplan.engines.shape import LayerGroup, Layout, RecurrentState, model_shape
from kvplan.engines.vllm import v0
from kvplan.engines.vllm.planning import longest_fitting_length, plan
from kvplan.engines.vllm.settings import VllmSettings
from kvplan.engines.vllm.versions import rules_for
from kvplan.errors import ValueProblem

VERSIONS = ("0.8", "0.11", "0.20", "0.33")
HEADS = st.sampled_from([1, 2, 4, 8, 16])
counts = st.integers(1, 40)
lengths = st.integers(1, 10**6)


@st.composite
def hybrids(draw: Any) -> Any:
    """Full layers, and perhaps windows with the same heads."""
    heads, dim = draw(HEADS), draw(st.sampled_from([64, 128, 256]))
    groups = [LayerGroup("full", draw(counts), kv_heads=heads, head_dim=dim)]
    if draw(st.booleans()):
        window = draw(st.sampled_from([1, 128, 1024, 4096]))
        sliding = LayerGroup("sliding", draw(counts), kv_heads=heads, head_dim=dim, window=window)
        groups.append(sliding)
    return model_shape(groups)


def made(version: str, length: int, **fields: Any) -> VllmSettings:
    """Settings that differ in length."""
    return VllmSettings(version, 16, length, 2048, **fields)


@given(hybrids(), st.sampled_from(VERSIONS), lengths, st.integers(0, 2**42))
@settings(max_examples=150, deadline=None)
def test_more_memory_never_gives_fewer_blocks(
    shape: Any, version: str, length: int, b: int
) -> None:
    """Blocks, tokens and the verdict only rise with memory."""
    less = plan(shape, made(version, length), Layout(), b)
    more = plan(shape, made(version, length), Layout(), b + 2**30)
    assert more.fits or not less.fits
    if less.fits:
        assert (more.num_gpu_blocks or 0) >= (less.num_gpu_blocks or 0)
        assert (more.printed_tokens or 0) >= (less.printed_tokens or 0)


@given(hybrids(), st.sampled_from(VERSIONS), lengths, st.integers(2**20, 2**42))
@settings(max_examples=150, deadline=None)
def test_a_longer_request_never_needs_less(shape: Any, version: str, length: int, b: int) -> None:
    """Need rises with length at fixed memory, so the engine's search finds the edge."""
    first = plan(shape, made(version, length), Layout(), b)
    second = plan(shape, made(version, length + 1), Layout(), b)
    assert second.needed_bytes_by_stage >= first.needed_bytes_by_stage
    edge = longest_fitting_length(shape, made(version, length), Layout(), b, 10**6)
    assert first.fits == (length <= edge)


@given(hybrids(), lengths, st.integers(1, 2**44))
@settings(max_examples=150, deadline=None)
def test_the_pool_lies_inside_the_memory(shape: Any, length: int, b: int) -> None:
    """One more block would not fit; the blocks themselves do."""
    answer = plan(shape, made("0.33", length), Layout(), b)
    if answer.fits:
        size = answer.bytes_per_block_by_stage[0]
        assert answer.num_gpu_blocks == b // size
        assert answer.needed_bytes_by_stage[0] == answer.blocks_per_request * size
        assert answer.needed_bytes_by_stage[0] <= b - size


@given(hybrids(), lengths, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_more_in_flight_never_needs_less(shape: Any, length: int, batches: int) -> None:
    """Async scheduling can only add window blocks, and only from 0.33 on."""
    one = made("0.33", length, concurrent_batches=batches)
    two = replace(one, concurrent_batches=batches + 1)
    need = [plan(shape, s, Layout(), 2**50).blocks_per_request for s in (one, two)]
    assert need[0] <= need[1]
    old = [replace(s, version="0.20") for s in (one, two)]
    assert len({plan(shape, s, Layout(), 2**50).blocks_per_request for s in old}) == 1


@given(hybrids(), lengths)
@settings(max_examples=100, deadline=None)
def test_regimes_are_ordered(shape: Any, length: int) -> None:
    """The architecture needs least; what windows in full cost more than, a block apart, is most."""
    regimes = regimes_at(shape, KvStorage(), length, 8192, 16)
    straddle = sum(g.layers * g.kv_heads * 4 * g.head_dim * 16 for g in shape.groups)
    assert regimes.architecture <= regimes.admitted <= regimes.unwindowed + straddle


@given(
    st.lists(
        st.builds(
            Term,
            st.just("t"),
            st.integers(0, 10**6),
            st.none() | st.integers(1, 10**5),
            st.integers(0, 10**7),
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 10**13),
)
@settings(max_examples=300)
def test_tokens_from_bytes_is_the_inverse(terms: list[Term], budget: int) -> None:
    """The length found fits, one more token does not; no length is found only where all fit."""
    curve = LengthCurve(tuple(terms))
    found = curve.tokens_from_bytes(budget)
    if found is None:
        assert curve.bytes_at(10**9) <= budget
        return
    assert found == 0 or curve.bytes_at(found) <= budget
    assert curve.bytes_at(found + 1) > budget
    for start, at, growth in curve.pieces:
        assert curve.bytes_at(start) == at
        assert curve.bytes_at(start + 1) - at == growth


@given(st.integers(1, 300), st.integers(1, 16))
def test_stages_hold_every_layer(layers: int, stages: int) -> None:
    """All rules give all layers, in sizes that differ by one (V0: the last takes the rest)."""
    for rule in ("vllm", "sglang", "tensorrt-llm"):
        split = stage_layers(layers, stages, rule)  # type: ignore[arg-type]
        assert sum(split) == layers and max(split) - min(split) <= 1
    assert sum(stage_layers(layers, stages, "vllm-v0")) == layers
    assert stage_layers(layers, stages)[-1] == min(stage_layers(layers, stages))


@given(HEADS, st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_copies_are_what_ranks_store(heads: int, tensor: int) -> None:
    """Ranks times heads of a rank is heads times copies when one divides the other."""
    assert tensor * heads_per_rank(heads, tensor) == heads * kv_copies(heads, tensor)


def test_latents_are_copied_and_heads_are_split() -> None:
    """Rank, replica and cluster of an MLA and a GQA model on eight devices."""
    latent = model_shape([LayerGroup("mla", 61, latent=512, rope_dim=64)])
    spread = spread_token_bytes(latent, KvStorage(), Layout(tensor=8, data=2))
    assert (spread.worst_rank, spread.replica, spread.cluster) == (70272, 562176, 1124352)
    heads = model_shape([LayerGroup("full", 80, kv_heads=8, head_dim=128)])
    spread = spread_token_bytes(heads, KvStorage(), Layout(tensor=8))
    assert (spread.worst_rank, spread.replica) == (40960, 327680)
    spread = spread_token_bytes(latent, KvStorage(), Layout(tensor=8, decode_context=8))
    assert (spread.worst_rank, spread.replica) == (8784, 70272)


@given(st.sampled_from(sorted(FORMATS)), st.sampled_from([64, 96, 128, 256]))
def test_formats_grow_with_the_head(name: str, dim: int) -> None:
    """A vector twice as long takes no more than twice the bytes, and at least its elements."""
    fmt = format_of(name)
    assert fmt.element * dim <= fmt.vector_bytes(dim)
    assert fmt.vector_bytes(dim) < fmt.vector_bytes(2 * dim) <= 2 * fmt.vector_bytes(dim)
    assert pair_bytes(dim, dim, KvStorage(name)) == 2 * fmt.vector_bytes(dim)


def test_ratios_are_exact() -> None:
    """Never the word half: each format's own share at a head of 128."""
    group = LayerGroup("full", 1, kv_heads=8, head_dim=128)
    shares = {n: ratio_to_bf16(group, KvStorage(n)) for n in ("fp8", "nvfp4", "q8_0", "q4_0")}
    expected = {"fp8": (1, 2), "nvfp4": (9, 32), "q8_0": (17, 32), "q4_0": (9, 32)}
    assert shares == {n: Fraction(*share) for n, share in expected.items()}
    assert ratio_to_bf16(group, KvStorage("int4_per_token_head")) == Fraction(17, 64)


def test_big_values_stay_whole() -> None:
    """Block counts beyond 2^53 keep their last digit."""
    shape = model_shape([LayerGroup("full", 1, kv_heads=1, head_dim=1)])
    answer = plan(shape, VllmSettings("0.20", 1, 1, 1), Layout(), 4 * (2**60 + 1) + 3)
    assert answer.num_gpu_blocks == 2**60 + 1
    assert tensorrt_llm.primary_blocks(2**70 + 31, 1) == 2**65
    assert ceil_div(10**30 + 1, 10) == 10**29 + 1


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_largest_finds_the_edge(edge: int, limit: int) -> None:
    """The search gives the edge or the limit, whichever is smaller."""
    assert largest(lambda n: n <= edge, limit) == min(edge, limit)


@given(st.integers(2**28, 2**40), st.sampled_from([1, 16, 64]))
@settings(deadline=None)
def test_sglang_pools_fit(available: int, page: int) -> None:
    """Whole pages, and the bytes of the tokens are there."""
    shape = model_shape([LayerGroup("full", 32, kv_heads=8, head_dim=128)])
    answer = sglang.plan(shape, SglangSettings(4096, page), Layout(), available)
    tokens = answer.max_total_num_tokens or 0
    assert tokens % page == 0
    assert tokens * 131072 <= available < (tokens + page) * 131072


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (lambda: rules_for("0.12.3"), "0.33.0"),
        (lambda: rules_for("latest"), "0.6.6.post1"),
        (lambda: format_of("fp9"), "fp8"),
        (lambda: LayerGroup("mla", 61), "latent"),
        (lambda: LayerGroup("sliding", 4, kv_heads=1, head_dim=64), "window"),
        (lambda: LayerGroup("full", 4, head_dim=64), "kv_heads"),
        (lambda: Layout(tensor=0), "tensor"),
        (lambda: stage_layers(10, 2, "vllm", (4, 5)), "10 layers"),
        (lambda: format_of("q8_0").vector_bytes(80), "80"),
        (lambda: plan(FULL, made("0.20", 9, kv_dtype="int4_per_token_head"), Layout(), 9), "0.20"),
        (lambda: plan(FULL, made("0.33", 9, mamba_cache_mode="all"), Layout(), 9), "all"),
        (lambda: plan(FULL, made("0.33", 9), Layout(tensor=4), [1, 2]), "2 memory figures"),
        (lambda: v0.plan(MLA, made("0.6", 9), Layout(), 9), "query_heads"),
        (lambda: sglang.plan(FULL, SglangSettings(9, version="0.4"), Layout(), 9), "0.4"),
        (lambda: model_shape([LayerGroup("none", 2)], [(0,)]), "names it 1 times"),
    ],
)
def test_a_fault_is_named(fault: Any, named: str) -> None:
    """What is unknown or impossible is refused in words, with what is known."""
    with pytest.raises(ValueProblem) as caught:
        fault()
    told = f"{caught.value.what} {caught.value.why} {caught.value.fix}"
    assert named in told


FULL = model_shape([LayerGroup("full", 2, kv_heads=2, head_dim=64)])
MLA = model_shape([LayerGroup("mla", 2, latent=512, rope_dim=64)])


def test_state_of_a_request_is_fixed() -> None:
    """A state adds the same bytes at every length, and none to growth."""
    state = RecurrentState("mamba2", 300, 4, 1000, groups=1, conv_dtype="bf16", state_dtype="fp32")
    shape = model_shape([*FULL.groups, LayerGroup("recurrent", 3, state=state)])
    with_state, without = (architecture_curve(s, KvStorage()) for s in (shape, FULL))
    assert with_state.fixed == 3 * (600 + 4000)
    for length in (0, 1, 1000):
        assert with_state.bytes_at(length) - without.bytes_at(length) == with_state.fixed
        assert with_state.growth_at(length) == without.growth_at(length)


def test_draft_layers_come_last() -> None:
    """A draft layer adds to the last stage, and to every cell of SGLang's pool."""
    draft = (LayerGroup("full", 1, kv_heads=2, head_dim=64),)
    with_draft = model_shape(FULL.groups, draft=draft)
    answer = plan(with_draft, made("0.33", 100), Layout(pipeline=2), 2**30)
    assert answer.bytes_per_block_by_stage == (8192, 16384)


def test_decode_context_shards_only_attention() -> None:
    """Blocks cover more tokens of attention; windows refuse it, as the engine asserts."""
    windows = LayerGroup("sliding", 2, kv_heads=2, head_dim=64, window=8)
    shape = model_shape([*FULL.groups, windows])
    answer = plan(shape, made("0.33", 100), Layout(tensor=2, decode_context=2), 2**30)
    assert answer.error is not None and answer.error.kind == "dcp_with_sliding_window"
