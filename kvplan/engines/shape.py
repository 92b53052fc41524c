"""What a model keeps for each request, layer by layer, and how it is spread over devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from kvplan.errors import ValueProblem

Kind = Literal["full", "sliding", "chunked", "mla", "recurrent", "cross", "shared", "none"]
Mixer = Literal[
    "mamba1", "mamba2", "gated_delta_net", "kda", "lightning", "linear", "short_conv", ""
]
ATTENTION = ("full", "sliding", "chunked", "cross")  # keep K and V heads


@dataclass(frozen=True)
class RecurrentState:
    """The state of one recurrent layer of the whole model; a causal convolution keeps kernel - 1.

    `conv_elements` counts the published channels times (conv_kernel - 1). `groups` and `group_dim`
    are the B/C groups of Mamba-2 and their size: they are copied when they do not divide by the
    tensor-parallel size. Dtypes are names of formats; an empty one means the engine's default.
    """

    mixer: Mixer
    conv_elements: int = 0
    conv_kernel: int = 0
    state_elements: int = 0
    heads: int = 0
    groups: int = 0
    group_dim: int = 0
    conv_dtype: str = ""
    state_dtype: str = ""

    @property
    def conv_channels(self) -> int:
        """Width of the convolution over the whole model."""
        return self.conv_elements // (self.conv_kernel - 1) if self.conv_kernel > 1 else 0


@dataclass(frozen=True)
class LayerGroup:
    """Layers of the whole model that keep the same kind of state; heads are counted before TP."""

    kind: Kind
    layers: int
    query_heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    value_head_dim: int | None = None
    window: int = 0
    chunk: int = 0
    latent: int = 0
    rope_dim: int = 0
    indexer_dim: int = 0
    encoder_length: int = 0
    state: RecurrentState | None = None
    name: str = ""

    def __post_init__(self) -> None:
        for need, of in _NEEDED.get(self.kind, {}).items():
            if not getattr(self, need):
                what = f"a layer group of kind '{self.kind}' has no {need}"
                raise ValueProblem(what, f"{of} cannot be counted without it", f"give {need}")
        if self.layers < 0:
            raise ValueProblem(f"a layer group has {self.layers} layers", "", "give 0 or more")

    @property
    def value_dim(self) -> int:
        """Head size of V: its own where published, else that of K."""
        return self.head_dim if self.value_head_dim is None else self.value_head_dim


_HEADS = {"kv_heads": "the bytes of K and V", "head_dim": "the bytes of K and V"}
_NEEDED: dict[str, dict[str, str]] = {
    "full": _HEADS,
    "sliding": _HEADS | {"window": "the tokens that stay"},
    "chunked": _HEADS | {"chunk": "the tokens that stay"},
    "cross": _HEADS | {"encoder_length": "the encoder states"},
    "mla": {"latent": "the bytes of the latent"},
    "recurrent": {"state": "the state"},
}


@dataclass(frozen=True)
class ModelShape:
    """Layer groups and, for every layer in order, which of them it keeps (none, one or two)."""

    groups: tuple[LayerGroup, ...]
    order: tuple[tuple[int, ...], ...]
    draft: tuple[LayerGroup, ...] = ()

    def __post_init__(self) -> None:
        for index, group in enumerate(self.groups):
            found = sum(kept.count(index) for kept in self.order)
            if found != group.layers:
                what = f"layer group {group.name or index + 1} has {group.layers} layers"
                raise ValueProblem(what, f"the layer order names it {found} times", "make them one")

    @cached_property
    def _hash(self) -> int:
        return hash((self.groups, self.order, self.draft))

    def __hash__(self) -> int:
        return self._hash

    @property
    def depth(self) -> int:
        """Layers the pipeline split counts, with those that keep nothing."""
        return len(self.order)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that keep something."""
        kept = (g.kind for g in (*self.groups, *self.draft) if g.layers)
        return frozenset(kept) - {"shared", "none"}


def model_shape(
    groups: Sequence[LayerGroup],
    order: Sequence[Sequence[int]] | None = None,
    draft: Sequence[LayerGroup] = (),
) -> ModelShape:
    """A model from its groups; without an order the groups follow one another."""
    if order is None:
        order = [(index,) for index, g in enumerate(groups) for _ in range(g.layers)]
    return ModelShape(tuple(groups), tuple(tuple(kept) for kept in order), tuple(draft))


@dataclass(frozen=True)
class Layout:
    """How one replica is spread: ranks = tensor x pipeline; `data` counts replicas.

    Decode-context parallel reuses the tensor-parallel ranks, prefill-context parallel adds ranks.
    `partition` replaces the engine's split of layers over pipeline stages.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    decode_context: int = 1
    prefill_context: int = 1
    partition: tuple[int, ...] | None = field(default=None)

    def __post_init__(self) -> None:
        for name in ("tensor", "pipeline", "data", "decode_context", "prefill_context"):
            if getattr(self, name) < 1:
                what = f"{name} parallel size is {getattr(self, name)}"
                raise ValueProblem(what, "every size counts devices", "give 1 or more")

    @property
    def ranks(self) -> int:
        """Devices of one replica."""
        return self.tensor * self.pipeline * self.prefill_context
