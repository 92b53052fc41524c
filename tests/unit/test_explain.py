"""A derivation reads as it was written, works out as it is printed, and says where it starts."""

import inspect
import math
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy
import pytest

from kvplan import pipeline
from kvplan.address import find_cell
from kvplan.errors import KvplanError, Place
from kvplan.explain import explain, flat, place_text, tree
from kvplan.records import Cell, Step
from kvplan.values import ops
from kvplan.values.show import show_quantity
from kvplan.values.symbolic import Symbolic, figures, leaf, numbers_of
from kvplan.work import Work

ROOT = Path(__file__).parent.parent.parent
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))


@cache
def run(path: Path) -> pipeline.Run:
    """An experiment, evaluated once for all tests."""
    return pipeline.run(path)


def step_of(name: str, address: str) -> Step:
    """The derivation of one cell of an experiment."""
    results = run(ROOT / "experiments" / f"{name}.yaml").results
    return explain(results)(find_cell(results, address))


def cells(path: Path) -> Iterator[Cell]:
    """Every value and every cell of every table."""
    results = run(path).results
    yield from results.values.values()
    for table in results.tables.values():
        for row in table.rows:
            yield from row


def worked_out(numbers: str) -> float | None:
    """A formula in numbers, worked out as a reader would; None where it names a series."""
    text = numbers.translate(str.maketrans({"·": "*", "−": "-", "⌊": "F(", "⌈": "C("}))
    text = re.sub("[⌋⌉]", ")", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    if re.search(r"[^-+*/()., \dFCe]", re.sub("min|max", "", text)):
        return None
    names = {"F": math.floor, "C": math.ceil, "min": min, "max": max}
    return float(eval(text, {"__builtins__": {}}, names))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_what_is_printed_works_out(path: Path) -> None:
    """The numbers of every step give its result, to the figures that are printed."""
    steps_of, seen, checked = explain(run(path).results), set(), 0
    for cell in cells(path):
        for step in flat(steps_of(cell)):
            if id(step) in seen or not step.numbers:
                continue
            seen.add(id(step))
            value = worked_out(step.numbers)
            result = re.match(r"-?[\d,.]+(?:e[-+]\d+)?", step.shown)
            if value is None or not result:
                continue
            checked += 1
            printed = float(result[0].replace(",", ""))
            # A difference of near equals keeps fewer figures than its parts.
            slack = 1e-8 if " − " in step.numbers else 0.0
            assert math.isclose(value, printed, rel_tol=2e-8, abs_tol=slack), step.equation
    assert checked >= 3


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_a_derivation_says_the_figure_of_its_cell(path: Path) -> None:
    """The result of a derivation has what its cell shows, in the cell's unit and digits."""
    steps_of = explain(run(path).results)
    for cell in cells(path):
        results = re.split(" [=≈] ", steps_of(cell).shown)
        assert show_quantity(cell.value, cell.wish.unit, cell.wish.digits) in results


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_every_input_says_where_it_stands(path: Path) -> None:
    """File and line from the project's folder, and a source for what the catalog gives."""
    steps_of = explain(run(path).results)
    inputs = {s for cell in cells(path) for s in flat(steps_of(cell)) if s.kind == "input"}
    assert inputs
    for step in inputs:
        assert re.fullmatch(r"(experiments|catalog)/[\w./-]+\.yaml:\d+", step.place)
        assert step.source or step.place.startswith("experiments/")
        assert not step.steps and step.doc


def test_factors_stay_in_the_author_s_order() -> None:
    """Symbols, numbers and result, as the formula was written."""
    step = step_of("token_cost", "kv_bytes_per_token").steps[0]
    assert step.equation == "k_g = 2 · L · H_kv · d_h · b = 2 · 80 · 8 · 128 · 2 = 327,680 B/token"


def test_what_is_derived_twice_is_one_step() -> None:
    """Equal derivations are one object, so that a page holds each of them once."""
    results = run(ROOT / "experiments" / "token_cost.yaml").results
    steps_of = explain(results)
    rows = results.tables["context_cost"].rows
    first, second = (steps_of(row[1]) for row in rows[:2])
    assert first is not second
    assert first.steps[1] is second.steps[1]


def test_a_tree_derives_nothing_twice() -> None:
    """On a terminal a step that stands above is named with its result only."""
    lines = tree(step_of("paged_allocation", "page_size_sweep[page=16].internal_waste"))
    assert sum("kv_per_token: k = Σ k_g" in line for line in lines) == 1
    assert any("kv_per_token: k = 327,680 B/token (derived above)" in line for line in lines)
    assert len(lines) < 70


def test_a_tree_is_closed_where_a_step_stands_twice() -> None:
    """Two names for one derivation are two branches; every level that opens closes once."""
    leaf_ = Step("a", "a", "", "", "1", "", "", "", kind="input")
    twice = Step("b", "b", "a", "1", "1", "", "", "", (leaf_,))
    root = Step("c", "c", "b / b", "1 / 1", "1", "", "", "", (twice, twice))
    work = Work(lambda cell: root)
    results = run(EXPERIMENTS[0]).results
    work.add([next(iter(results.tables.values())).rows[0][-1]])
    (derivation,) = work.derivations.values()
    lines = derivation.lines
    assert [line.again for line in lines] == [False, False, False, True]
    assert sum(line.opens for line in lines) == sum(len(line.closes) for line in lines) == 2
    assert tree(root) == ["c = b / b = 1 / 1 = 1", *_expected_tree()]


def _expected_tree() -> list[str]:
    return ["├─ b = a = 1", "│  └─ a = 1", "└─ b = 1 (derived above)"]


MIXED = """
title: Mixed
question: How many bytes?
uses:
  model:
    title: Two kinds of heads
    source: {title: made up}
    groups:
      - {name: wide, kind: full, layers: 10, kv_heads: 8, head_dim: 128 element/token}
      - {name: narrow, kind: full, layers: 52, kv_heads: 2, head_dim: 64 element/token}
  kv_dtype: fp16
values:
  k: kv_per_token
"""


def test_layer_groups_are_added_by_name(tmp_path: Path) -> None:
    """A sum over layer groups is written out, and each group's part bears its name."""
    file = tmp_path / "experiments" / "mixed.yaml"
    file.parent.mkdir()
    file.write_text(MIXED)
    results = pipeline.run(file).results
    step = explain(results)(results.values["k"])
    assert step.equation == "k = Σ k_g = 40,960 + 26,624 = 67,584 B/token"
    assert step.steps[0].shown == "40,960 B/token (wide), 26,624 B/token (narrow)"
    assert [inner.parts[2] for inner in step.steps[0].steps] == [
        "2 · 10 · 8 · 128 · 2",
        "2 · 52 · 2 · 64 · 2",
    ]
    assert "| `L` | `layers` | 10, 52 |" in pipeline.run(file).text("md")


def test_a_chain_too_long_to_explain_is_an_error(tmp_path: Path) -> None:
    """Steps that rest on each other without end in sight are refused."""
    links = [f"  v{i}: {{derive: v{i + 1} + k, unit: B/token}}" for i in range(60)]
    file = tmp_path / "experiments" / "chain.yaml"
    file.parent.mkdir()
    file.write_text("\n".join([MIXED.strip(), *links, "  v60: kv_per_token"]))
    results = pipeline.run(file).results
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        with pytest.raises(KvplanError, match="rests on too many steps"):
            explain(results)(results.values["v0"])
    finally:
        sys.setrecursionlimit(limit)


def test_a_comparison_says_how_it_came_out() -> None:
    """A choice shows its condition in symbols and numbers, and whether it holds."""
    slow = step_of("fetch_or_recompute", "tiers[tier=nvme].verdict").equation
    assert "if B_t > B*, else" in slow and "7,000,000,000 > 9,263,981,714 does not hold" in slow
    listed = step_of("fetch_or_recompute", "configurations[2].viable")
    assert [s.shown.endswith("does not hold") for s in listed.steps] == [False] * 3 + [True] * 2


A, B, C = leaf("a", 3), leaf("b", 4), leaf("c", 5)
N = leaf("n", numpy.arange(1, 8))


@pytest.mark.parametrize(
    ("made", "symbols", "numbers"),
    [
        (ops.floor_div(A, B * C), "⌊a / (b · c)⌋", "⌊3 / (4 · 5)⌋"),
        (ops.ceil_div(A - B, C), "⌈(a − b) / c⌉", "⌈(3 − 4) / 5⌉"),
        (ops.sum_first(N, A) * C, "(Σ first a of n) · c", "(Σ first 3 of [1, …, 7]) · 5"),
        (ops.total(N) * C, "(Σ n) · c", "(Σ [1, …, 7]) · 5"),
        (ops.minimum(A, B + C) * A, "min(a, b + c) · a", "min(3, 4 + 5) · 3"),
        (ops.count(ops.keep_at_most(N, A)), "#(n ≤ a)", "#([1, …, 7] ≤ 3)"),
        (A - (B - C), "a − (b − c)", "3 − (4 − 5)"),
        (A / (B * C) * A, "a / (b · c) · a", "3 / (4 · 5) · 3"),
        (2 * A * B, "2 · a · b", "2 · 3 · 4"),
        (leaf("x", -2.5) * A, "x · a", "(-2.5) · 3"),
    ],
)
def test_brackets_follow_the_order_of_operations(
    made: Symbolic, symbols: str, numbers: str
) -> None:
    """Brackets stand where leaving them out would change the result, and nowhere else."""
    assert (made.symbols, made.numbers) == (symbols, numbers)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3_958_000_000_000_000, "3,958,000,000,000,000"),
        (2 / 3, "0.666666667"),
        (9_263_981_714.29, "9,263,981,714"),
        (0.0000353714, "3.53714e-05"),
        (0, "0"),
        (1e22, "1e+22"),
    ],
)
def test_numbers_are_exact_or_have_nine_figures(value: float, text: str) -> None:
    """Whole numbers keep every digit; others keep enough to be worked with."""
    assert figures(value) == text


def test_a_long_series_is_named_by_its_ends() -> None:
    """Four numbers are listed, more are cut."""
    assert numbers_of([1, 2.5]) == "[1, 2.5]"
    assert numbers_of(range(10_000)) == "[0, …, 9,999]"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("experiments/x.yaml", "experiments/x.yaml:3"),
        ("/home/someone/p/experiments/x.yaml", "experiments/x.yaml:3"),
        ("/etc/elsewhere/x.yaml", "x.yaml:3"),
        ("--set", "--set"),
    ],
)
def test_a_place_does_not_say_whose_machine(path: str, text: str) -> None:
    """Places are told from the project's folder; files outside it by their name."""
    assert place_text(Place(path, 3, 1), Path("/home/someone/p")) == text
