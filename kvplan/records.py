"""The frozen records handed from stage to stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.errors import Place
from kvplan.values.expression import Expression
from kvplan.values.unit import Unit

if TYPE_CHECKING:
    from kvplan.schema import ExperimentFile
    from kvplan.yamltext import Document


@dataclass(frozen=True)
class Experiment:
    """load: what the author asked, with the position of every value."""

    id: str
    path: Path
    project: Path
    document: Document
    spec: ExperimentFile


@dataclass(frozen=True)
class Source:
    """Where a value comes from: title, address, day it was seen."""

    title: str
    url: str = ""
    seen: str = ""

    def __str__(self) -> str:
        return self.title


@dataclass(frozen=True)
class Given:
    """An input value in base units, as it was written, and where it comes from."""

    name: str
    value: Any
    text: str
    place: Place | None
    source: Source | None = None
    owner: str = ""


@dataclass(frozen=True)
class Group:
    """One layer group of a model: its kind and what its catalog entry gives."""

    name: str
    kind: str
    givens: Mapping[str, Given]


@dataclass(frozen=True)
class Binding:
    """Everything given for one cell: inputs by name, the model's groups, titles of entries."""

    givens: Mapping[str, Given] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    shorts: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None


@dataclass(frozen=True)
class NameList:
    """Entries whose short names are listed where a condition holds."""

    entity: str
    bindings: tuple[Any, ...]
    when: Expression


@dataclass(frozen=True)
class Wish:
    """resolve: one value wanted, with how to get it and how to show it."""

    key: str
    title: str
    place: Place
    quantity: str | None = None
    expression: Expression | None = None
    choice: tuple[Expression, str, str] | None = None
    label: str | None = None
    name_list: NameList | None = None
    unit: Unit | None = None
    digits: int | None = None

    @property
    def is_text(self) -> bool:
        """Whether the cell is words, not a number."""
        return bool(self.choice or self.label or self.name_list)

    @property
    def names(self) -> tuple[str, ...]:
        """The names its expression uses."""
        parts = (
            self.expression,
            self.choice[0] if self.choice else None,
            self.name_list.when if self.name_list else None,
        )
        return tuple(name for part in parts if part for name in part.names)

    @property
    def is_broken(self) -> bool:
        """Whether it could not be resolved, which was reported where it stands."""
        return not (self.is_text or self.quantity or self.expression)


@dataclass(frozen=True)
class RowPlan:
    """One row: its address inside the table and, for each column, what is given there."""

    address: str
    label: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class TablePlan:
    """resolve: a table with its columns and all rows bound."""

    name: str
    title: str
    note: str | None
    columns: tuple[Wish, ...]
    rows: tuple[RowPlan, ...]
    axes: tuple[str, ...]


@dataclass(frozen=True)
class ClaimPlan:
    """resolve: a claim with its limits in base units and its derivation parsed."""

    id: str
    says: str
    place: Place
    cell: str | None
    unit: Unit
    limits: Mapping[str, float]
    derivation: Expression | None
    derivation_unit: Unit
    constant: str | None
    over: Mapping[str, tuple[float, float, int, str]]
    holds: bool
    because: str | None
    source: str | None


@dataclass(frozen=True)
class Plan:
    """resolve: every name replaced by what it stands for."""

    experiment: Experiment
    binding: Binding
    values: tuple[tuple[Wish, Binding], ...]
    tables: tuple[TablePlan, ...]
    claims: tuple[ClaimPlan, ...]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """evaluate: one value in base units (or text), with what it was asked by."""

    address: str
    wish: Wish
    binding: Binding
    value: Any

    @property
    def shown_value(self) -> Any:
        """The value in the unit it is shown in, unrounded."""
        from kvplan.values.show import plain

        if self.wish.unit is None or isinstance(self.value, str):
            return self.value
        return plain(self.wish.unit.from_base(self.value))


@dataclass(frozen=True)
class TableResult:
    """evaluate: all cells of one table, row by row."""

    plan: TablePlan
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Results:
    """evaluate: a value for every cell of an experiment."""

    plan: Plan
    values: Mapping[str, Cell]
    tables: Mapping[str, TableResult]


@dataclass(frozen=True)
class Verdict:
    """judge: what became of a claim."""

    plan: ClaimPlan
    holds: bool
    measured: Any
    expected: str
    derived: Any
    reason: str

    @property
    def as_expected(self) -> bool:
        """Whether a claim that should hold does, or one that is refuted does not."""
        return self.holds == self.plan.holds and not self.reason


@dataclass(frozen=True)
class Step:
    """explain: one quantity of a derivation, with the steps it rests on.

    `kind` is input, constant, formula, derived (an expression of the experiment) or text.
    """

    name: str
    symbol: str
    symbols: str
    numbers: str
    shown: str
    doc: str
    source: str
    place: str
    steps: tuple[Step, ...] = ()
    kind: str = "formula"
    url: str = ""

    @property
    def equation(self) -> str:
        """The step in one line: `k = Σ k_g = 327,680 B/token`."""
        return " = ".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """Symbol, formula in symbols, formula in numbers and result, each once."""
        numbers = "" if self.shown.split(" ")[0] == self.numbers else self.numbers
        symbols = "" if self.symbols in (self.symbol, self.shown) else self.symbols
        return tuple(part for part in (self.symbol, symbols, numbers, self.shown) if part)


@dataclass(frozen=True)
class ShownCell:
    """tables: a cell as text, with the address its derivation is found under."""

    text: str
    address: str
    is_text: bool


@dataclass(frozen=True)
class ShownTable:
    """tables: a table as text."""

    name: str
    title: str
    note: str
    headers: tuple[str, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
