"""The address of a cell, `value` or `table[row].column`, read and looked up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kvplan.errors import ValueProblem, one_of, suggest
from kvplan.records import Cell, Results, TableResult
from kvplan.values.show import plain

_TABLE = re.compile(
    r"(?P<table>[a-z][a-z0-9_]*)\[(?P<row>.*)\]\.(?P<column>[a-z][a-z0-9_]*)", re.DOTALL
)
_CONDITION = re.compile(
    r"\s*(?:(?P<key>[a-z][a-z0-9_]*)\s*=\s*)?"
    r'(?:"(?P<quoted>[^"]*)"|(?P<bare>[^,"\]=\[]+))\s*(?:,|$)'
)


@dataclass(frozen=True)
class Address:
    """A parsed address; `conditions` are (column or axis, text) pairs, key "" for a label."""

    text: str
    name: str
    conditions: tuple[tuple[str, str], ...] = ()
    column: str = ""


def parse_address(text: str) -> Address:
    """An address from text; raises ValueProblem when it has another form."""
    text = text.strip()
    if re.fullmatch(r"[a-z][a-z0-9_]*", text):
        return Address(text, text)
    match = _TABLE.fullmatch(text)
    conditions = []
    position, row = 0, match["row"] if match else ""
    while match and position < len(row):
        found = _CONDITION.match(row, position)
        if not found or found.end() == position:
            match = None
            break
        value = found["quoted"] if found["quoted"] is not None else found["bare"].strip()
        conditions.append((found["key"] or "", value))
        position = found.end()
    if not match or not conditions:
        raise ValueProblem(
            f"'{text}' is not the address of a cell",
            "",
            'write value, table[axis=point].column, table["case"].column or table[0].column',
        )
    return Address(text, match["table"], tuple(conditions), match["column"])


def find_cell(results: Results, text: str) -> Cell:
    """The one cell an address names; raises ValueProblem when there is none, or several."""
    address = parse_address(text)
    if not address.column:
        if address.name not in results.values:
            known = [*results.values, *results.tables]
            raise ValueProblem(
                f"no value '{address.name}'",
                one_of(results.values) or "none",
                suggest(address.name, known),
            )
        return results.values[address.name]
    if address.name not in results.tables:
        raise ValueProblem(
            f"no table '{address.name}'",
            one_of(results.tables) or "none",
            suggest(address.name, results.tables),
        )
    table = results.tables[address.name]
    keys = [wish.key for wish in table.plan.columns]
    if address.column not in keys:
        raise ValueProblem(
            f"no column '{address.column}' in the table '{address.name}'",
            one_of(keys),
            suggest(address.column, keys),
        )
    rows = _matching_rows(table, address)
    if len(rows) != 1:
        labels = one_of([f"[{row.address}]" for row in table.plan.rows])
        many = "no row" if not rows else f"{len(rows)} rows"
        verb = "matches" if not rows else "match"
        raise ValueProblem(f"{many} of '{address.name}' {verb} '{text}'", f"rows: {labels}")
    return table.rows[rows[0]][keys.index(address.column)]


def _matching_rows(table: TableResult, address: Address) -> list[int]:
    first_key, first_value = address.conditions[0]
    if len(address.conditions) == 1 and not first_key and re.fullmatch(r"[0-9]{1,9}", first_value):
        labels = [row.label for row in table.plan.rows]
        if first_value not in labels:
            return [int(first_value)] if int(first_value) < len(labels) else []
    return [
        i
        for i in range(len(table.rows))
        if all(_holds(table, i, key, value) for key, value in address.conditions)
    ]


def _holds(table: TableResult, index: int, key: str, value: str) -> bool:
    row, plan = table.rows[index], table.plan.rows[index]
    if not key:
        # Markdown and a shell may have made one blank of several.
        return plan.label.split() == value.split()
    axes = dict(pair for pair in parse_address(f"t[{plan.address}].c").conditions if pair[0])
    if key in axes and (axes[key] == value or _same_number(axes[key], value)):
        return True
    for cell in row:
        if cell.wish.key == key:
            shown = cell.shown_value
            return str(shown) == value or _same_number(shown, value)
    labels = plan.bindings[0].labels
    return labels.get(key) == value


def _same_number(shown: Any, value: str) -> bool:
    try:
        wanted = float(value.replace(",", ""))
        number = float(plain(shown))
    except (TypeError, ValueError):
        return False
    return abs(number - wanted) <= 1e-9 * max(abs(wanted), 1e-300)
