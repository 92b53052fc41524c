"""Bytes of one request as a function of its length: fixed + piecewise linear, and its inverse."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from kvplan.engines.arithmetic import ceil_div, largest
from kvplan.engines.formats import KvStorage, format_of, layer_token_bytes
from kvplan.engines.shape import LayerGroup, ModelShape


@dataclass(frozen=True)
class Term:
    """Part of the bytes: `rate` a token up to `limit` tokens (None: all of them), plus `fixed`."""

    name: str
    rate: int
    limit: int | None = None
    fixed: int = 0

    def tokens(self, length: int) -> int:
        """Tokens that are kept of a request of that length."""
        return length if self.limit is None else min(length, self.limit)


@dataclass(frozen=True)
class LengthCurve:
    """Bytes one request of n tokens keeps; it never falls, and its slope never rises."""

    terms: tuple[Term, ...]

    @cached_property
    def fixed(self) -> int:
        """Bytes kept whatever the length: states and encoder outputs."""
        return sum(term.fixed for term in self.terms)

    @cached_property
    def pieces(self) -> tuple[tuple[int, int, int], ...]:
        """(first token count, bytes there, bytes a further token) of every linear piece."""
        breaks = sorted({0} | {t.limit for t in self.terms if t.limit is not None and t.rate})
        return tuple((n, self.bytes_at(n), self.growth_at(n)) for n in breaks)

    def bytes_at(self, length: int) -> int:
        """Bytes a request of that length keeps."""
        return self.fixed + sum(term.rate * term.tokens(length) for term in self.terms)

    def growth_at(self, length: int) -> int:
        """Bytes the next token adds to a request of that length."""
        return sum(t.rate for t in self.terms if t.limit is None or length < t.limit)

    def average_at(self, length: int) -> Fraction:
        """Bytes of the request for each of its tokens, the fixed part spread over them."""
        return Fraction(self.bytes_at(length), length)

    def tokens_from_bytes(self, budget: int) -> int | None:
        """The longest request that fits, solved piece by piece; None when every length fits.

        0 when not even the fixed part and one token fit.
        """
        if budget < self.bytes_at(1):
            return 0
        starts = [at for _, at, _ in self.pieces]
        first, at, growth = self.pieces[max(bisect_right(starts, budget) - 1, 0)]
        if growth == 0:
            return None
        return first + (budget - at) // growth

    def charged_at(self, length: int, block: int) -> int:
        """Bytes in whole blocks of `block` tokens in every layer; the fixed part is not rounded."""
        blocks = sum(t.rate * ceil_div(t.tokens(length), block) for t in self.terms)
        return self.fixed + blocks * block

    def tokens_charged(self, budget: int, block: int, limit: int) -> int:
        """The longest request up to `limit` whose whole blocks fit in the budget; 0 if none."""
        return largest(lambda n: self.charged_at(n, block) <= budget, limit)


def state_bytes(group: LayerGroup, default_dtype: str = "bf16") -> int:
    """Bytes one request keeps in one recurrent layer of the whole model."""
    if group.state is None:
        return 0
    conv = format_of(group.state.conv_dtype or default_dtype)
    state = format_of(group.state.state_dtype or group.state.conv_dtype or default_dtype)
    return conv.vector_bytes(group.state.conv_elements) + state.vector_bytes(
        group.state.state_elements
    )


def _terms(
    groups: Iterable[LayerGroup], storage: KvStorage, in_flight: int | None, windows: bool
) -> tuple[Term, ...]:
    terms = []
    for group in groups:
        rate = group.layers * layer_token_bytes(group, storage)
        name = group.name or group.kind
        if group.kind in ("shared", "none") or not group.layers:
            continue
        if group.kind == "recurrent":
            fixed = group.layers * state_bytes(group, storage.unquantised)
            terms.append(Term(name, 0, fixed=fixed))
        elif group.kind == "cross":
            terms.append(Term(name, 0, fixed=rate * group.encoder_length))
        elif group.kind in ("sliding", "chunked") and windows:
            terms.append(Term(name, rate, _kept(group, in_flight)))
        else:
            terms.append(Term(name, rate))
    return tuple(terms)


def _kept(group: LayerGroup, in_flight: int | None) -> int:
    """Tokens a window or chunk keeps: the architecture's, or the engine's with those in flight."""
    if in_flight is None:
        return group.window or group.chunk
    return (group.window - 1 if group.window else group.chunk) + in_flight


def architecture_curve(shape: ModelShape, storage: KvStorage) -> LengthCurve:
    """The least the architecture needs: windows and chunks keep their own size and no more.

    Between chunk boundaries chunked layers need less; their largest need is taken.
    """
    return LengthCurve(_terms((*shape.groups, *shape.draft), storage, None, windows=True))


def admitted_curve(shape: ModelShape, storage: KvStorage, in_flight: int) -> LengthCurve:
    """What an engine admits: a window keeps W - 1 tokens and all tokens in flight.

    Before rounding to blocks and padding to groups. Source: vLLM
    SlidingWindowSpec.max_admission_blocks_per_request.
    """
    return LengthCurve(_terms((*shape.groups, *shape.draft), storage, in_flight, windows=True))


def unwindowed_curve(shape: ModelShape, storage: KvStorage) -> LengthCurve:
    """Every window and chunk kept in full, as with the hybrid manager off."""
    return LengthCurve(_terms((*shape.groups, *shape.draft), storage, None, windows=False))


@dataclass(frozen=True)
class Regimes:
    """Bytes of one request in the three regimes that stand side by side."""

    architecture: int
    admitted: int
    unwindowed: int


def regimes_at(
    shape: ModelShape, storage: KvStorage, length: int, in_flight: int, block: int
) -> Regimes:
    """The architecture's minimum, the engine's admission in blocks, the hybrid manager off.

    Admission counts whole blocks and, for windows, the one more block a window may straddle.
    """
    blocks = admitted_curve(shape, storage, in_flight).charged_at(length, block)
    straddled = sum(
        group.layers * layer_token_bytes(group, storage) * block
        for group in (*shape.groups, *shape.draft)
        if group.kind == "sliding"
    )
    return Regimes(
        architecture_curve(shape, storage).bytes_at(length),
        blocks + straddled,
        unwindowed_curve(shape, storage).charged_at(length, block),
    )


def fit_two_points(first: tuple[int, int], second: tuple[int, int]) -> tuple[Fraction, Fraction]:
    """Slope and fixed bytes of a request from two measurements (tokens, bytes).

    Undoes figures that mix both, such as pool bytes over tokens that are concurrency x length.
    """
    (tokens_a, bytes_a), (tokens_b, bytes_b) = first, second
    slope = Fraction(bytes_b - bytes_a, tokens_b - tokens_a)
    return slope, bytes_a - slope * tokens_a


def total_at(curve: LengthCurve, lengths: Sequence[int]) -> int:
    """Bytes a batch of requests keeps together; each has its own fixed part and windows."""
    return sum(curve.bytes_at(length) for length in lengths)
