"""Careful access to the keys of a config: types checked, origins kept, what was read recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan.importer.errors import Complaint
from kvplan.importer.records import Figure, Keys

# Old spellings that mean one thing wherever they occur; a family adds those that are its own.
OLD_NAMES: Mapping[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("n_head_kv", "num_kv_heads"),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "max_sequence_length"),
    "vocab_size": ("padded_vocab_size",),
}
MOST_LAYERS = 1_000  # a larger count is a mistake, and would be expanded layer by layer
LARGEST_COUNT = 2**48

# Keys that look as if they bear on the shape and do not: training, decoding, kernels, rotary
# details.
_HARMLESS = re.compile(
    r"(.*chunk_size|chunk_size_feed_forward|is_encoder_decoder|hidden_act.*|mamba_hidden_act|"
    r"hidden_(activation|dropout.*)|.*_(dropout|layerdrop|coef|drop|pdrop)|output_hidden_states|"
    r"encoder_no_repeat_ngram_size|vision_feature_.*|index_topk.*|index_skip_topk_offset|"
    r"expert_dtype|use_grouped_topk|num_expert_group|attention_(bias|softmax.*|multiplier)|"
    r"hybrid_cache.*|layerdrop|layer_norm.*|layernorm.*|max_window_layers|residual_in_fp32|"
    r"mamba_(ssm_dtype|dt_.*)|use_mamba_kernels|router_.*|moe_(layer_start_index|router.*|renorm.*)|"
    r"apply_residual_connection_post_layernorm|qk_norm_type|attn_logit_softcapping|attn_implementation|norm_.*|"
    r"attention_function.*|moe_(drop.*|random.*)|num_experts_per_group|num_logits_to_keep|query_pre_attn_scalar|attn_res_block_size|"
    r"_attn_implementation.*|moe_shared_expert_overlap|index_share_for_mtp_iteration|use_mtp|"
    r"attention_value_scale|scale_attn.*|scale_attention.*|no_rope_.*|altup_(coef|correct).*|"
    r"activation_sparsity_pattern|use_bidirectional_attention|attn_(scale|temperature_tuning)|"
    r".*attn_(alpha|beta)_factor|relative_attention_max_distance|layer_rope_theta|moe_norm_min|"
    r"moe_routed_.*|moe_apply.*|enable_moe_fp32.*|index_(block|local).*|compress_rates|share_encoder.*|"
    r"attention_layers|moe_router_.*|.*_multipliers?|mamba_norm_before_gate|global_attn_every_n_layers)"
)
_BEARING = re.compile(
    r"layer|head|window|lora_rank|latent|expert|state_size|conv|mamba|ssm|kv_|share|pattern|ffn|"
    r"hidden_size|index_|moe|compress|block_type|attn_|attention|lru|recurrent|altup|cla|"
    r"intermediate"
)
# Keys that say what a layer keeps: a reader that does not know one of them would answer wrongly.
_DECISIVE = re.compile(
    r"kv_lora_rank|qk_(rope|nope)_head_dim|v_head_dim|head_dim|linear_attn_config|"
    r"linear_(num_)?(key|value)_head.*|(mamba|ssm)_.*(state|heads|conv|expand).*|lru_width|"
    r"hybrid_(override_pattern|layer_pattern|layer_ids)|layers_block_type|layer_types|block_configs|"
    r"block_types|cross_attention_layers|num_kv_shared_layers|use_cla|compress_ratios|"
    r"index_(head_dim|n_heads)|attention_chunk_size|attn_type_list|attn_layer_(indices|period)|"
    r"(num_)?global_(key_value_heads|head_dim)|swa_(num_.*|.*head_dim)|sparse_attention_config|conv_L_cache|"
    r"sliding_window_pattern|num_key_value_heads|multi_query.*|n_head_kv|num_(kv_)?heads|kv_channels|"
    r"num_attention_groups|per_layer_config"
)
_MISSING: Any = object()


@dataclass
class Record:
    """What one import gathers on its way: complaints, notes for the reader, and the keys that were
    read.
    """

    complaints: list[Complaint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def note(self, text: str) -> None:
        """Keep a remark once, in the order of discovery."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass(frozen=True)
class Reading:
    """One JSON object of a config under the rules of a transformers class.

    `defaults` are that class's own, used when a key is left out; `may_omit_core` is true for a
    nested text config, which transformers writes as a difference from those defaults, so that even
    layers and heads may be missing.
    """

    data: Mapping[str, Any]
    path: str
    model_type: str
    defaults: Mapping[str, Any]
    aliases: Mapping[str, tuple[str, ...]]
    record: Record
    moot: tuple[str, ...] = ()  # keys the class does not use though files state them
    may_omit_core: bool = False
    outer: Mapping[str, Any] = field(default_factory=dict)  # the whole config, for wrappers

    def section(self, name: str) -> Reading:
        """The object under a key, as a reading of its own; empty if there is none."""
        value, _ = self._find(name)
        if value is not None and not isinstance(value, dict):
            self.complain(
                name, f"is {value!r}, an object is expected", f"give '{name}' as published"
            )
        inner = value if isinstance(value, dict) else {}
        return Reading(inner, self._at(name), self.model_type, {}, {}, self.record)

    def has(self, name: str) -> bool:
        """True if the config itself states the key (null counts as not stated)."""
        return self._find(name)[0] is not None

    def is_null(self, name: str) -> bool:
        """True if the file states null for the key, under any of its names."""
        spellings = (name, *self.aliases.get(name, ()), *OLD_NAMES.get(name, ()))
        return any(s in self.data for s in spellings) and not self.has(name)

    def raw(self, name: str, default: Any = None) -> Any:
        """The value as it stands, for keys whose form varies; the class default if left out."""
        value, _ = self._find(name)
        return self.defaults.get(name, default) if value is None else value

    def figure(self, name: str, default: Any = _MISSING, why: str = "", minimum: int = 1) -> Figure:
        """A whole number; `default` outranks the class default; none is a fault."""
        value, origin = self._find(name)
        if value is not None:
            return Figure(self._whole(value, origin, minimum), origin)
        if isinstance(default, Figure):
            return Figure(default.value, why or default.origin)
        if default is not _MISSING:
            return Figure(default, why or self._by_class(name))
        by_class = self.defaults.get(name)
        if isinstance(by_class, int):
            return Figure(int(by_class), self._by_class(name))
        self.complain(name, *self._not_stated(name))
        return Figure(1, "missing")

    def core(self, name: str) -> Figure:
        """A number without which there is no shape; class defaults serve only in nested configs."""
        if self.has(name) or (self.may_omit_core and not self.is_null(name)):
            return self.figure(name)
        self.complain(name, *self._not_stated(name))
        return Figure(1, "missing")

    def count(self, name: str, default: Any = _MISSING, minimum: int = 1) -> int:
        """The number of `figure` alone."""
        return self.figure(name, default, minimum=minimum).value

    def optional(self, name: str, minimum: int = 1) -> Figure | None:
        """A whole number, or None if neither the file nor the class states it.

        A null in the file outranks the class default: it says that there is none.
        """
        absent = self.is_null(name) or self.defaults.get(name) is None
        return None if absent and not self.has(name) else self.figure(name, minimum=minimum)

    def flag(self, name: str, default: bool = False) -> bool:
        """A yes or no; `default` serves when neither the file nor the class states it."""
        value, origin = self._find(name)
        if value is None:
            return bool(self.defaults.get(name, default))
        if not isinstance(value, bool):
            self.complain(origin, f"is {value!r}, true or false is expected", "write true or false")
        return bool(value)

    def word(self, name: str, default: str = "") -> str:
        """A text; complains about anything else."""
        value, origin = self._find(name)
        if value is None:
            return str(self.defaults.get(name, default) or default)
        if not isinstance(value, str):
            self.complain(
                origin, f"is {value!r}, a text is expected", f"give '{name}' as published"
            )
            return default
        return value

    def words(self, name: str, length: int, allowed: Sequence[str] = ()) -> list[str] | None:
        """A list of `length` texts out of `allowed`, or None if it is left out or wrong (then it
        complains).
        """
        value, origin = self._find(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            self.complain(origin, "is not a list of texts", f"give '{name}' as published")
            return None
        unknown = sorted({v for v in value if allowed and v not in allowed})
        if unknown:
            known = ", ".join(allowed)
            message = f"has layers of a kind not known here: {', '.join(unknown)}"
            self.complain(origin, message, f"known kinds are {known}; add a reader for the new one")
            return None
        return value if self.of_length(origin, value, length) else None

    def numbers(self, name: str, minimum: int = 0) -> list[int] | None:
        """A list of whole numbers of any length, or None if it is left out."""
        value, origin = self._find(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self.complain(
                origin, f"is {value!r}, a list is expected", f"give '{name}' as published"
            )
            return None
        return [self._whole(v, f"{origin}[{i}]", minimum) for i, v in enumerate(value)]

    def per_layer(self, name: str, length: int) -> list[Figure]:
        """One figure a layer, from a single number or a list with one number a layer."""
        value, origin = self._find(name)
        if not isinstance(value, list):
            return [self.figure(name)] * length
        if not self.of_length(origin, value, length):
            return [Figure(1, "missing")] * length
        return [
            Figure(self._whole(v, f"{origin}[{i}]", 1), f"{origin}[layer]")
            for i, v in enumerate(value)
        ]

    def of_length(self, name: str, value: Sequence[Any], length: int) -> bool:
        """Complain unless a per-layer list has one entry for each layer."""
        if len(value) == length:
            return True
        message = f"has {len(value)} entries for {length} layers"
        self.complain(name, message, "give one entry a layer, or correct the number of layers")
        return False

    def complain(self, name: str, message: str, fix: str) -> None:
        """Record something wrong at a key and go on, so that all problems come out at once."""
        path = name if name.startswith("$") else f"$.{self._at(name)}"
        complaint = Complaint(path, message, fix)
        if complaint not in self.record.complaints:
            self.record.complaints.append(complaint)

    def note(self, text: str) -> None:
        """Record a remark for the reader of the catalog file."""
        self.record.note(text)

    @property
    def sound(self) -> bool:
        """True while nothing was complained of: only then are cross-checks between keys worth
        making.
        """
        return not self.record.complaints

    def keys(self) -> Keys:
        """What became of each key of this object."""
        read, ignored, strange = [], [], []
        for key, value in self.data.items():
            if self._at(key) in self.record.read:
                read.append(self._at(key))
            elif _empty(value) or _only_full(value) or key in self.moot or not self._bearing(key):
                ignored.append(self._at(key))
            else:
                strange.append(self._at(key))
        return Keys(tuple(read), tuple(ignored), tuple(strange))

    def _bearing(self, key: str) -> bool:
        return bool(_BEARING.search(key)) and not _HARMLESS.fullmatch(key)

    def refuse_unread(self) -> None:
        """Complain of keys that say what a layer keeps and that the family's reader never asked
        for.
        """
        for key, value in self.data.items():
            none = _empty(value) or (_is_one(value) and "heads" not in key)
            if (
                none
                or _only_full(value)
                or key in self.moot
                or self._at(key) in self.record.read
                or not _DECISIVE.fullmatch(key)
            ):
                continue
            message = f"is stated, and what it means for {self.model_type} is not known here"
            fix = "this is not a plain model of its type: it needs a reader of its own"
            self.complain(key, message, fix)

    def _by_class(self, name: str) -> str:
        return f"{name} (class default of {self.model_type}, not in config)"

    def _at(self, name: str) -> str:
        if self.path and not name.startswith(f"{self.path}."):
            return f"{self.path}.{name}"
        return name

    def _find(self, name: str) -> tuple[Any, str]:
        """The value under the key or one of its old names; complains if two spellings disagree."""
        found: list[tuple[str, Any]] = []
        for spelling in (name, *self.aliases.get(name, ()), *OLD_NAMES.get(name, ())):
            value = self._dig(spelling)
            if value is not None:
                found.append((spelling, value))
                self.record.read.add(self._at(spelling.split(".")[0]))
        if not found:
            return None, self._at(name)
        first, value = found[0]
        for other, contrary in found[1:]:
            if contrary != value:
                message = f"is {value!r} while {self._at(other)} is {contrary!r}"
                self.complain(first, message, "both name the same number: keep the right one")
        return value, self._at(first)

    def _dig(self, spelling: str) -> Any:
        value: Any = self.data
        for part in spelling.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def _whole(self, value: Any, origin: str, minimum: int) -> int:
        if isinstance(value, list) and value and all(v == value[0] for v in value):
            # One number for each layer, and all the same (Hunyuan-A13B).
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int):
            kind = "a text" if isinstance(value, str) else f"of type {type(value).__name__}"
            message = f"is {value!r}, {kind}; a whole number is expected"
            self.complain(origin, message, "write the number without quotes, fraction or list")
            return max(minimum, 1)
        if not minimum <= value <= LARGEST_COUNT:
            limit = f"at least {minimum}" if value < minimum else "smaller by far"
            self.complain(origin, f"is {value}, it must be {limit}", "give the published number")
            return max(minimum, 1)
        return value

    def _not_stated(self, name: str) -> tuple[str, str]:
        old = [*self.aliases.get(name, ()), *OLD_NAMES.get(name, ())]
        also = f" (nor {', '.join(old)})" if old else ""
        return (
            f"is not stated{also}, and {self.model_type} has no default that could be trusted",
            "use the whole config.json as published: this one seems cut",
        )


def _empty(value: Any) -> bool:
    return value in (None, False, "", 0) or value == [] or value == {}


def _is_one(value: Any) -> bool:
    """A factor, period or count of one changes nothing; true is not a one."""
    return value == 1 and not isinstance(value, bool)


def _only_full(value: Any) -> bool:
    """True for a list of layers that all attend to everything, in words or as ones."""
    return isinstance(value, list) and {str(v) for v in value} <= {
        "full_attention",
        "attention",
        "1",
    }
