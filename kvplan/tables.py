"""Results in, tables as text out: headers with units, cells in their display unit and digits."""

from __future__ import annotations

from kvplan.markdown import escape
from kvplan.records import Cell, Results, ShownCell, ShownTable, TableResult, Wish
from kvplan.values.show import show_number, show_quantity


def tables(results: Results) -> tuple[ShownTable, ...]:
    """Every table of an experiment, ready for a template."""
    return tuple(_table(table) for table in results.tables.values())


def shown_values(results: Results) -> tuple[tuple[str, ShownCell], ...]:
    """The named values, each with its title."""
    return tuple(
        (cell.wish.title, ShownCell(show_cell(cell), cell.address, cell.wish.is_text))
        for cell in results.values.values()
    )


def show_cell(cell: Cell) -> str:
    """A cell with its unit, as prose prints it."""
    return show_quantity(
        cell.value, None if cell.wish.is_text else cell.wish.unit, cell.wish.digits
    )


def pipe_table(table: ShownTable) -> str:
    """A table in GitHub's pipe form, readable as plain text."""
    from tabulate import tabulate

    return tabulate(
        [[escape(cell.text) for cell in row] for row in table.rows],
        headers=[escape(header) for header in table.headers],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["left" if cell.is_text else "right" for cell in table.rows[0]],
    )


def _table(table: TableResult) -> ShownTable:
    plan = table.plan
    headers = tuple(_header(wish) for wish in plan.columns)
    rows = tuple(
        tuple(ShownCell(_cell_text(cell), cell.address, cell.wish.is_text) for cell in row)
        for row in table.rows
    )
    return ShownTable(plan.name, plan.title, plan.note or "", headers, rows)


def _header(wish: Wish) -> str:
    if wish.is_text or wish.unit is None or wish.unit.text == "1":
        return wish.title
    return f"{wish.title} ({wish.unit.text})"


def _cell_text(cell: Cell) -> str:
    if cell.wish.is_text or cell.wish.unit is None:
        return str(cell.value)
    return show_number(cell.wish.unit.from_base(cell.value), cell.wish.digits)
