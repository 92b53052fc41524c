"""Cells in, the derivations a report can open out: equal ones once, so many a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan.explain import StepsOf
from kvplan.records import Cell, Step

# What keeps a page with thousands of cells readable in a browser.
MAX_PER_TABLE = 300
MAX_LINES = 4_000


@dataclass(frozen=True)
class Line:
    """A step in the tree of a derivation, written in order of reading.

    It `opens` a level of steps under it, or closes as many levels as `closes` has entries;
    `again` when the step stands above in full.
    """

    step: Step
    again: bool
    opens: bool
    closes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Derivation:
    """One derivation, its id in the page, and the first cell it is that of."""

    id: str
    address: str
    lines: tuple[Line, ...]


class Work:
    """The derivations of a report, collected table by table."""

    def __init__(self, steps_of: StepsOf) -> None:
        self.steps_of = steps_of
        self.ids: dict[str, str] = {}
        self.derivations: dict[int, Derivation] = {}
        self._lines: dict[tuple[int, bool, bool, int], Line] = {}

    def add(self, cells: Iterable[Cell]) -> int:
        """Derives the cells of a table up to the limits; how many cells are left without."""
        left, made, lines = 0, 0, 0
        for cell in cells:
            if cell.wish.label:
                continue
            if made >= MAX_PER_TABLE or lines >= MAX_LINES:
                left += 1
                continue
            step = self.steps_of(cell)
            if id(step) not in self.derivations:
                name = f"d{len(self.derivations) + 1}"
                self.derivations[id(step)] = Derivation(name, cell.address, self._in_order(step))
                made, lines = made + 1, lines + len(self.derivations[id(step)].lines)
            self.ids[cell.address] = self.derivations[id(step)].id
        return left

    def _in_order(self, root: Step) -> tuple[Line, ...]:
        """The steps of a derivation in order of reading; equal lines are one object."""
        done: set[int] = set()
        found: list[Line] = []

        def visit(step: Step, closes: int) -> None:
            again = id(step) in done
            opens = bool(step.steps) and not again
            done.add(id(step))
            key = (id(step), again, opens, 0 if opens else closes)
            if key not in self._lines:
                self._lines[key] = Line(step, again, opens, tuple(range(key[3])))
            found.append(self._lines[key])
            inner = step.steps if opens else ()
            for left, one in zip(range(len(inner) - 1, -1, -1), inner, strict=True):
                visit(one, 0 if left else closes + 1)

        visit(root, 0)
        return tuple(found)
