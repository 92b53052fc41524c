"""Every experiment agrees with its claims, its golden numbers and its committed report."""

from pathlib import Path

import pytest

from kvplan import pipeline

ROOT = Path(__file__).parent.parent
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_nothing_differs_from_what_was_reviewed(path: Path) -> None:
    """check finds no difference."""
    assert pipeline.check(path) == []


def test_no_golden_file_without_its_experiment() -> None:
    """A golden file whose experiment is gone fails."""
    assert pipeline.orphans(ROOT) == []
