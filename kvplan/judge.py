"""Results in, Verdicts out: every claim against its limits and its independent derivation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kvplan.address import find_cell
from kvplan.axes import step_points
from kvplan.errors import KvplanError, ValueProblem
from kvplan.evaluate import sweep, takes_arrays
from kvplan.records import Binding, Cell, ClaimPlan, Results, Verdict
from kvplan.registry import load_registry
from kvplan.values.plain import PLAIN_FUNCTIONS, Series
from kvplan.values.show import show_quantity
from kvplan.values.unit import Unit
from kvplan.workloads.lengths import Lengths

AGREEMENT = 1e-9
CONSTANT = 1e-12


def judge(results: Results) -> tuple[Verdict, ...]:
    """A verdict for every claim; raises KvplanError for claims that cannot be judged."""
    verdicts, problems = [], []
    document = results.plan.experiment.document
    for index, claim in enumerate(results.plan.claims):
        key = "constant" if claim.constant else "cell"
        try:
            cell = None if claim.constant else find_cell(results, claim.cell or "")
            key = "derivation" if cell else key
            verdicts.append(_measured(claim, cell, results) if cell else _constant(claim, results))
        except ValueProblem as error:
            problems.append(error.at(document.place(("claims", index, key))))
    if problems:
        raise KvplanError(problems)
    return tuple(verdicts)


def _measured(claim: ClaimPlan, cell: Cell, results: Results) -> Verdict:
    unit, digits = claim.unit, cell.wish.digits
    holds = all(
        _within(cell.value, key, limit, claim.limits) for key, limit in claim.limits.items()
    )
    derived = _derive(claim, results.plan.binding)
    reason = ""
    # A share can be zero but for rounding; a time or price of 1e-13 is a number like any other.
    rounding = 1e-12 if unit.dimension == "1" else 0.0
    if derived is not None and not math.isclose(
        derived, cell.value, rel_tol=AGREEMENT, abs_tol=rounding
    ):
        reason = (
            f"the formula gives {show_quantity(cell.value, unit)}, the derivation "
            f"{show_quantity(derived, unit)}"
        )
    return Verdict(
        claim, holds, cell.value, _limits_text(claim.limits, unit, digits), derived, reason
    )


def _within(value: float, key: str, limit: float, limits: Mapping[str, float]) -> bool:
    if key == "expect":
        slack = limits.get("within", limits.get("within_share", 0) * abs(limit))
        return abs(value - limit) <= slack + AGREEMENT * max(abs(limit), abs(value))
    bounds = {
        "at_least": value >= limit,
        "at_most": value <= limit,
        "more_than": value > limit,
        "less_than": value < limit,
    }
    return bounds.get(key, True)


def _limits_text(limits: Mapping[str, float], unit: Unit, digits: int | None) -> str:
    words = {"at_least": "≥", "at_most": "≤", "more_than": ">", "less_than": "<"}
    parts = []
    if "expect" in limits:
        text = show_quantity(limits["expect"], unit)
        if "within" in limits:
            text += f" ± {show_quantity(limits['within'], unit)}"
        if "within_share" in limits:
            text += f" ± {limits['within_share'] * 100:g} %"
        parts.append(text)
    parts += [
        f"{sign} {show_quantity(limits[key], unit)}" for key, sign in words.items() if key in limits
    ]
    return " and ".join(parts)


def _derive(claim: ClaimPlan, binding: Binding) -> Any:
    """The claim's own arithmetic, on literals and inputs, in base units."""
    if claim.derivation is None:
        return None

    def lookup(name: str) -> Any:
        places = (binding.givens, *(group.givens for group in binding.groups))
        found = {givens[name].value for givens in places if name in givens}
        if not found:
            raise ValueProblem(f"'{name}' is not given in uses")
        if len(found) > 1:
            raise ValueProblem(
                f"'{name}' differs between the layer groups of the model",
                "",
                "write the numbers of the groups",
            )
        value = found.pop()
        return Series(value.series(name).tolist()) if isinstance(value, Lengths) else value

    value = claim.derivation.evaluate(lookup, PLAIN_FUNCTIONS)
    if not isinstance(value, list) and not _finite(value):
        raise ValueProblem(f"'{claim.derivation.text}' is not a finite number")
    if isinstance(value, list):
        raise ValueProblem(
            f"'{claim.derivation.text}' gives a series, not a number",
            "",
            "sum(), count() or first() it",
        )
    return claim.derivation_unit.to_base(value)


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (OverflowError, TypeError):
        return False


def _constant(claim: ClaimPlan, results: Results) -> Verdict:
    """Whether a quantity stays the same over a sweep of its inputs."""
    import numpy

    registry, name = load_registry(), claim.constant or ""
    if not takes_arrays(registry, {name, *claim.over}):
        raise ValueProblem(
            f"'{name}' cannot be computed over a range at once",
            "it adds up or draws the requests of a workload",
            "show it in a table over the inputs, and claim its cells",
        )
    axes = []
    for axis, bounds in claim.over.items():
        points = numpy.array(step_points(*bounds))
        axes.append(numpy.rint(points) if registry[axis].whole else points)
    # Every combination: along the diagonal a ratio of two inputs would seem constant.
    grids = numpy.meshgrid(*axes, indexing="ij")
    swept = {axis: grid.ravel() for axis, grid in zip(claim.over, grids, strict=True)}
    with numpy.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = numpy.atleast_1d(sweep(results.plan.binding, swept, [name])[0])
    if not numpy.isfinite(values).all():
        raise ValueProblem(f"'{name}' is not a finite number everywhere in the range")
    low, high = float(values.min()), float(values.max())
    spread = (high - low) / max(abs(high), abs(low), 1e-300)
    count = math.prod(len(axis) for axis in axes)
    return Verdict(
        claim,
        bool(spread <= CONSTANT),
        spread,
        f"no change over {count:,} values of {', '.join(swept)}",
        None,
        "",
    )


def derivation_text(verdict: Verdict) -> str:
    """The claim's own arithmetic in words: `2 * 80 * 8 * 128 * 2 = 327,680 B/token`."""
    claim = verdict.plan
    if claim.derivation is None:
        return "evaluated over the whole range" if claim.constant else ""
    return f"{claim.derivation.text} = {show_quantity(verdict.derived, claim.derivation_unit)}"
