"""What differs between the vLLM releases whose planning code was read, as one table of rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvplan.engines.formats import TURBOQUANT
from kvplan.engines.parallel import Split
from kvplan.errors import ValueProblem, suggest


@dataclass(frozen=True)
class Rules:
    """The rules of one release.

    Sources: vllm/v1/kv_cache_interface.py, v1/core/kv_cache_utils.py (0.8 to 0.20),
    v1/core/kv_cache_planning.py (0.33), worker/cache_engine.py and core/block_manager.py (0.6).
    """

    version: str
    formats: tuple[str, ...]  # the values of --kv-cache-dtype that are read
    stages: Split = "vllm"
    # pages
    separate_value_dim: bool = True  # K and V have head sizes of their own
    head_scales: bool = True  # per-token-head formats carry their scales
    chunked_is_full: bool = False  # chunked local attention has no cache of its own
    promoted_is_plain: bool = False  # a window turned full forgets its format and V size
    unify: Literal["refuse", "scale", "pad"] = "pad"  # what unequal pages become
    # groups
    grouped: bool = True  # more than one group shares the pool
    group_by_maximum: bool = True  # buckets of nearly equal size are padded up, not cut down
    attention_first: bool = False  # attention layers come before recurrent ones
    uniform_stage_page: bool = True  # a stage is charged its own layers of a mixed group
    # requests
    in_flight_batches: bool = False  # every batch in flight keeps its tokens in a window
    state_modes: tuple[str, ...] = ("none", "align")
    # fit check
    check_groups: bool = True  # padded groups are checked, else layers
    null_block: bool = False  # the check leaves out the block that is never handed out
    override_resizes: bool = False  # a block override replaces the memory in the check
    prints_estimate: bool = True
    can_auto_fit: bool = True
    rounds_gib: bool = True  # "16.0" instead of "16.00"
    # log
    tokens: Literal["blocks", "groups", "requests"] = "groups"
    prints_each_rank: bool = False  # before the minimum over the ranks is taken
    memory_utilization: float = 0.92


_PLAIN = ("auto", "bf16", "fp16", "fp32", "fp8", "fp8_e4m3", "fp8_e5m2")
_SCALED = ("fp8_per_token_head", "int8_per_token_head", "nvfp4", *TURBOQUANT, "fp8_ds_mla")

_V0 = Rules(
    "0.6.6",
    _PLAIN,
    stages="vllm-v0",
    separate_value_dim=False,
    head_scales=False,
    chunked_is_full=True,
    grouped=False,
    state_modes=("none",),
    check_groups=False,
    prints_estimate=False,
    can_auto_fit=False,
    rounds_gib=False,
    tokens="blocks",
    memory_utilization=0.90,
)
_V08 = Rules(
    "0.8.5",
    _PLAIN,
    separate_value_dim=False,
    head_scales=False,
    chunked_is_full=True,
    promoted_is_plain=True,
    unify="refuse",
    grouped=False,
    state_modes=("none",),
    check_groups=False,
    prints_estimate=False,
    can_auto_fit=False,
    rounds_gib=False,
    tokens="blocks",
    prints_each_rank=True,
    memory_utilization=0.90,
)
_V011 = Rules(
    "0.11.0",
    (*_PLAIN, "fp8_ds_mla"),
    separate_value_dim=False,
    head_scales=False,
    promoted_is_plain=True,
    unify="refuse",
    group_by_maximum=False,
    attention_first=True,
    uniform_stage_page=False,
    state_modes=("none",),
    check_groups=False,
    can_auto_fit=False,
    rounds_gib=False,
    prints_each_rank=True,
    memory_utilization=0.90,
)
_V020 = Rules(
    "0.20.0",
    (*_PLAIN, *_SCALED),
    promoted_is_plain=True,
    unify="scale",
    state_modes=("none", "align", "all"),
)
_V033 = Rules(
    "0.33.0",
    (*_PLAIN, *_SCALED, "int4_per_token_head", "nvfp4_ds_mla"),
    in_flight_batches=True,
    null_block=True,
    override_resizes=True,
    tokens="requests",
)

KNOWN = {
    "0.6": _V0,
    "0.6.6": _V0,
    "0.6.6.post1": _V0,
    "0.8": _V08,
    "0.8.5": _V08,
    "0.11": _V011,
    "0.11.0": _V011,
    "0.20": _V020,
    "0.20.0": _V020,
    "0.33": _V033,
    "0.33.0": _V033,
}


def rules_for(version: str) -> Rules:
    """The rules of a release; a release that was not read is an error, never the nearest one."""
    if version not in KNOWN:
        what = f"vLLM {version} is not known"
        why = f"known releases: {', '.join(KNOWN)}; the rules changed between all of them"
        raise ValueProblem(what, why, suggest(version, KNOWN) or "choose one of them")
    return KNOWN[version]
