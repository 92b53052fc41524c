"""The lengths of a workload in, prompt and output tokens of every request out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from kvplan.errors import ValueProblem, suggest
from kvplan.values.show import parse_quantity
from kvplan.values.unit import parse_unit

MAX_REQUESTS = 5_000_000
_KEYS = {
    "lognormal": ("distribution", "seed", "requests", "prompt", "output"),
    "list": ("list", "output"),
}


@dataclass(frozen=True)
class Lengths:
    """How to get the lengths; `draw` does it, once."""

    prompts: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    seed: int = 0
    requests: int = 0
    prompt: tuple[float, float] = (0.0, 0.0)
    output: tuple[float, float] | None = None

    def series(self, which: str) -> Any:
        """Prompt or output tokens of every request, in order of arrival, as an int64 array."""
        prompts, outputs = draw(self)
        return prompts if which == "prompt_tokens" else outputs

    def summary(self, name: str) -> str:
        """The lengths in words, those of "prompt_tokens" or of "output_tokens"."""
        if self.prompts:
            listed = self.prompts if name == "prompt_tokens" else self.outputs
            shown = ", ".join(f"{n:,}" for n in listed[:6])
            return f"lengths {shown}" + (", ..." if len(listed) > 6 else "")
        text = f"{self.requests:,} requests, prompt lognormal{self.prompt}"
        text += f", output lognormal{self.output}" if self.output else ""
        return f"{text}, seed {self.seed}"


def read_lengths(raw: object) -> Lengths:
    """The `lengths` of a workload; raises ValueProblem for anything it cannot draw."""
    if not isinstance(raw, dict):
        raise ValueProblem(
            "'lengths' must be a mapping", "", "give 'list:' or 'distribution: lognormal'"
        )
    form = "list" if "list" in raw else "lognormal"
    for key in raw:
        if key not in _KEYS[form]:
            raise ValueProblem(
                f"unknown key '{key}' in lengths",
                f"lengths have: {', '.join(_KEYS[form])}",
                suggest(key, _KEYS[form]),
            ).inside(key)
    return _listed(raw) if form == "list" else _lognormal(raw)


def _listed(raw: dict[str, Any]) -> Lengths:
    prompts = _tokens(raw["list"], "list")
    outputs = _tokens(raw["output"], "output") if "output" in raw else (0,) * len(prompts)
    if len(outputs) != len(prompts):
        raise ValueProblem(
            f"{len(prompts)} prompts but {len(outputs)} outputs",
            "",
            "give one output for each prompt",
        ).inside("output")
    return Lengths(prompts, outputs)


def _tokens(raw: object, name: str) -> tuple[int, ...]:
    if not isinstance(raw, list) or not raw:
        raise ValueProblem(f"'{name}' must be a list of lengths, at least one").inside(name)
    found = []
    for index, item in enumerate(raw):
        try:
            found.append(parse_quantity(item, parse_unit("token"), name))
        except ValueProblem as error:
            raise error.inside(name, index) from None
    if any(n < 0 or n != int(n) or n > 10**9 for n in found):
        raise ValueProblem(f"'{name}' must hold whole numbers of tokens from 0 to 10^9").inside(
            name
        )
    return tuple(int(n) for n in found)


def _lognormal(raw: dict[str, Any]) -> Lengths:
    missing = [k for k in ("distribution", "seed", "requests", "prompt") if k not in raw]
    if missing:
        raise ValueProblem(
            f"lengths lack '{missing[0]}'",
            "a draw without it is not repeatable" if missing[0] == "seed" else "",
            f"add {missing[0]}:",
        )
    if raw["distribution"] != "lognormal":
        raise ValueProblem(
            f"unknown distribution '{raw['distribution']}'", "", "known: lognormal; or give a list"
        ).inside("distribution")
    seed, requests = raw["seed"], raw["requests"]
    if not _whole(seed) or not _whole(requests) or requests < 1:
        raise ValueProblem(
            "'seed' and 'requests' must be whole numbers, at least one request"
        ).inside("requests" if _whole(seed) else "seed")
    if requests > MAX_REQUESTS:
        raise ValueProblem(
            f"{requests:,} requests are more than the limit of {MAX_REQUESTS:,}"
        ).inside("requests")
    output = _shape(raw["output"], "output") if "output" in raw else None
    return Lengths((), (), seed, requests, _shape(raw["prompt"], "prompt"), output)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shape(raw: object, name: str) -> tuple[float, float]:
    if not isinstance(raw, dict) or set(raw) != {"mu", "sigma"}:
        raise ValueProblem(
            f"'{name}' needs mu and sigma",
            "the mean and standard deviation of the logarithm of the length",
            f"{name}: {{mu: 6.4, sigma: 1.0}}",
        ).inside(name)
    mu, sigma = raw["mu"], raw["sigma"]
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (mu, sigma)):
        raise ValueProblem(f"mu and sigma of '{name}' must be numbers").inside(name)
    if not (0 <= mu <= 16 and 0 <= sigma <= 4):
        raise ValueProblem(
            f"mu of '{name}' must be 0 to 16 and sigma 0 to 4",
            "longer requests than that are not credible",
        ).inside(name)
    return float(mu), float(sigma)


@lru_cache(maxsize=4)
def draw(lengths: Lengths) -> tuple[Any, Any]:
    """Prompt and output lengths; a request draws its prompt first, then its output."""
    import numpy

    if lengths.prompts:
        return (
            numpy.array(lengths.prompts, dtype=numpy.int64),
            numpy.array(lengths.outputs, dtype=numpy.int64),
        )
    rng = Random(lengths.seed)
    log = rng.lognormvariate
    prompts = numpy.zeros(lengths.requests, dtype=numpy.int64)
    outputs = numpy.zeros(lengths.requests, dtype=numpy.int64)
    for index in range(lengths.requests):
        prompts[index] = int(log(*lengths.prompt))
        if lengths.output:
            outputs[index] = int(log(*lengths.output))
    return prompts, outputs
