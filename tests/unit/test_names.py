"""What a name in an expression stands for: the row it is in comes before the whole experiment."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from kvplan import pipeline
from kvplan.address import find_cell
from kvplan.explain import explain

USES = """\
title: Names
question: What does a name stand for?
uses:
  model: 70b-gqa
  kv_dtype: fp16
  accelerator: h100-sxm-80gb
  tensor_parallel: 4
  prefix: 4096 token
  tier: object-store
  context: 100 token
"""
TIERS = "[hbm3, pcie5-x16, rdma-200gbe, nvme, object-store]"


def ran(folder: Path, text: str) -> pipeline.Run:
    """An experiment of one, evaluated."""
    file = folder / "names.yaml"
    file.write_text(USES + text, encoding="utf-8")
    return pipeline.run(file)


def test_a_value_does_not_hide_what_a_row_gives(tmp_path: Path) -> None:
    """A value named as the quantity it repeats leaves each row its own."""
    results = ran(
        tmp_path,
        "values: {context: context}\n"
        "tables: {t: {rows: {context: [100 token, 200 token]}, "
        "columns: [{twice: {derive: context * 2, unit: token}}]}}\n",
    ).results
    assert [row[0].value for row in results.tables["t"].rows] == [200, 400]
    assert "200 · 2" in explain(results)(find_cell(results, "t[context=200].twice")).numbers


def test_a_list_of_entries_tries_what_follows_from_each(tmp_path: Path) -> None:
    """A quantity that rests on an entry's input is that of the entry, not of the row's own."""
    when = "break_even_margin > 1"
    results = ran(
        tmp_path,
        "tables: {t: {rows: {tensor_parallel: [1, 4]}, columns: "
        f"[{{viable: {{names: {{entity: tier, among: {TIERS}, when: {when}}}}}}}]}}}}\n",
    ).results
    found = [row[0].value for row in results.tables["t"].rows]
    assert found == ["HBM3, PCIe5 x16, 200 GbE, NVMe", "HBM3, PCIe5 x16, 200 GbE"]
    steps = explain(results)(results.tables["t"].rows[1][0]).steps
    holds = [step.shown.endswith(" holds") for step in steps]
    assert holds == [True, True, True, False, False]


def test_products_of_request_lengths_do_not_wrap_round(tmp_path: Path) -> None:
    """Sums of squares beyond 64 bit stay what they are."""
    lengths = "{title: long, source: made, lengths: {list: [900000000 token]}}"
    results = ran(
        tmp_path,
        f"  workload: {lengths}\n"
        "values: {work: {derive: total(32 * request_tokens * request_tokens), "
        "unit: token*token}}\n",
    ).results
    assert results.values["work"].value == 32 * 900_000_000**2 > 2**63


def test_the_series_of_a_row_go_with_the_row(tmp_path: Path) -> None:
    """Many rows over a long workload take the memory of a few, in the report as well."""
    lengths = "{distribution: lognormal, seed: 1, requests: 50000, prompt: {mu: 6, sigma: 1}}"
    workload = f"  kv_budget: 12 GiB\n  workload: {{title: many, source: s, lengths: {lengths}}}\n"
    rows = "{page: {from: 1 token, to: 80 token, points: 80}}"
    tracemalloc.start()
    try:
        run = ran(tmp_path, f"{workload}tables: {{t: {{rows: {rows}, columns: [paged_batch]}}}}\n")
        run.text("md")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A series of it is 0.4 MB; one kept for each row would be 32 MB and more.
    assert peak < 25_000_000
