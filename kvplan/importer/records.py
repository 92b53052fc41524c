"""What the importer's steps hand to each other: figures with origin, layers, shapes, the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A whole number and where it came from; two figures are equal when their numbers are."""

    value: int
    origin: str = field(compare=False)


@dataclass(frozen=True)
class State:
    """What one layer keeps for a request: a kind and its dimensions (the fields of a group)."""

    kind: str
    figures: tuple[tuple[str, Figure], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    label: str = ""  # preferred group name; empty: named after the kind
    of: State | None = None  # for kind 'shared': the state that is reused


def state(kind: str, label: str = "", /, **fields: Figure | str | None) -> State:
    """Build a State from keyword fields; None leaves a field out."""
    figures = tuple((k, v) for k, v in fields.items() if isinstance(v, Figure))
    texts = tuple((k, v) for k, v in fields.items() if isinstance(v, str))
    return State(kind, figures, texts, label)


NOTHING = State("none")


@dataclass(frozen=True)
class Weights:
    """Parameters (elements): all, those that work on one token, those of routed experts."""

    total: int = 0
    active: int = 0
    experts: int = 0

    def __add__(self, other: Weights) -> Weights:
        experts = self.experts + other.experts
        return Weights(self.total + other.total, self.active + other.active, experts)


def dense(elements: int) -> Weights:
    """Weights that work on every token."""
    return Weights(elements, elements)


@dataclass(frozen=True)
class Layer:
    """One layer: the states it keeps (two where mixers run side by side) and what it weighs."""

    states: tuple[State, ...]
    weights: Weights = Weights()


@dataclass(frozen=True)
class Shape:
    """A text model read from a config: its layers in order and the weights outside them."""

    layers: tuple[Layer, ...]
    embedding: int = 0  # input embedding, plus the output head where it is not tied
    rest: Weights = Weights()  # final norm, learned positions, shared blocks, encoder, ...
    draft: tuple[Layer, ...] = ()
    max_context: Figure | None = None
    uncounted: str = ""  # why the parameters cannot be counted; empty when they can


@dataclass(frozen=True)
class Group:
    """Layers that keep the same state; `fields` are the dimensions as a catalog file names them."""

    name: str
    kind: str
    layers: int
    fields: Mapping[str, int | str]


@dataclass(frozen=True)
class Parameters:
    """Parameter counts of the text model without its draft layers; None with a reason if unknown.

    `active` counts what works on one token: chosen and shared experts and all the rest, embeddings
    included. `embedding` is the input embedding plus the output head, once where they are tied.
    """

    total: int | None
    active: int | None
    experts: int | None  # all routed experts: often the only ones that are quantised
    embedding: int | None
    how: str


@dataclass(frozen=True)
class Keys:
    """The keys of the config by what became of them, each as a path."""

    read: tuple[str, ...]
    ignored: tuple[str, ...]  # no bearing on the shape of the cache or the weights
    not_understood: tuple[str, ...]  # look as if they had a bearing, and no reader knows them


@dataclass(frozen=True)
class ImportedModel:
    """One model as the catalog needs it, with the origin of every field."""

    name: str
    model_type: str
    architecture: str | None
    groups: tuple[Group, ...]
    layer_pattern: str
    draft_groups: tuple[Group, ...]
    draft_pattern: str
    layers: int
    hidden_size: int
    vocab_size: int
    max_context: int | None
    parameters: int | None
    active_parameters: int | None
    expert_parameters: int | None
    embedding_parameters: int | None
    vision_parameters: int | None
    weight_dtype: str | None
    model_dtype: str | None
    quantisation: Mapping[str, Any] | None
    origins: Mapping[str, str]
    keys: Keys
    notes: tuple[str, ...]
