"""A quantity and settings in, one number and its derivation out: an experiment without a file."""

from __future__ import annotations

from pathlib import Path

from kvplan import schema
from kvplan.errors import KvplanError, Place, Problem, ValueProblem
from kvplan.evaluate import evaluate
from kvplan.records import Cell, Experiment, Results
from kvplan.registry import load_registry
from kvplan.resolve import resolve
from kvplan.values.unit import parse_unit
from kvplan.yamltext import Document, Path_


def calc(quantity: str, settings: tuple[str, ...], unit: str = "") -> tuple[Results, Cell]:
    """The results of the settings ("name=value" words) and the cell of the quantity.

    Raises KvplanError when the quantity is unknown or one of its inputs is not given.
    """
    registry = load_registry()
    if quantity not in registry:
        raise KvplanError(
            Problem(
                f"unknown quantity '{quantity}'",
                "kvplan list formulas names them",
                registry.nearest(quantity),
                Place("QUANTITY", 1, 1, len(quantity), quantity),
            )
        )
    if unit:
        try:
            parse_unit(unit)
        except ValueProblem as error:
            raise KvplanError(error.at(Place("--unit", 1, 1, len(unit), unit))) from None
    spec = schema.ExperimentFile(
        title=quantity,
        question="What is it?",
        uses={},
        values={"answer": schema.Wanted(of=quantity, unit=unit or None)},
    )
    place = (1, 1, len(quantity))
    paths: list[Path_] = [(), ("uses",), ("values",), ("values", "answer")]
    places = dict.fromkeys((*paths, ("values", "answer", "of")), place)
    document = Document("QUANTITY", {}, (quantity,), places, places)
    experiment = Experiment("calc", Path("calc"), Path.cwd(), document, spec)
    results = evaluate(resolve(experiment, settings))
    return results, results.values["answer"]
