"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_store import GoldenTest

EXPERIMENT = """\
title: Pages
question: How many requests fit?
uses: {model: 70b-gqa, kv_dtype: fp16, kv_budget: 172.5 GiB, workload: {lengths: {list: [9 token]}}}
tables:
  sweep:
    rows: {page: [8 token, 16 token]}
    columns: [page, batch: paged_batch]
"""


def pytest_configure(config: Any) -> None:
    """snapshottest's own way of rewriting is closed: numbers are reviewed, then accepted."""
    if config.getoption("snapshot_update"):
        raise pytest.UsageError("golden numbers are not updated by tests; use: kvplan accept FILES")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[GoldenTest]:
    """Compares an experiment's numbers with golden/<id>.json."""
    with GoldenTest(request) as test:
        yield test


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one experiment."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "templates").mkdir()
    (tmp_path / "experiments" / "x.yaml").write_text(EXPERIMENT)
    return tmp_path
