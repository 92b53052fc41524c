"""Prose with cells in it in, text out; and the digits that were typed instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from kvplan.address import find_cell
from kvplan.errors import Place, Problem, ValueProblem, suggest
from kvplan.markdown import escape
from kvplan.records import Experiment, Results
from kvplan.tables import show_cell
from kvplan.values.show import show_quantity
from kvplan.values.unit import parse_unit
from kvplan.yamltext import Path_

_HOLE = re.compile(r"\{\{\s*(?P<call>.*?)\s*\}\}", re.DOTALL)
_CALL = re.compile(r"(?P<name>[a-z_]+)\((?P<rest>.*)\)", re.DOTALL)
_ARGUMENTS = re.compile(
    r"""\s*(?P<quote>['"])(?P<text>(?:(?!(?P=quote)).)*)(?P=quote)\s*"""
    r"""(?:,\s*unit\s*=\s*(?P<uq>['"])(?P<unit>[^'"]*)(?P=uq)\s*)?"""
    r"""(?:,\s*digits\s*=\s*(?P<digits>\d{1,2})\s*)?""",
    re.DOTALL,
)
# A run with digits that starts with a letter (H100, FP8, PCIe5) is a name, not a number.
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.,%_-]*")
_FORMS = 'write {{ cell("value") }}, {{ cell("table[row].column") }} or {{ cite("text") }}'


def prose_parts(experiment: Experiment) -> Iterator[tuple[Path_, str]]:
    """Every piece of prose of an experiment and where it stands."""
    spec = experiment.spec
    for key in ("question", "text", "takeaway"):
        if getattr(spec, key):
            yield (key,), getattr(spec, key)
    for index, caveat in enumerate(spec.caveats):
        yield ("caveats", index), caveat
    for name, table in spec.tables.items():
        if table.note:
            yield ("tables", name, "note"), table.note
    for index, claim in enumerate(spec.claims):
        if claim.because:
            yield ("claims", index, "because"), claim.because


def fill(text: str, results: Results) -> str:
    """The prose with its cells put in; raises ValueProblem for a hole that names none.

    Holes are {{ cell("address", unit="GiB", digits=1) }} and {{ cite("text with 2023 in it") }};
    nothing else is evaluated, so prose cannot run code.
    """
    filled = _HOLE.sub(lambda match: _hole(match, results), text)
    rest = _HOLE.sub("", text)
    for mark in ("{{", "}}", "{%", "{#"):
        if mark in rest:
            raise _at_hole(ValueProblem(f"'{mark}' is left over in the prose", "", _FORMS), mark)
    return filled


def _at_hole(error: ValueProblem, hole: str) -> ValueProblem:
    error.text, error.offset, error.width = hole, 0, len(hole)
    return error


def _hole(match: re.Match[str], results: Results) -> str:
    try:
        return _filled_hole(match, results)
    except ValueProblem as error:
        raise _at_hole(error, match[0]) from None


def _filled_hole(match: re.Match[str], results: Results) -> str:
    call = _CALL.fullmatch(match["call"])
    arguments = _ARGUMENTS.fullmatch(call["rest"]) if call else None
    if not call or not arguments:
        raise ValueProblem(f"'{match[0]}' cannot be filled in", "", _FORMS)
    if call["name"] == "cite":
        return arguments["text"]
    if call["name"] != "cell":
        raise ValueProblem(
            f"unknown function '{call['name']}' in prose",
            "",
            suggest(call["name"], ("cell", "cite")) or _FORMS,
        )
    cell = find_cell(results, arguments["text"])
    if not arguments["unit"] and not arguments["digits"]:
        return escape(_plural(show_cell(cell), cell.value))
    unit = parse_unit(arguments["unit"]) if arguments["unit"] else cell.wish.unit
    if unit and cell.wish.unit and not unit.same_dimension(cell.wish.unit):
        raise ValueProblem(f"'{cell.address}' is in {cell.wish.unit.text}, not in {unit.text}")
    digits = int(arguments["digits"]) if arguments["digits"] else cell.wish.digits
    return escape(_plural(show_quantity(cell.value, unit, digits), cell.value))


def _plural(text: str, value: Any) -> str:
    """The text of a quantity as a sentence says it: 16 tokens, 1 token."""
    return f"{text}s" if text.endswith(" token") and value != 1 else text


def typed_digits(experiment: Experiment) -> list[Problem]:
    """Numbers typed into prose, which no formula keeps right."""
    found = []
    for path, text in prose_parts(experiment):
        bare = _HOLE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        for run in _RUN.finditer(bare):
            if run[0][0].isdigit():
                found.append(
                    Problem(
                        f"the number '{run[0].rstrip('.,-')}' is typed into prose",
                        "no formula keeps it right when an input changes",
                        'write {{ cell("...") }}, or {{ cite("...") }} for a citation',
                        _inside(experiment, path, text, run.start()),
                    )
                )
    return found


def _inside(experiment: Experiment, path: Path_, text: str, offset: int) -> Place:
    """The place of an offset in a piece of prose, found again in the lines of the file."""
    start = experiment.document.place(path)
    line = text.count("\n", 0, offset)
    wanted = text.split("\n")[line]
    lines = experiment.document.lines
    for number in range(start.line - 1, min(start.line + line + 40, len(lines))):
        token = _RUN.match(text, offset)
        word = token[0] if token else text[offset]
        column = lines[number].find(word)
        if column >= 0 and (wanted.strip() in lines[number] or word in lines[number]):
            return Place(start.path, number + 1, column + 1, len(word), lines[number])
    return start


Filler = Callable[[Path_, str | None], str]


def filler(experiment: Experiment, results: Results, problems: list[Problem]) -> Filler:
    """A function that fills one piece of prose and notes what it could not."""

    def filled(path: Path_, text: Any) -> str:
        place = experiment.document.place(path)
        try:
            return fill(str(text or ""), results)
        except ValueProblem as error:
            # In a block of prose the hole stands some lines below where the block begins.
            lines = experiment.document.lines
            for number in range(place.line, min(place.line + 400, len(lines)) + 1):
                if error.text and error.text in lines[number - 1]:
                    column = place.column if number == place.line else 1
                    place = Place(place.path, number, column, 1, lines[number - 1])
                    break
            problems.append(error.at(place))
            return ""

    return filled
