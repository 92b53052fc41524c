"""The quantities kvplan knows: inputs declared, formulas found by name, all units checked."""

from __future__ import annotations

import graphlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kvplan.errors import ValueProblem, suggest
from kvplan.values.unit import Unit, parse_unit

Function = Callable[..., Any]


@dataclass(frozen=True)
class Formula:
    """One way to compute a quantity: for a kind of layer group, an engine, or given inputs."""

    function: Function
    needs: tuple[str, ...]
    source: str
    doc: str
    kind: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def fits(self, kind: str | None, engine: str | None, given: Collection[str]) -> bool:
        """Whether this variant is the one for a group's kind, an engine and what is given."""
        return (
            (not self.kind or kind in self.kind)
            and (not self.engine or engine in self.engine)
            and all(name in given for name in self.given)
        )

    @property
    def rank(self) -> int:
        """More specific variants win."""
        return bool(self.kind) + bool(self.engine) + len(self.given)


@dataclass(frozen=True)
class Quantity:
    """A named value with its unit: an input, a constant, or something formulas compute."""

    name: str
    unit: Unit
    symbol: str
    doc: str
    source: str = ""
    show: Unit = field(default_factory=Unit)
    digits: int | None = None
    per: str | None = None
    constant: int | float | None = None
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    whole: bool = False
    text: bool = False
    variants: tuple[Formula, ...] = ()

    @property
    def is_input(self) -> bool:
        """Whether the quantity can only be given."""
        return not self.variants and self.constant is None


class Registry:
    """All quantities by name."""

    def __init__(self) -> None:
        self.quantities: dict[str, Quantity] = {}

    def __getitem__(self, name: str) -> Quantity:
        return self.quantities[name]

    def __contains__(self, name: object) -> bool:
        return name in self.quantities

    def declare(
        self,
        name: str,
        unit: str,
        symbol: str,
        doc: str,
        *,
        show: str = "",
        digits: int | None = None,
        **rest: Any,
    ) -> None:
        """Adds an input or a constant; `unit` is a base unit, `show` the one it is printed in."""
        if name in self.quantities:
            raise ValueError(f"quantity {name} is declared twice")
        base = parse_unit(unit)
        self.quantities[name] = Quantity(
            name, base, symbol, doc, digits=digits, show=parse_unit(show or unit), **rest
        )

    def formula(
        self,
        *,
        unit: str,
        symbol: str,
        source: str,
        show: str = "",
        digits: int | None = None,
        per: str | None = None,
        kind: str | tuple[str, ...] = (),
        engine: str | tuple[str, ...] = (),
        given: str | tuple[str, ...] = (),
    ) -> Callable[[Function], Function]:
        """Registers a function as a formula; its parameters are the names it depends on."""

        def register(function: Function) -> Function:
            name = function.__name__
            doc = inspect.getdoc(function) or ""
            made = Formula(
                function,
                tuple(inspect.signature(function).parameters),
                source,
                doc,
                _tuple(kind),
                _tuple(engine),
                _tuple(given),
            )
            known = self.quantities.get(name)
            variants = (*known.variants, made) if known else (made,)
            self.quantities[name] = Quantity(
                name,
                parse_unit(unit),
                symbol,
                known.doc if known else doc,
                known.source if known else source,
                parse_unit(show or unit),
                digits,
                per,
                variants=variants,
            )
            return function

        return register

    def nearest(self, name: str) -> str:
        """A suggestion for an unknown quantity name."""
        return suggest(name, self.quantities)

    def faults(self) -> list[str]:
        """Everything that is wrong with the formulas themselves; empty when all is well."""
        found = [*self._unknown_names(), *self._shared_symbols()]
        return found or [*self._cycles(), *self._wrong_units()]

    def _formulas(self) -> list[tuple[Quantity, Formula]]:
        return [(q, f) for q in self.quantities.values() for f in q.variants]

    def _unknown_names(self) -> list[str]:
        return [
            f"formula {q.name} needs '{need}', which nothing defines; {self.nearest(need)}"
            for q, f in self._formulas()
            for need in f.needs
            if need not in self.quantities
        ] + [f"formula {q.name} has no source" for q, f in self._formulas() if not f.source]

    def _shared_symbols(self) -> list[str]:
        first: dict[str, str] = {}
        return [
            f"{q.name} and {first[q.symbol]} share the symbol '{q.symbol}'"
            for q in self.quantities.values()
            if first.setdefault(q.symbol, q.name) != q.name
        ]

    def _cycles(self) -> list[str]:
        graph: dict[str, set[str]] = {}
        for quantity, formula in self._formulas():
            graph.setdefault(quantity.name, set()).update(formula.needs)
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            return ["formulas need each other: " + " -> ".join(error.args[1])]
        return []

    def _wrong_units(self) -> list[str]:
        found = []
        for quantity, formula in self._formulas():
            units = [self._unit_for_check(name) for name in formula.needs]
            try:
                got = formula.function(*units)
            except Exception as error:
                found.append(f"formula {quantity.name}: {error}")
                continue
            unit = got if isinstance(got, Unit) else Unit()
            if not unit.same_dimension(quantity.unit):
                found.append(
                    f"formula {quantity.name}: declared {quantity.unit.dimension}, "
                    f"computes {unit.dimension}"
                )
            elif unit.spread not in (None, quantity.per):
                found.append(
                    f"formula {quantity.name}: computes one value per {unit.spread}; use total()"
                )
        return found

    def _unit_for_check(self, name: str) -> Unit:
        quantity = self.quantities[name]
        return Unit(quantity.unit.exponents, spread=quantity.per)

    def choose(
        self, quantity: Quantity, kind: str | None, engine: str | None, given: Collection[str]
    ) -> Formula:
        """The variant that fits best; raises ValueProblem when none does."""
        fitting = [f for f in quantity.variants if f.fits(kind, engine, given)]
        if not fitting:
            kinds = sorted({k for f in quantity.variants for k in f.kind})
            engines = sorted({e for f in quantity.variants for e in f.engine})
            known = [f"kinds: {', '.join(kinds)}"] * bool(kinds)
            known += [f"engines: {', '.join(engines)}"] * bool(engines)
            raise ValueProblem(
                f"no formula gives '{quantity.name}' for kind '{kind}', engine '{engine}'",
                "kvplan does not fall back to a formula made for something else",
                "; ".join(known),
            )
        best = max(f.rank for f in fitting)
        first, *others = [f for f in fitting if f.rank == best]
        if others:
            ways = " and ".join("'" + "' + '".join(f.given) + "'" for f in (first, *others))
            raise ValueProblem(
                f"'{quantity.name}' is ambiguous: {ways} are given, each selects a formula",
                "",
                "give the inputs of one of them, or ask for the quantity of one formula by name",
            )
        return first


def _tuple(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


REGISTRY = Registry()
formula = REGISTRY.formula
declare = REGISTRY.declare


@lru_cache(maxsize=1)
def load_registry() -> Registry:
    """All formulas of the shelf, checked; nothing is evaluated when one is at fault."""
    import kvplan.formulas as shelf

    for module in sorted(m.name for m in pkgutil.iter_modules(shelf.__path__)):
        importlib.import_module(f"kvplan.formulas.{module}")
    faults = REGISTRY.faults()
    if faults:
        raise RegistryFault("\n".join(faults))
    return REGISTRY


class RegistryFault(Exception):
    """A formula is wrong: a bug in kvplan, found before any number is computed."""
