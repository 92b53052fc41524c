"""Cells in, the derivations a report can open out: equal ones once, so many per table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan.explain import StepsOf
from kvplan.records import Cell, Step

MAX_PER_TABLE = 300


@dataclass(frozen=True)
class Branch:
    """A step of a derivation with the steps under it; `again` when it stands above in full."""

    step: Step
    again: bool
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Derivation:
    """One derivation, its id in the page, and the first cell it is that of."""

    id: str
    address: str
    root: Branch


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
                made = Derivation(f"d{len(self.derivations) + 1}", cell.address, _branch(step))
                self.derivations[id(step)] = made
                budget -= 1
            self.ids[cell.address] = self.derivations[id(step)].id
        return left


def _branch(step: Step) -> Branch:
    done: set[int] = set()

    def branch(one: Step) -> Branch:
        again = bool(one.steps) and id(one) in done
        done.add(id(one))
        return Branch(one, again, () if again else tuple(branch(inner) for inner in one.steps))

    return branch(step)
