"""Claims that must not be confirmed by the way they are tried."""

from __future__ import annotations

from pathlib import Path

from kvplan import pipeline

FILE = """\
title: Claims
question: Which are confirmed?
uses:
  model: 70b-gqa
  kv_dtype: fp16
  kv_budget: 12 GiB
  accelerator: h100-sxm-80gb
  context: 100 token
  page: 16 token
values:
  time: {derive: 1 / peak_flops, unit: s/FLOP}
claims:
  - CLAIM
"""
CONTEXT = "context: {from: 1 token, to: 1000 token, points: 10}"
BUDGET = "kv_budget: {from: 1 GiB, to: 1000 GiB, points: 10}"
PAGE = "page: {from: 1 token, to: 16 token, points: 31}"


def verdict(folder: Path, claim: str) -> pipeline.Verdict:
    """What becomes of one claim."""
    file = folder / "claims.yaml"
    file.write_text(FILE.replace("CLAIM", "{id: one, says: so, " + claim + "}"), encoding="utf-8")
    return pipeline.run(file).verdicts[0]


def test_a_ratio_is_not_constant_because_both_sides_grow(tmp_path: Path) -> None:
    """Two inputs are varied in every combination, not side by side."""
    found = verdict(tmp_path, f"constant: replica_share, over: {{{CONTEXT}, {BUDGET}}}")
    assert not found.holds
    assert "100 values of context, kv_budget" in found.expected
    assert verdict(tmp_path, f"constant: kv_per_token, over: {{{CONTEXT}, {PAGE}}}").holds


def test_whole_inputs_are_varied_in_whole_steps(tmp_path: Path) -> None:
    """A page of one and a half tokens is not tried: of a 16th every such page holds the most."""
    found = verdict(tmp_path, f"constant: pool_tokens, over: {{{PAGE}}}")
    assert found.measured == (39321 - 39312) / 39321


def test_a_small_number_is_not_confirmed_by_zero(tmp_path: Path) -> None:
    """A time of 1e-15 s differs from none; only a share may be zero but for rounding."""
    assert verdict(tmp_path, "cell: time, at_most: 1 s/FLOP, derivation: '0'").reason
    exact = "cell: time, at_most: 1 s/FLOP, derivation: 1 / (989.5 * 10**12)"
    assert not verdict(tmp_path, exact).reason
