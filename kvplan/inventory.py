"""Derivations in, what they rest on out: every input with its origin, every formula once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kvplan.explain import flat, input_text, place_text
from kvplan.records import Binding, Given, Results, Step
from kvplan.registry import load_registry

MAX_LISTED = 12


@dataclass(frozen=True)
class InputLine:
    """One input of a report: its values from one origin, and where that is."""

    symbol: str
    name: str
    shown: str
    doc: str
    origin: str
    source: str
    url: str


def formulas(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The formulas among derivations, each with the numbers of its first use."""
    found: dict[tuple[str, str], Step] = {}
    for root in steps:
        for step in flat(root):
            if step.kind == "formula" and step.symbols:
                found.setdefault((step.name, step.symbols), step)
    return tuple(found.values())


def inputs(steps: Iterable[Step], results: Results) -> tuple[InputLine, ...]:
    """The inputs among derivations: those of the experiment first, then catalog, constants."""
    used: dict[str, Step] = {}
    for root in steps:
        for step in flat(root):
            if step.kind in ("input", "constant"):
                used.setdefault(step.name, step)
    givens = _givens(results, set(used))
    lines = []
    for name, step in used.items():
        if step.kind == "constant" or name not in givens:
            origin = "a constant" if step.kind == "constant" else step.place
            lines.append(
                InputLine(step.symbol, name, step.shown, step.doc, origin, step.source, step.url)
            )
        else:
            lines += _lines(step, givens[name], results)
    return tuple(_said_once(sorted(lines, key=_rank)))


def _said_once(lines: Iterable[InputLine]) -> Iterator[InputLine]:
    """The lines, with what an input is only where it stands first."""
    seen: set[str] = set()
    for line in lines:
        yield replace(line, doc="") if line.name in seen else line
        seen.add(line.name)


def _rank(line: InputLine) -> int:
    return 2 if line.origin == "a constant" else int("catalog/" in line.origin)


def _givens(results: Results, names: set[str]) -> dict[str, list[Given]]:
    """Every given of some inputs, in the order of values and rows."""
    found: dict[str, dict[int, Given]] = {}
    for binding in _bindings(results):
        for givens in (binding.givens, *(group.givens for group in binding.groups)):
            for name in names & givens.keys():
                found.setdefault(name, {})[id(givens[name])] = givens[name]
    return {name: list(by_id.values()) for name, by_id in found.items()}


def _bindings(results: Results) -> Iterator[Binding]:
    seen: set[int] = set()
    cells = [*results.values.values()]
    rows = (b for t in results.tables.values() for row in t.plan.rows for b in row.bindings)
    lists = (w.name_list for t in results.tables.values() for w in t.plan.columns if w.name_list)
    entries = (binding for names in lists for binding in names.bindings)
    for binding in (*(cell.binding for cell in cells), *rows, *entries):
        if id(binding) not in seen:
            seen.add(id(binding))
            yield binding


def _lines(step: Step, givens: list[Given], results: Results) -> Iterator[InputLine]:
    """One line for each origin an input has; its values there in order."""
    quantity = load_registry()[step.name]
    project = results.plan.experiment.project
    groups: dict[tuple[str, str, str], list[Given]] = {}
    for given in givens:
        file = place_text(given.place, project).partition(":")[0] if given.place else ""
        source = given.source
        key = (file, source.title if source else "", source.url if source else "")
        groups.setdefault(key, []).append(given)
    for (_, source_title, url), same in groups.items():
        if all(isinstance(given.value, (int, float)) for given in same):
            same.sort(key=lambda given: given.value)
        texts = list(dict.fromkeys(input_text(quantity, given) for given in same))
        places = sorted({place_text(given.place, project) for given in same}, key=_line)
        shown = texts[0] if len(texts) == 1 else _listed(texts)
        yield InputLine(step.symbol, step.name, shown, step.doc, _places(places), source_title, url)


def _listed(texts: list[str]) -> str:
    """Several values of an input: as written, the unit once, long lists by their ends."""
    written = [text.split(" = ")[0] for text in texts]
    pairs = [text.partition(" ") for text in written]
    units = {unit for _, _, unit in pairs}
    numbers = [number for number, _, _ in pairs] if len(units) == 1 else written
    if len(numbers) > MAX_LISTED:
        numbers = [*numbers[:3], "…", numbers[-1]]
    unit = f" {units.pop()}" if len(units) == 1 else ""
    count = f" ({len(texts):,} values)" if len(texts) > MAX_LISTED else ""
    return ", ".join(numbers) + unit.rstrip() + count


def _line(place: str) -> int:
    line = place.partition(":")[2]
    return int(line) if line.isdigit() else 0


def _places(places: list[str]) -> str:
    """`file:12, 17` for several lines of one file."""
    file, _, line = places[0].partition(":")
    rest = [place.partition(":")[2] for place in places[1:]]
    shown = rest if len(rest) < 4 else [*rest[:2], "…", rest[-1]]
    return f"{file}:{', '.join([line, *shown])}" if line else file
