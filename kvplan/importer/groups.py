"""Layers in, catalog groups and layer pattern out: layers that keep the same are one group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from kvplan.errors import ValueProblem
from kvplan.importer.records import Group, Layer, State

_WITH_UNIT = ("window", "chunk", "encoder_length", "ratio")
_MOST_LAYERS = 100_000  # what a pattern may expand to
_GRAMMAR = "a pattern is names of groups, (…)*count, and a+b for a layer that keeps both"
_TOKEN = re.compile(r"[A-Za-z_]\w*(?:\+[A-Za-z_]\w*)*|\d+|[()*]|\S")
_NAME = re.compile(r"[A-Za-z_][\w+]*")


def group(layers: Sequence[Layer]) -> tuple[tuple[Group, ...], str, Mapping[str, str]]:
    """Groups in order of first use, the pattern of layers, the origin of each group's fields."""
    counts = Counter(s for layer in layers for s in layer.states)
    for kept in list(counts):
        if kept.of is not None:
            counts.setdefault(kept.of, 0)
    names = _names(list(counts))
    groups, origins = [], {}
    for kept, layer_count in counts.items():
        fields: dict[str, int | str] = dict(kept.texts)
        for key, figure in kept.figures:
            fields[key] = f"{figure.value} token" if key in _WITH_UNIT else figure.value
            origins[f"{names[kept]}.{key}"] = figure.origin
        if kept.of is not None:
            fields["of"] = names[kept.of]
        groups.append(Group(names[kept], kept.kind, layer_count, fields))
    in_order = ["+".join(names[s] for s in layer.states) for layer in layers]
    return tuple(groups), compress_pattern(in_order), origins


def _names(states: Sequence[State]) -> dict[State, str]:
    """A group is named after its label or kind; where that is taken, a number is added."""
    names: dict[State, str] = {}
    wanted = Counter(s.label or s.kind for s in states)
    seen: Counter[str] = Counter()
    for kept in states:
        base = kept.label or kept.kind
        seen[base] += 1
        names[kept] = base if wanted[base] == 1 else f"{base}_{seen[base]}"
    return names


def compress_pattern(names: Sequence[str]) -> str:
    """Names in layer order with repeats folded, as in '(sliding*5 full)*10 sliding*2'."""
    terms, i = [], 0
    while i < len(names):
        period, repeats = _best_repeat(names, i)
        inner = names[i]
        if period > 1:
            inner = f"({compress_pattern(names[i : i + period])})"
        terms.append(inner if repeats == 1 else f"{inner}*{repeats}")
        i += period * repeats
    return " ".join(terms)


def _best_repeat(names: Sequence[str], start: int) -> tuple[int, int]:
    """Period and count of the repetition at `start` that covers most; the shortest of those."""
    best = (1, 1)
    for period in range(1, (len(names) - start) // 2 + 1):
        unit, repeats = names[start : start + period], 1
        while names[start + repeats * period : start + (repeats + 1) * period] == unit:
            repeats += 1
        if repeats > 1 and period * repeats > best[0] * best[1]:
            best = (period, repeats)
    return best


def expand_pattern(text: str) -> list[str]:
    """One name a layer from a layer pattern; the inverse of `compress_pattern`.

    pattern = term { ' ' term };  term = ( name | '(' pattern ')' ) [ '*' count ]
    """
    names, rest = _sequence(_TOKEN.findall(text), text)
    if rest:
        raise ValueProblem(f"the layer pattern {text!r} has a stray {rest[0]!r}", _GRAMMAR)
    return names


def _sequence(tokens: list[str], text: str) -> tuple[list[str], list[str]]:
    names: list[str] = []
    while tokens and tokens[0] != ")":
        unit, tokens = _unit(tokens, text)
        count = 1
        if tokens and tokens[0] == "*":
            if len(tokens) < 2 or not tokens[1].isdigit():
                raise ValueProblem(f"the layer pattern {text!r} has no count after *", _GRAMMAR)
            count, tokens = int(tokens[1]), tokens[2:]
        if len(names) + count * len(unit) > _MOST_LAYERS:
            raise ValueProblem(f"the layer pattern {text!r} has more than {_MOST_LAYERS} layers")
        names += unit * count
    return names, tokens


def _unit(tokens: list[str], text: str) -> tuple[list[str], list[str]]:
    head = tokens[0]
    if head != "(":
        if not _NAME.fullmatch(head):
            raise ValueProblem(f"the layer pattern {text!r} has {head!r} for a name", _GRAMMAR)
        return [head], tokens[1:]
    inner, rest = _sequence(tokens[1:], text)
    if not rest:
        raise ValueProblem(f"the layer pattern {text!r} has an open bracket", _GRAMMAR)
    return inner, rest[1:]
