"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from golden_store import GoldenTest


def pytest_configure(config: Any) -> None:
    """snapshottest's own way of rewriting is closed: numbers are reviewed, then accepted."""
    if config.getoption("snapshot_update"):
        raise pytest.UsageError("golden numbers are not updated by tests; use: kvplan accept FILES")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[GoldenTest]:
    """Compares an experiment's numbers with golden/<id>.json."""
    with GoldenTest(request) as test:
        yield test
