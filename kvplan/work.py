"""Cells in, the derivations a report can open out: equal ones once, so many per table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan.explain import StepsOf
from kvplan.records import Cell, Step

MAX_PER_TABLE = 300


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

    def add(self, cells: Iterable[Cell], most: int = MAX_PER_TABLE) -> int:
        """Derives cells until `most` different derivations are made; how many cells are left."""
        left, budget = 0, most
        for cell in cells:
            if cell.wish.label:
                continue
            if budget == 0:
                left += 1
                continue
            step = self.steps_of(cell)
            if id(step) not in self.derivations:
                made = Derivation(f"d{len(self.derivations) + 1}", cell.address, _lines(step))
                self.derivations[id(step)] = made
                budget -= 1
            self.ids[cell.address] = self.derivations[id(step)].id
        return left


def _lines(root: Step) -> tuple[Line, ...]:
    done: set[int] = set()
    found: list[Line] = []

    def visit(step: Step, closes: int) -> None:
        again = bool(step.steps) and id(step) in done
        done.add(id(step))
        opens = bool(step.steps) and not again
        found.append(Line(step, again, opens, () if opens else tuple(range(closes))))
        for inner in step.steps if opens else ():
            visit(inner, closes + 1 if inner is step.steps[-1] else 0)

    visit(root, 0)
    return tuple(found)
