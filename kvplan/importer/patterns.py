"""Rules that say which kind of attention each layer has, as the transformers classes derive it."""

from __future__ import annotations

from kvplan.importer.family import KindRule, LayerKind
from kvplan.importer.reading import Reading
from kvplan.importer.records import Figure

_KINDS = {
    "full_attention": "full",
    "attention": "full",
    "indexed_attention": "full",
    "sliding_attention": "sliding",
    "local_attention": "sliding",
    "chunked_attention": "chunked",
}


def read_window(
    reading: Reading, key: str = "sliding_window", idle_if_longer: bool = False
) -> Figure | None:
    """The window in tokens, or None where it is null or off; one beyond the maximum is a fault.

    `idle_if_longer` is for families that publish such a window to say that there is none.
    """
    if reading.has("use_sliding_window") and not reading.flag("use_sliding_window"):
        if reading.raw(key) is not None:
            reading.note(f"{key} is stated but use_sliding_window is false: no window")
        return None
    window = reading.optional(key)
    longest = reading.optional("max_position_embeddings")
    if window is None or longest is None or window.value <= longest.value:
        return window
    if idle_if_longer:
        reading.note(
            f"{key} {window.value} exceeds max_position_embeddings {longest.value}: no window"
        )
        return None
    reading.complain(
        key,
        f"is {window.value}, longer than max_position_embeddings {longest.value}",
        "correct the one that is wrong; for a model without a window set sliding_window to null",
    )
    return None


def one_window(idle_if_longer: bool = False) -> KindRule:
    """The same window in every layer, if there is one (Mistral, Mixtral, Phi-3, StarCoder2)."""

    def rule(reading: Reading, layers: int) -> list[LayerKind]:
        window = read_window(reading, idle_if_longer=idle_if_longer)
        return [("sliding", window) if window else ("full", None)] * layers

    return rule


def by_layer_types(period: int = 0, window_key: str = "sliding_window") -> KindRule:
    """`layer_types` if the file has it, else every `period`-th layer full and the others sliding.

    Period 0: none slides. Files from before layer_types state the period as
    sliding_window_pattern, a number or letters: L local, G global.
    """

    def rule(reading: Reading, layers: int) -> list[LayerKind]:
        stated = reading.words("layer_types", layers, tuple(_KINDS))
        reading.has("sliding_window_pattern")
        kinds = [_KINDS[w] for w in stated] if stated else _periodic(reading, layers, period)
        reading.has(window_key)
        window = read_window(reading, window_key) if "sliding" in kinds else None
        if "sliding" in kinds and window is None:
            return _without_window(reading, kinds, window_key, bool(stated))
        return [("sliding", window) if k == "sliding" else (k, None) for k in kinds]

    return rule


def _without_window(reading: Reading, kinds: list[str], key: str, stated: bool) -> list[LayerKind]:
    """Sliding layers without a window: wrong if layer_types names them, else the model has none."""
    if stated and reading.sound:
        reading.complain(
            key, "is not stated, yet layer_types has sliding layers", f"give {key} as published"
        )
    return [("full", None)] * len(kinds)


def _periodic(reading: Reading, layers: int, period: int) -> list[str]:
    stated = reading.raw("sliding_window_pattern", period)
    if isinstance(stated, str) and stated and set(stated.upper()) <= set("LG"):
        reading.has("sliding_window_pattern")
        letters = stated.upper()
        return ["sliding" if letters[i % len(letters)] == "L" else "full" for i in range(layers)]
    every = reading.count("sliding_window_pattern", period, minimum=0)
    return ["sliding" if every and (i + 1) % every else "full" for i in range(layers)]


def first_of_four(reading: Reading, layers: int) -> list[LayerKind]:
    """layer_types, else the first of each four layers full (CWM, Granite with windows)."""
    if reading.has("layer_types"):
        return by_layer_types()(reading, layers)
    window = read_window(reading)
    return [("sliding", window) if window and i % 4 else ("full", None) for i in range(layers)]


def qwen_window(reading: Reading, layers: int) -> list[LayerKind]:
    """Qwen2 and Qwen3: a window only with use_sliding_window, and only from layer
    max_window_layers on.
    """
    if reading.has("layer_types"):
        return by_layer_types()(reading, layers)
    if not reading.flag("use_sliding_window"):
        if reading.has("sliding_window"):
            reading.note("sliding_window is stated but use_sliding_window is not true: no window")
        return [("full", None)] * layers
    window = read_window(reading)
    first = reading.count("max_window_layers", 28, minimum=0)
    return [("sliding", window) if window and i >= first else ("full", None) for i in range(layers)]


def qwen_moe_window(reading: Reading, layers: int) -> list[LayerKind]:
    """Qwen3-MoE: one window for every layer, and only with use_sliding_window."""
    if not reading.flag("use_sliding_window"):
        return qwen_window(reading, layers)
    return one_window()(reading, layers)


def llama4_chunks(reading: Reading, layers: int) -> list[LayerKind]:
    """Llama 4: layers with rotary positions attend within a chunk, every fourth (no_rope) to
    everything.
    """
    rope = reading.numbers("no_rope_layers") or [int((i + 1) % 4 != 0) for i in range(layers)]
    stated = reading.words("layer_types", layers, tuple(_KINDS))
    chunk = reading.optional("attention_chunk_size")
    if not reading.of_length("no_rope_layers", rope, layers):
        return [("full", None)] * layers
    chunked = [k == "chunked_attention" for k in stated] if stated else [bool(r) for r in rope]
    return [("chunked", chunk) if c and chunk else ("full", None) for c in chunked]


def gpt_neo_types(reading: Reading, layers: int) -> list[LayerKind]:
    """GPT-Neo: attention_types is a list of [[kinds], repeats], window_size the local window."""
    window = reading.figure("window_size", 256)
    stated = reading.raw("attention_types", [[["global", "local"], layers // 2]])
    reading.has("attention_types")
    try:
        names = [name for kinds, repeats in stated for name in list(kinds) * min(repeats, layers)]
    except (TypeError, ValueError):
        reading.complain(
            "attention_types", "is no list of [kinds, repeats]", "give it as published"
        )
        names = []
    if not reading.of_length("attention_types", names, layers):
        return [("full", None)] * layers
    return [("sliding", window) if n == "local" else ("full", None) for n in names]
