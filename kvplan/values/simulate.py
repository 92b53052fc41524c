"""Ops that draw random numbers: each restates a simulation whose seed is an input."""

from __future__ import annotations

from random import Random
from typing import Any

from kvplan.values.ops import op, require_small
from kvplan.values.unit import Unit

MAX_DRAWS = 1_000_000


def _tokens(*units: Unit) -> Unit:
    return Unit((0, 1, 0, 0, 0, 0, 0))


def _plain(*units: Unit) -> Unit:
    return Unit()


@op("draw({0}, {1} times)", _tokens, scalar_only=True)
def reprefilled_in_draws(probability: Any, draws: Any, seed: Any, mu: Any, sigma: Any) -> int:
    """Tokens prefilled again when each draw preempts with a probability.

    A preempted request costs one lognormal(mu, sigma) prompt, cut to whole tokens.
    """
    rng, tokens = Random(int(seed)), 0
    for _ in range(require_small(draws, MAX_DRAWS, "the number of draws")):
        if rng.random() < probability:
            tokens += int(rng.lognormvariate(mu, sigma))
    return tokens


@op("occupancy after round {5} from {0}", _plain, scalar_only=True)
def occupancy_after(start: Any, onset: Any, span: Any, most: Any, step: Any, rounds: Any) -> float:
    """KV occupancy after a number of rounds in which preempted requests come back and add load.

    A round preempts `most` times ((occupancy - onset) / span) squared, capped at `most`; each
    preemption adds `step` to the occupancy, which never exceeds 1.
    """
    return _cascade(start, onset, span, most, step, rounds)[-1][1]


@op("re-prefilled in {5} rounds from {0}", _tokens, scalar_only=True)
def reprefilled_in_rounds(
    start: Any,
    onset: Any,
    span: Any,
    most: Any,
    step: Any,
    rounds: Any,
    seed: Any,
    mu: Any,
    sigma: Any,
) -> int:
    """Tokens prefilled again over the rounds of `occupancy_after`, one prompt a preemption."""
    rng = Random(int(seed))
    preempted = sum(count for count, _ in _cascade(start, onset, span, most, step, rounds))
    require_small(preempted, MAX_DRAWS, "the number of preemptions")
    return sum(int(rng.lognormvariate(mu, sigma)) for _ in range(preempted))


def _cascade(
    start: Any, onset: Any, span: Any, most: Any, step: Any, rounds: Any
) -> list[tuple[int, float]]:
    require_small(most, 10_000, "the preemptions of a round")
    occupancy, history = start, []
    for _ in range(require_small(rounds, 10_000, "the number of rounds")):
        pressure = max(0.0, (occupancy - onset) / span) ** 2
        preempted = int(most * min(1.0, pressure))
        occupancy = min(1.0, occupancy + preempted * step)
        history.append((preempted, occupancy))
    return history or [(0, start)]
