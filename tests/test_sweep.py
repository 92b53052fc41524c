"""`kvplan sweep`: every point of a range, as numbers, as text, and where a condition holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvplan.cli import cli
from kvplan.sweep import MAX_POINTS, sweep

LENGTHS = "context=1 token..2000 token"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The start that `kvplan new` writes: 128 KiB a token, 40 GiB, pages of 16 tokens."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["new", "mine"]).exit_code == 0
    return Path("experiments/mine.yaml")


def run(*words: str) -> Result:
    """The command on that start."""
    return CliRunner().invoke(
        cli, ["sweep", "experiments/mine.yaml", *words], catch_exceptions=False
    )


def test_every_whole_number_is_computed(file: Path) -> None:
    """Tokens come one by one; the values are those of plain arithmetic."""
    found = sweep(file, (), ("kv_per_sequence", "paged_sequences"), LENGTHS)
    assert found.points.tolist() == list(range(1, 2001))
    assert found.columns["kv_per_sequence"].tolist() == [n * 131072 for n in range(1, 2001)]
    pages = 40 * 2**30 // (16 * 131072)
    expected = [pages // -(-n // 16) for n in range(1, 2001)]
    assert found.columns["paged_sequences"].tolist() == expected


def test_a_range_has_at_most_a_million_points(file: Path) -> None:
    """Longer ranges are taken in even steps, from end to end."""
    tokens = sweep(file, (), ("kv_per_sequence",), "context=1 token..2000001 token").points
    sizes = sweep(file, (), ("pool_pages",), "kv_budget=1 GiB..80 GiB").points
    assert len(tokens) <= MAX_POINTS and (tokens == tokens.round()).all()
    assert (tokens[0], tokens[-1], len(sizes)) == (1, 2000001, MAX_POINTS)
    assert (sizes[0], sizes[-1]) == (2**30, 80 * 2**30)


def test_a_condition_that_comes_and_goes_is_seen(file: Path) -> None:
    """Waste of the last page is not monotone in the page; all ranges are found."""
    words = ("--over", "page=1 token..64 token", "--set", "context=1000 token")
    shown = json.loads(run(*words, "--where", "sequence_waste < 0.01", "--json").output)
    small = [p for p in range(1, 65) if 1 - 1000 / (-(-1000 // p) * p) < 0.01]
    ranges = shown["where"]["ranges"]
    assert [p for first, last in ranges for p in range(first, last + 1)] == small
    assert shown["where"]["points"] == len(small) and len(ranges) > 5


def test_the_summary_has_ends_and_extremes(file: Path) -> None:
    """Values are in the unit named, with the point each one is at."""
    shown = json.loads(run("kv_per_sequence", "--over", LENGTHS, "--json").output)
    assert (shown["experiment"], shown["over"]["points"]) == ("mine", 2000)
    part = shown["quantities"]["kv_per_sequence"]
    assert part["unit"] == "GiB"
    assert part["most"] == {"value": 2000 * 128 / 2**20, "at": 2000}
    assert part["least"]["at"] == part["first"]["at"] == 1


def test_the_text_is_for_people(file: Path) -> None:
    """Overrides first, then the range, the quantities, and where the condition holds."""
    words = ("paged_sequences", "--over", LENGTHS, "--set", "kv_budget=20 GiB")
    output = run(*words, "--where", "paged_sequences >= 160").output
    assert output.startswith("Changed on the command line: kv_budget=20 GiB")
    assert "2,000 points of context, 1 to 2,000 token" in output
    assert "paged_sequences >= 160 holds at 1,024 of 2,000 points:\n  1 to 1,024 token" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kv_per_sequenc", "--over", LENGTHS], "did you mean 'kv_per_sequence'?"),
        (["kv_per_sequence", "--over", "context=5"], "is not of the form name=from..to"),
        (["kv_per_sequence", "--over", "contex=1 token..5 token"], "did you mean 'context'?"),
        (["kv_per_sequence", "--over", "context=1..5"], "needs a unit"),
        (["kv_per_sequence", "--over", "context=5 token..1 token"], "the range must rise"),
        (["kv_per_sequence", "--over", "page=0 token..5 token"], "has no meaning over all of"),
        (["kv_per_sequence", "--over", "kv_heads=1..8"], "'kv_heads' cannot be varied"),
        (["sequences_in_budget", "--over", "context=0 token..5 token"], "is not a finite number"),
        (["paged_batch", "--over", "page=1 token..64 token"], "'paged_batch' cannot be swept"),
        (["break_even_bandwidth", "--over", LENGTHS], "is not given"),
        (["--over", LENGTHS, "--where", "kv_per_sequence < 3"], "cannot compare B and 1"),
        (["--over", LENGTHS, "--where", "kv_per_sequence"], "is not a condition"),
        (["--over", LENGTHS, "--where", "total(context) > 1"], "is not a condition"),
        (["--over", LENGTHS, "--where", "__import__('os') > 1"], "unknown function"),
    ],
)
def test_what_cannot_be_swept_is_said(words: list[str], message: str, file: Path) -> None:
    """A fault of the command line has exit code 2 and a way on."""
    result = run(*words)
    assert result.exit_code == 2 and message in result.stderr
