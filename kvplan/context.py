"""What every part of resolve works with: the document, the registry and the faults found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kvplan.binding import Binder
from kvplan.errors import Place, Problem, ValueProblem
from kvplan.records import Experiment
from kvplan.registry import load_registry

_T = TypeVar("_T")


class Context:
    """One experiment being resolved; faults are collected, so that all are reported at once."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.spec = experiment, experiment.spec
        self.document = experiment.document
        self.registry = load_registry()
        self.problems: list[Problem] = []
        self.binder = Binder(experiment.project, self.document, self.problems)

    def place(self, *path: str | int, key: bool = False) -> Place:
        """Where a value of the experiment (or its key) stands."""
        return self.document.place(path, key)

    def fail(self, what: str, why: str, fix: str, place: Place) -> None:
        """Notes a fault."""
        self.problems.append(Problem(what, why, fix, place))

    def attempt(self, place: Place, action: Callable[[], _T]) -> _T | None:
        """The value of an action, or nothing when it has a fault, which is noted."""
        try:
            return action()
        except ValueProblem as error:
            self.problems.append(error.at(place))
            return None
