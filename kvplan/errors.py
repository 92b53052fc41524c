"""What went wrong, where, why and what to do: the one kind of error a user meets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST = 160
LONGEST_SENTENCE = 400


@dataclass(frozen=True, order=True)
class Place:
    """A position in a text file; line and column count from 1, column 0 means the whole file."""

    path: str
    line: int = 0
    column: int = 0
    width: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


@dataclass(frozen=True)
class Problem:
    """One fault of the input: what it is, why it matters and what the reader can do."""

    what: str
    why: str = ""
    fix: str = ""
    place: Place | None = None

    def __str__(self) -> str:
        what = _printable(self.what)
        lines = [f"{self.place}: {what}" if self.place else what]
        if self.place and self.place.line and self.place.text:
            lines += _excerpt(self.place)
        for part in (self.why, self.fix):
            lines += [f"  {_printable(line)}" for line in part.splitlines()]
        return "\n".join(lines)


class KvplanError(Exception):
    """All problems one stage found; anything else that is raised is a bug in kvplan."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        found = [problems] if isinstance(problems, Problem) else list(problems)
        self.problems = sorted(found, key=lambda p: p.place or Place(""))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ValueProblem(Exception):
    """A fault in one value, raised where its position is not known and given one by the caller."""

    def __init__(self, what: str, why: str = "", fix: str = "", offset: int | None = None) -> None:
        super().__init__(what)
        self.what, self.why, self.fix, self.offset = what, why, fix, offset
        self.text, self.width = "", 1
        self.path: tuple[str | int, ...] = ()

    def inside(self, *path: str | int) -> ValueProblem:
        """The same fault, known to be in a part of the value."""
        self.path = path
        return self

    def at(self, place: Place | None) -> Problem:
        """The problem at a place, narrowed to the part of `text` at fault when that is there."""
        if place and self.offset is not None:
            start = place.text.find(self.text, place.column - 1) if self.text else -1
            if start >= 0:
                column = start + 1 + self.offset
                place = Place(place.path, place.line, column, self.width, place.text)
        return Problem(self.what, self.why, self.fix, place)


def suggest(name: object, known: Iterable[str]) -> str:
    """The sentence that points to the nearest known name, or an empty text."""
    close = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else ""


def one_of(names: Iterable[str], most: int = 12) -> str:
    """A readable list of names, cut where it would not be read any more."""
    ordered = list(names)
    shown = ", ".join(ordered[:most])
    return f"{shown}, ... ({len(ordered)} in all)" if len(ordered) > most else shown


def _printable(text: str) -> str:
    """Text that cannot steer a terminal, cut where nobody reads on."""
    safe = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return safe if len(safe) <= LONGEST_SENTENCE else safe[: LONGEST_SENTENCE - 3] + "..."


def _excerpt(place: Place) -> list[str]:
    number, text, column = str(place.line), place.text, place.column
    if len(text) > LONGEST:
        # The part of a long line around the fault.
        start = max(0, min(column - LONGEST // 2, len(text) - LONGEST))
        text, column = text[start : start + LONGEST], column - start
    text = "".join(c if c.isprintable() else " " for c in text)
    column = min(column, len(text) + 1)
    width = max(1, min(place.width, len(text) + 1 - column))
    return [f"  {number} | {text}", f"  {' ' * len(number)} | {' ' * (column - 1)}{'^' * width}"]
