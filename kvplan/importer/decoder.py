"""Config of an ordinary decoder in, shape out: attention with key and value heads, MLP or experts,
by family traits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvplan.importer import parameters
from kvplan.importer.family import Experts, Family, LayerKind, Style, decide
from kvplan.importer.reading import MOST_LAYERS, Reading
from kvplan.importer.records import Figure, Layer, Shape, State, Weights, dense, state

_DRAFT_KEYS = (
    "num_nextn_predict_layers",
    "num_mtp_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
)


@dataclass(frozen=True)
class Frame:
    """What every decoder has: layers, width, vocabulary rows, tied or not, maximum length."""

    layers: int
    width: int
    vocabulary: int
    tied: bool
    max_context: Figure | None

    @property
    def embedding(self) -> int:
        """Input embedding, plus the output head where it has weights of its own."""
        return self.vocabulary * self.width * (1 if self.tied else 2)


@dataclass(frozen=True)
class Heads:
    """Heads of one attention block and their sizes."""

    query: Figure
    kv: Figure
    size: Figure
    value_size: Figure

    def weights(self, width: int, style: Style, reading: Reading) -> int:
        """Projections, their biases, and the norms on queries and keys."""
        q, kv, size = self.query.value, self.kv.value, self.size.value
        biases = decide(reading, style.qkv_bias), decide(reading, style.out_bias)
        total = parameters.attention(width, q, kv, size, self.value_size.value, *biases)
        if style.qk_norm and (not style.qk_norm_key or reading.flag(style.qk_norm_key)):
            per_norm = {"head": 2 * size, "halves": 4 * size, "heads": (q + kv) * size}
            total += per_norm[style.qk_norm]
        gates = {"": 0, "head": q, "full": q * self.value_size.value}
        return total + width * gates[style.gate] + (q if style.sinks else 0)


def read_frame(reading: Reading) -> Frame:
    """Layers, width, vocabulary, tying and maximum length."""
    layers = reading.core("num_hidden_layers").value
    if layers > MOST_LAYERS:
        reading.complain(
            "num_hidden_layers", f"is {layers}", f"no model has more than {MOST_LAYERS}"
        )
        layers = 1
    return Frame(
        layers=layers,
        width=reading.core("hidden_size").value,
        vocabulary=reading.count("vocab_size"),
        tied=reading.flag("tie_word_embeddings"),
        max_context=reading.optional("max_position_embeddings"),
    )


def read_heads(reading: Reading, width: int) -> Heads:
    """Query and key/value heads; an explicit head_dim always wins over width / heads."""
    query = reading.core("num_attention_heads")
    kv = reading.optional("num_key_value_heads")
    kv = kv or Figure(query.value, f"{query.origin}, no KV heads stated")
    if reading.sound and query.value % kv.value:
        message = f"is {kv.value}, which does not divide the {query.value} query heads"
        reading.complain("num_key_value_heads", message, "give both as published")
    size = read_head_dim(reading, width, query)
    value_size = reading.optional("v_head_dim") or size
    return Heads(query, kv, size, value_size)


def heads_by_layer(reading: Reading, frame: Frame) -> list[Heads]:
    """The heads of each layer: query or KV heads may be lists with one number a layer."""
    listed = {}
    for key in ("num_attention_heads", "num_key_value_heads"):
        value = reading.raw(key)
        if isinstance(value, list):
            listed[key] = reading.per_layer(key, frame.layers)
    if not listed:
        return [read_heads(reading, frame.width)] * frame.layers
    return [
        read_heads(_stating(reading, {k: v[i].value for k, v in listed.items()}), frame.width)
        for i in range(frame.layers)
    ]


def _stating(reading: Reading, values: dict[str, int]) -> Reading:
    data = {k: v for k, v in reading.data.items() if not isinstance(v, list)}
    return replace(reading, data=data | values)


def read_head_dim(reading: Reading, width: int, query: Figure) -> Figure:
    """head_dim as stated or the class default, else width / heads, which must divide."""
    stated = reading.optional("head_dim")
    if stated:
        return stated
    if reading.sound and width % query.value:
        message = f"is not stated, and hidden_size {width} is no multiple of {query.value} heads"
        reading.complain("head_dim", message, "give head_dim as published")
    origin = f"{reading.figure('hidden_size').origin} / {query.origin}, no head_dim stated"
    return Figure(max(width // query.value, 1), origin)


def attention_state(kind: LayerKind, heads: Heads, label: str = "") -> State:
    """What an attention layer of this kind keeps."""
    name, reach = kind
    value = None if heads.value_size == heads.size else heads.value_size
    extent = {"sliding": "window", "chunked": "chunk"}.get(name)
    reaching = {extent: reach} if extent else {}
    return state(
        name,
        label,
        query_heads=heads.query,
        kv_heads=heads.kv,
        head_dim=heads.size,
        value_head_dim=value,
        **reaching,
    )


def feed_forward(reading: Reading, frame: Frame, family: Family) -> list[Weights]:
    """The MLP or mixture of each layer."""
    style, mixture = family.style, family.experts
    bias = decide(reading, style.mlp_bias)
    if mixture is None or not has_experts(reading, mixture):
        widths = reading.per_layer("intermediate_size", frame.layers)
        return [dense(parameters.mlp(frame.width, w.value, style.gated, bias)) for w in widths]
    sparse = mixture.sparse(reading, frame.layers)
    some = mixture_weights(reading, frame.width, mixture, style) if any(sparse) else Weights()
    plain = Weights()
    if not all(sparse):
        inner = reading.count(mixture.dense_width)
        plain = dense(parameters.mlp(frame.width, inner, style.gated, bias))
    return [some if s else plain for s in sparse]


def has_experts(reading: Reading, mixture: Experts) -> bool:
    """False for configs of a mixture family that state none or at most one expert."""
    stated = reading.optional(mixture.count, minimum=0)
    if stated is None and (reading.has(mixture.active) or reading.has("moe_intermediate_size")):
        reading.count(mixture.count)  # experts, but how many?
    return stated is not None and stated.value > 1


def experts_as_wide(reading: Reading) -> Reading:
    """Experts are as wide as the dense MLP unless the file says otherwise (Hunyuan, Grok-1)."""
    width = reading.figure("intermediate_size")
    return replace(reading, defaults={"moe_intermediate_size": width.value, **reading.defaults})


def mixture_weights(reading: Reading, width: int, mixture: Experts, style: Style) -> Weights:
    """Routed experts, shared experts and the router of one layer."""
    count, active = reading.count(mixture.count), reading.count(mixture.active)
    if reading.sound and active > count:
        message = f"is {active}, more than the {count} experts there are"
        reading.complain(mixture.active, message, "give both as published")
    inner = reading.count(mixture.width)
    one = parameters.mlp(width, inner, style.gated, mixture.expert_bias)
    always = parameters.linear(width, count, mixture.router_bias)
    shared = reading.optional(mixture.shared_count, minimum=0) if mixture.shared_count else None
    if shared:
        each = reading.count(mixture.shared_width, inner, 0) if mixture.shared_width else inner
        always += parameters.mlp(width, each * shared.value, style.gated) if shared.value else 0
    elif mixture.shared_width:
        own = reading.optional(mixture.shared_width, minimum=0)
        if own and own.value:
            always += parameters.mlp(width, own.value, style.gated)
            always += width if mixture.shared_gate else 0
    return parameters.experts(one, count, active, always)


def outside(reading: Reading, frame: Frame, style: Style) -> Weights:
    """Final norm, norm after the embedding, learned positions, bias of the head."""
    norms = (2 if style.embedding_norm else 1) * frame.width * style.norm_values
    positions = 0
    if style.learned_positions is not None and frame.max_context is not None:
        positions = (frame.max_context.value + style.learned_positions) * frame.width
    head = frame.vocabulary if decide(reading, style.head_bias) else 0
    return dense(norms + positions + head)


def read_decoder(reading: Reading, family: Family) -> Shape:
    """A decoder whose layers differ at most in their window and in having experts."""
    frame = read_frame(reading)
    heads = heads_by_layer(reading, frame)
    kinds = family.kinds(reading, frame.layers)
    norms = family.style.norms * frame.width * family.style.norm_values
    layers = tuple(
        Layer(
            (attention_state(kind, own),),
            dense(own.weights(frame.width, family.style, reading) + norms) + ff,
        )
        for kind, own, ff in zip(kinds, heads, feed_forward(reading, frame, family), strict=True)
    )
    shape = Shape(
        layers=layers,
        embedding=frame.embedding,
        rest=outside(reading, frame, family.style),
        max_context=frame.max_context,
    )
    return with_draft(reading, shape)


def with_draft(reading: Reading, shape: Shape) -> Shape:
    """Add multi-token prediction layers: each keeps what the last layer of the model keeps."""
    keys = [k for k in _DRAFT_KEYS if reading.data.get(k)]
    if not keys or not shape.layers:
        return shape
    extra = reading.count(keys[0], minimum=0)
    if keys[0] == "num_mtp_modules":
        extra *= reading.count("mtp_transformer_layers", 1)
    if extra > MOST_LAYERS:
        reading.complain(keys[0], f"is {extra}", f"no model has more than {MOST_LAYERS} layers")
        return shape
    reading.note(
        f"{extra} draft layer(s) by {keys[0]}, taken to keep what the last layer keeps; "
        "not in parameters"
    )
    return replace(shape, draft=shape.layers[-1:] * extra)
