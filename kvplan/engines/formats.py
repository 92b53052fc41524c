"""How K, V and latents are stored: exact bytes of one vector, and the exact ratio to bf16."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kvplan.engines.arithmetic import ceil_div, round_up
from kvplan.engines.shape import LayerGroup
from kvplan.errors import ValueProblem, one_of, suggest


@dataclass(frozen=True)
class KvFormat:
    """A storage format: `packed` bytes hold `values` elements, then scales.

    One scale of `scale_bytes` covers `scale_values` elements; 0 stands for the whole vector of a
    token and head. `whole` formats cannot cut a block of values. `idealised` ones keep a scale for
    each tensor only, which is counted as nothing.
    """

    name: str
    values: int
    packed: int
    source: str
    scale_bytes: int = 0
    scale_values: int = 0
    whole: bool = False
    idealised: bool = False

    def vector_bytes(self, dim: int) -> int:
        """Bytes of one vector of `dim` elements: K or V of one token and head, or a latent."""
        if self.whole and dim % self.values:
            what = f"{self.name} stores blocks of {self.values} values, and a row has {dim}"
            raise ValueProblem(what, "a block cannot be cut", "take a format of single values")
        scales = 1 if self.scale_values == 0 else dim // self.scale_values
        return dim // self.values * self.packed + scales * self.scale_bytes

    @property
    def element(self) -> Fraction:
        """Bytes of one element without scales for whole vectors."""
        scale = Fraction(self.scale_bytes, self.scale_values) if self.scale_values else 0
        return Fraction(self.packed, self.values) + scale


_VLLM = "vLLM 0.33.0 v1/attention/backends"
_TRITON = f"{_VLLM}/triton_attn.py customize_spec: an fp32 scale a side"
_GGML = "gguf 0.19.0 constants.py GGML_QUANT_SIZES"
_TENSOR = "vLLM config/cache.py CacheDType: scales a tensor, none stored in the cache"

_FORMATS = (
    KvFormat("fp32", 1, 4, "IEEE 754"),
    KvFormat("bf16", 1, 2, "2 bytes an element"),
    KvFormat("fp16", 1, 2, "IEEE 754"),
    KvFormat("fp8", 1, 1, _TENSOR, idealised=True),
    KvFormat("fp8_e4m3", 1, 1, _TENSOR, idealised=True),
    KvFormat("fp8_e5m2", 1, 1, _TENSOR, idealised=True),
    KvFormat("int8", 1, 1, "1 byte an element, scales left out", idealised=True),
    KvFormat("int4", 2, 1, "half a byte an element, scales left out", idealised=True),
    KvFormat("fp8_per_token_head", 1, 1, _TRITON, scale_bytes=4),
    KvFormat("int8_per_token_head", 1, 1, _TRITON, scale_bytes=4),
    KvFormat("int4_per_token_head", 2, 1, _TRITON, scale_bytes=4),
    KvFormat(
        "nvfp4", 2, 1, f"{_VLLM}/flashinfer.py: an fp8 scale for 16 values", 1, scale_values=16
    ),
    KvFormat(
        "mxfp8",
        1,
        1,
        "SGLang 0.5.23 pool_configurator.py: a scale byte for 32 values",
        1,
        scale_values=32,
    ),
    KvFormat("f32", 1, 4, _GGML),
    KvFormat("f16", 1, 2, _GGML),
    KvFormat("q8_0", 32, 34, _GGML, whole=True),
    KvFormat("q5_1", 32, 24, _GGML, whole=True),
    KvFormat("q5_0", 32, 22, _GGML, whole=True),
    KvFormat("q4_1", 32, 20, _GGML, whole=True),
    KvFormat("q4_0", 32, 18, _GGML, whole=True),
    KvFormat("iq4_nl", 32, 18, _GGML, whole=True),
)
FORMATS = {fmt.name: fmt for fmt in _FORMATS}
ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
}


def format_of(name: str) -> KvFormat:
    """The format of that name; an unknown one is an error, never a silent 2 bytes."""
    found = FORMATS.get(ALIASES.get(name, name))
    if found is None:
        known = sorted({*FORMATS, *ALIASES, *LATENT_RECORDS, *TURBOQUANT})
        what = f"unknown KV format '{name}'"
        why = f"known formats: {one_of(known, 40)}"
        raise ValueProblem(what, why, suggest(name, known) or "give one of them")
    return found


@dataclass(frozen=True)
class LatentRecord:
    """One packed MLA record: quantised latent, scales, then the rope part in its own precision.

    `scales` lists (latent elements that share a scale, bytes of that scale).
    """

    name: str
    source: str
    latent_values: int  # latent elements packed into one byte
    scales: tuple[tuple[int, int], ...]
    rope_element: int

    def record_bytes(self, latent: int, rope_dim: int) -> int:
        """Bytes a token keeps in one layer."""
        scales = sum(latent // values * size for values, size in self.scales)
        return latent // self.latent_values + scales + rope_dim * self.rope_element


LATENT_RECORDS = {
    record.name: record
    for record in (
        LatentRecord(
            "fp8_ds_mla",
            "vLLM 0.33.0 mla_attention.py get_kv_cache_spec: 512 fp8 + 4 fp32 + 64 bf16 = 656 B",
            latent_values=1,
            scales=((128, 4),),
            rope_element=2,
        ),
        LatentRecord(
            "nvfp4_ds_mla",
            "vLLM 0.33.0 mla_attention.py get_kv_cache_spec: 256 packed + 64 rope + 32 scales",
            latent_values=2,
            scales=((16, 1),),
            rope_element=1,
        ),
        LatentRecord(
            "nvfp4_latent_bf16_rope",
            "local-inference-lab/vllm pull request 82: 256 + 32 + 16 + 128 = 432 B",
            latent_values=2,
            scales=((16, 1), (128, 4)),
            rope_element=2,
        ),
    )
}

# bits of K (8: fp8 without a norm) and of V; vLLM turboquant/config.py TQ_PRESETS
TURBOQUANT = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}


def turboquant_slot_bytes(preset: str, dim: int) -> int:
    """K and V of one token and head in one slot, rounded up to an even number of bytes.

    K in fp8 takes `dim` bytes, else its bits and a 2-byte norm; V takes its bits, a 2-byte scale
    and a 2-byte zero. Source: vLLM turboquant/config.py TurboQuantConfig.slot_size_aligned.
    """
    key_bits, value_bits = TURBOQUANT[preset]
    key = dim if key_bits == 8 else ceil_div(dim * key_bits, 8) + 2
    return round_up(key + ceil_div(dim * value_bits, 8) + 4, 2)


@dataclass(frozen=True)
class KvStorage:
    """The formats of K and of V, and of the layers a recipe keeps unquantised.

    `latent` may name a packed MLA record; `indexer_bytes` is what one indexer key takes: 128 fp8
    and one fp32 scale by default (vLLM models/deepseek_v2.py, SGLang DSATokenToKVPool).
    """

    key: str = "bf16"
    value: str = ""
    latent: str = ""
    unquantised: str = "bf16"
    indexer_scale_values: int = 128
    indexer_scale_bytes: int = 4

    @property
    def value_format(self) -> str:
        """The format of V: its own where given, else that of K."""
        return self.value or self.key

    def plain(self) -> KvStorage:
        """What the layers kept unquantised use."""
        return KvStorage(self.unquantised)


def pair_bytes(dim: int, value_dim: int, storage: KvStorage) -> int:
    """K and V of one token and one head."""
    if storage.key in TURBOQUANT:
        return turboquant_slot_bytes(storage.key, dim)
    key = format_of(storage.key).vector_bytes(dim)
    return key + format_of(storage.value_format).vector_bytes(value_dim)


def latent_bytes(latent: int, rope_dim: int, storage: KvStorage) -> int:
    """The latent and rope part of one token in one MLA layer: one vector, no V."""
    name = storage.latent or storage.key
    if name in LATENT_RECORDS:
        return LATENT_RECORDS[name].record_bytes(latent, rope_dim)
    return format_of(name).vector_bytes(latent + rope_dim)


def indexer_bytes(indexer_dim: int, storage: KvStorage) -> int:
    """One key of the sparse indexer: fp8 elements and a scale for each 128 (132 B for 128)."""
    scales = indexer_dim // storage.indexer_scale_values
    return indexer_dim + scales * storage.indexer_scale_bytes


def layer_token_bytes(group: LayerGroup, storage: KvStorage) -> int:
    """Bytes one token keeps in one layer of the group over the whole model."""
    if group.kind in ("recurrent", "shared", "none"):
        return 0
    if group.kind == "mla":
        indexer = indexer_bytes(group.indexer_dim, storage) if group.indexer_dim else 0
        return latent_bytes(group.latent, group.rope_dim, storage) + indexer
    return group.kv_heads * pair_bytes(group.head_dim, group.value_dim, storage)


def ratio_to_bf16(group: LayerGroup, storage: KvStorage) -> Fraction:
    """The exact share of bf16 that the format takes in one layer of this shape."""
    return Fraction(layer_token_bytes(group, storage), layer_token_bytes(group, KvStorage()))


def mixed_token_bytes(group: LayerGroup, storage: KvStorage, kept: int) -> int:
    """Bytes of one token in all layers of the group when `kept` of them stay unquantised."""
    quantised = (group.layers - kept) * layer_token_bytes(group, storage)
    return quantised + kept * layer_token_bytes(group, storage.plain())


def idealised(storage: KvStorage) -> bool:
    """Whether scales are left out, so that the figure is a lower bound."""
    names = {storage.latent or storage.key, storage.value_format}
    return any(FORMATS[n].idealised for n in (ALIASES.get(n, n) for n in names) if n in FORMATS)
