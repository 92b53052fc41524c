"""Tables over many numbers are computed on arrays where that means the same, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan import evaluate as evaluating
from kvplan import pipeline
from kvplan.errors import KvplanError

TABLE = """\
title: A table over one axis
question: Do arrays and single numbers agree?
uses:
  model: llama-3.1-8b
  kv_dtype: bf16
  kv_budget: 40 GiB
  page: 16 token
  preemption_onset: 0.85
  preemption_span: 0.15
  preemption_draws: 50
  draw_seed: 3
  prompt_mu: 6.4
  prompt_sigma: 1.0
tables:
  swept:
    rows: {ROWS}
    columns:
      - COLUMN
"""
CONTEXT = "{context: {from: 1 token, to: 131072 token, points: 200}}"
# Beyond 2**53 an array holds every second whole number only.
HUGE = (
    "{kv_budget: [9007199254740993 B, 2e18 B], page: {from: 1 token, to: 5000 token, points: 40}}"
)
OCCUPANCY = "{occupancy: {from: 50 %, to: 99 %, points: 100}}"


def column(folder: Path, rows: str, asked: str) -> list[object]:
    """The column of a table of one."""
    file = folder / "swept.yaml"
    text = TABLE.replace("{ROWS}", rows).replace("COLUMN", asked)
    file.write_text(text, encoding="utf-8")
    return [row[0].value for row in pipeline.run(file).results.tables["swept"].rows]


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        (CONTEXT, "kv_per_sequence"),
        (CONTEXT, "paged_sequences"),
        (CONTEXT, "sequence_waste"),
        (CONTEXT, 'x: {derive: "ceil_div(context, page) * page * kv_per_token / kv_budget"}'),
        (CONTEXT, 'x: {derive: "minimum(context, 4096 * page / 16)", unit: token}'),
        (HUGE, "pool_remainder"),
        (HUGE, "pool_tokens"),
        (OCCUPANCY, "preemption_probability"),
        (OCCUPANCY, "reprefilled_tokens"),
    ],
)
def test_arrays_give_what_single_numbers_give(
    rows: str, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same column, all at once and cell by cell."""
    at_once = column(tmp_path, rows, asked)
    monkeypatch.setattr(evaluating, "ARRAY_ROWS", 10**9)
    assert at_once == column(tmp_path, rows, asked) and len(set(at_once)) > 3


@pytest.mark.parametrize("call", ["total(context)", "sum_first(context, 2)"])
def test_a_row_never_sees_the_other_rows(call: str, tmp_path: Path) -> None:
    """A function of a series is wrong on an axis, however long the axis is."""
    for points in (10, 200):
        rows = CONTEXT.replace("200", str(points))
        with pytest.raises(KvplanError):
            column(tmp_path, rows, f"x: {{derive: {call!r}, unit: token}}")
