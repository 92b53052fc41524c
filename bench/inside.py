"""Sweeps and growth, measured inside one process: arrays against single cells, 1x, 10x, 100x."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvplan import evaluate as evaluating
from kvplan.evaluate import evaluate, sweep_columns
from kvplan.load import load
from kvplan.records import Plan
from kvplan.resolve import resolve
from kvplan.workloads.lengths import draw

HERE = Path(__file__).parent
RUNS = 3


def seconds(action: Callable[[], Any], runs: int = RUNS) -> float:
    """The least time of some runs."""
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def planned(name: str, **changes: int) -> Plan:
    """The plan of an experiment beside this file, with `points` or `requests` changed."""
    text = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
    for key, number in changes.items():
        text = re.sub(rf"\b{key}: \d+", f"{key}: {number}", text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
        return resolve(load(file))


def swept(plan: Plan, points: int) -> tuple[int, float]:
    """Cells and seconds of the plan's first table over an array of lengths."""
    import numpy

    table = plan.tables[0]
    axis = {"context": numpy.linspace(1, 131072, points)}
    binding = table.rows[0].bindings[0]
    outer: dict[str, Any] = {}
    took = seconds(lambda: sweep_columns(table.columns, binding, axis, outer))
    return points * len(table.columns), took


def one_by_one(plan: Plan) -> tuple[int, float]:
    """Cells and seconds of the same table, each cell on its own."""
    before = evaluating.ARRAY_ROWS
    evaluating.ARRAY_ROWS = 10**9
    try:
        took = seconds(lambda: evaluate(plan))
    finally:
        evaluating.ARRAY_ROWS = before
    table = plan.tables[0]
    return len(table.rows) * len(table.columns), took


def sweep_rows() -> list[list[str]]:
    """Rows of the table: a million points, ten thousand, and cell by cell."""
    plan = planned("closed_form", points=1000)
    columns = len(plan.tables[0].columns)
    cells, took = swept(plan, 1_000_000)
    fast = cells / took
    few, few_took = swept(plan, 10_000)
    slow_cells, slow_took = one_by_one(plan)
    ratio = fast / (slow_cells / slow_took)
    return [
        [
            f"sweep, 1,000,000 points x {columns} columns",
            f"{took:.3f} s",
            "",
            f"{fast / 1e6:.1f} M cells/s",
            "5 M cells/s",
        ],
        [
            f"the same, cell by cell ({slow_cells:,} cells)",
            f"{slow_took:.3f} s",
            "",
            f"{slow_cells / slow_took / 1e6:.2f} M cells/s; arrays are {ratio:.0f}x",
            "",
        ],
        [f"sweep, 10,000 points x {columns} columns", f"{few_took:.4f} s", "", "", "0.2 s"],
    ]


def growth_rows() -> list[list[str]]:
    """Rows of the table: whole experiments with more rows, and with more requests."""

    def rows_experiment(points: int) -> Callable[[], Any]:
        return lambda: evaluate(planned("closed_form", points=points))

    def requests_experiment(requests: int) -> Callable[[], Any]:
        def action() -> None:
            draw.cache_clear()
            evaluate(planned("requests", requests=requests))

        return action

    return [
        *_growth("file to results, rows of a table", rows_experiment, 100),
        *_growth("file to results, requests", requests_experiment, 4000),
    ]


def _growth(name: str, make: Callable[[int], Callable[[], Any]], least: int) -> list[list[str]]:
    sizes = [least, 10 * least, 100 * least]
    make(least)()
    times = [seconds(make(size), 3 if size < 10**5 else 1) for size in sizes]
    return [
        [
            f"{name}: {size:,}",
            f"{took:.3f} s",
            "",
            f"{took / times[0]:.1f}x for {size // least}x",
            "",
        ]
        for size, took in zip(sizes, times, strict=True)
    ]
