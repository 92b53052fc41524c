"""snapshottest with golden/<id>.json as its store: read and compared, never written by a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from snapshottest.module import SnapshotModule
from snapshottest.pytest import PyTestSnapshotTest
from snapshottest.snapshot import Snapshot
from tabulate import tabulate

from kvplan.errors import KvplanError
from kvplan.files import write_whole
from kvplan.golden import Difference, Golden, differences, golden_text, read_golden

ROOT = Path(__file__).parent.parent
CELLS = "cells"


class GoldenModule(SnapshotModule):  # type: ignore[misc]
    """The golden file of one experiment, as snapshottest's module store."""

    def load_snapshots(self) -> Snapshot:
        """The reviewed cells; a file that is missing or not whole fails the test."""
        try:
            return Snapshot({CELLS: read_golden(Path(self.filepath), f"golden/{self.module}.json")})
        except KvplanError as error:
            raise AssertionError(f"{error}\n{accept_line(self.module)}") from None

    def save(self) -> None:
        """Nothing: reviewed numbers change only by `kvplan accept`."""

    def delete_unvisited(self) -> None:
        """Nothing: see save."""


class GoldenTest(PyTestSnapshotTest):  # type: ignore[misc]
    """Holds the numbers of experiments against their golden files."""

    def __init__(self, request: Any, project: Path = ROOT) -> None:
        super().__init__(request)
        self.project, self.id = project, ""

    @property
    def module(self) -> GoldenModule:
        """The golden file of the experiment at hand."""
        path = str(self.project / "golden" / f"{self.id}.json")
        known = SnapshotModule._snapshot_modules if self.project == ROOT else {}
        if path not in known:
            known[path] = GoldenModule(self.id, path)
        module = known[path]
        assert isinstance(module, GoldenModule)
        return module

    @property
    def test_name(self) -> str:
        """The one snapshot of a golden file: all its cells."""
        return CELLS

    @property
    def update(self) -> bool:
        """Never; see GoldenModule.save."""
        return False

    def save_changes(self) -> None:
        """Nothing to save."""

    def assert_golden(self, name: str, cells: Golden) -> None:
        """Fails with what differs unless the cells are the reviewed ones."""
        self.id = name
        self.assert_match(cells, CELLS)

    def assert_value_matches_snapshot(self, test_value: Golden, snapshot_value: Golden) -> None:
        """Compares as numbers; the obtained file is left in build/ for a look."""
        found = differences(snapshot_value, test_value)
        if found:
            obtained = self.project / "build" / "golden" / f"{self.id}.json"
            write_whole(obtained, golden_text(self.id, test_value))
            shown = obtained.relative_to(self.project).as_posix()
            raise AssertionError(
                f"golden/{self.id}.json: {len(found)} of {len(test_value)} cells differ\n"
                f"{difference_table(found)}\nobtained: {shown}\n{accept_line(self.id)}"
            )


def accept_line(name: str) -> str:
    """What to do once the change was reviewed."""
    return f"after review: kvplan accept experiments/{name}.yaml"


def difference_table(found: list[Difference]) -> str:
    """The differences with table, row and column told apart."""
    rows = [(*_parts(d.address), d.expected, d.obtained, d.relative) for d in found]
    headers = ("table", "row", "column", "expected", "obtained", "relative")
    return tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)


def _parts(address: str) -> tuple[str, str, str]:
    table, bracket, rest = address.partition("[")
    row, _, column = rest.rpartition("].")
    return (table, row, column) if bracket else ("", "", address)
