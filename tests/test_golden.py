"""Every experiment gives its reviewed numbers, and nothing passes where it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from golden_store import GoldenTest

from kvplan import pipeline
from kvplan.golden import Golden, golden_text, read_golden

ROOT = Path(__file__).parent.parent
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
CELLS: Golden = {
    "count": {"value": 7, "unit": "1"},
    "sweep[page=8].batch": {"value": 2, "unit": "1"},
    "sweep[page=16].waste": {"value": 1.5, "unit": "%"},
}


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_numbers_are_the_reviewed_ones(path: Path, golden: GoldenTest) -> None:
    """The numbers computed now are those of golden/<id>.json."""
    golden.assert_golden(path.stem, pipeline.run(path).golden)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_check_agrees(path: Path) -> None:
    """check finds no claim, golden number or report that differs."""
    assert pipeline.check(path) == []


def test_no_golden_file_without_its_experiment() -> None:
    """A golden file or report whose experiment is gone fails."""
    assert pipeline.orphans(ROOT) == []


def test_an_orphan_is_found(tmp_path: Path) -> None:
    """A golden file left behind is named."""
    for folder in ("experiments", "golden"):
        (tmp_path / folder).mkdir()
    (tmp_path / "golden" / "gone.json").write_text(golden_text("gone", CELLS))
    assert pipeline.orphans(tmp_path) == [
        "golden/gone.json: no experiment of this name; remove the file"
    ]


def test_a_missing_golden_fails_and_is_not_written(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A test run never writes what it should hold against."""
    with pytest.raises(AssertionError, match="no such file(.|\n)*kvplan accept experiments/x.yaml"):
        GoldenTest(request, tmp_path).assert_golden("x", CELLS)
    assert list(tmp_path.iterdir()) == []


def test_a_difference_is_told_cell_by_cell(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Table, row, column, expected, obtained and relative change, and the obtained file."""
    store = tmp_path / "golden" / "x.json"
    store.parent.mkdir()
    store.write_text(golden_text("x", CELLS))
    now = {**CELLS, "sweep[page=16].waste": {"value": 1.8, "unit": "%"}}
    with pytest.raises(AssertionError) as failure:
        GoldenTest(request, tmp_path).assert_golden("x", now)
    lines = str(failure.value).splitlines()
    assert lines[0] == "golden/x.json: 1 of 3 cells differ"
    assert lines[3].split() == ["sweep", "page=16", "waste", "1.5", "%", "1.8", "%", "+20", "%"]
    assert lines[-1] == "after review: kvplan accept experiments/x.yaml"
    assert read_golden(tmp_path / "build/golden/x.json", "") == now
    assert read_golden(store, "") == CELLS


def test_numbers_are_compared_as_numbers(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A change of 1e-10 is none; 3 and 3.0 are one number."""
    store = tmp_path / "golden" / "x.json"
    store.parent.mkdir()
    store.write_text(golden_text("x", CELLS))
    now = {**CELLS, "count": {"value": 7.0000000007, "unit": "1"}}
    GoldenTest(request, tmp_path).assert_golden("x", now)


def checked(project: Path) -> subprocess.CompletedProcess[str]:
    """`kvplan check` of the copy of kvplan that lies in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "kvplan", "check", "experiments/token_cost.yaml"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_one_character_in_a_formula_is_noticed(tmp_path: Path) -> None:
    """A formula changed by one character ends check with 1 and the cells that moved."""
    for folder in ("kvplan", "templates", "experiments", "golden", "reports"):
        leave = shutil.ignore_patterns("__pycache__", "*.html")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=leave)
    assert checked(tmp_path).returncode == 0
    formula = tmp_path / "kvplan" / "formulas" / "attention.py"
    text = formula.read_text()
    assert text.count("return 2 * layers * kv_heads") == 1
    formula.write_text(text.replace("return 2 * layers * kv_heads", "return 3 * layers * kv_heads"))
    result = checked(tmp_path)
    assert result.returncode == 1, result.stderr
    assert "golden/token_cost.json: context_cost[context=1024].kv_per_sequence: " in result.stdout
    assert "+50 %" in result.stdout
