"""The quantisation block of a config in, its method, formats and exceptions in common words out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BLOCKS = ("quantization_config", "compression_config", "quantization")
_DTYPES = {
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
_BY_METHOD = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "bitnet": "int2"}
_UNQUANTISED = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules")


def dtype_name(word: Any) -> str | None:
    """The short name of a torch dtype."""
    if not isinstance(word, str):
        return None
    plain = word.removeprefix("torch.")
    return _DTYPES.get(plain, plain)


def block(*sections: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The key and content of the first quantisation block in the sections."""
    for section in sections:
        for key in _BLOCKS:
            found = section.get(key)
            if isinstance(found, Mapping) and found:
                return key, found
    return None


def describe(found: Mapping[str, Any]) -> dict[str, Any]:
    """Method, weight format, KV cache format and how many modules stay as they were."""
    # MLX writes bits and group_size and no name.
    unnamed = "mlx" if {"bits", "group_size"} <= found.keys() else "not stated"
    method = found.get("quant_method") or found.get("quant_algo") or unnamed
    described: dict[str, Any] = {"method": str(method), "weights": weight_format(found)}
    cache = cache_format(found)
    if cache:
        described["kv_cache"] = cache
    group = found.get("group_size") or found.get("q_group_size")
    if isinstance(group, int) and not isinstance(group, bool):
        described["group_size"] = group
    size = found.get("weight_block_size")
    if isinstance(size, list):
        described["weight_block"] = " x ".join(str(n) for n in size)
    kept: list[Any] = next((found[k] for k in _UNQUANTISED if isinstance(found.get(k), list)), [])
    if kept:
        described["unquantised_modules"] = len(kept)
    return {k: v for k, v in described.items() if v is not None}


def weight_format(found: Mapping[str, Any]) -> str | None:
    """fp8, nvfp4, mxfp4, int4, int8, ... or None where the block does not say."""
    algorithm = str(found.get("moe_quant_algo") or found.get("quant_algo") or "").lower()
    if algorithm == "mixed_precision":
        return "mixed"
    if algorithm:
        known = {"fp8": "fp8", "nvfp4": "nvfp4", "w4a8_awq": "int4", "w4a16_awq": "int4"}
        return known.get(algorithm, algorithm)
    method = str(found.get("quant_method") or "").lower()
    if method in _BY_METHOD:
        return _BY_METHOD[method]
    if found.get("load_in_4bit"):
        return str(found.get("bnb_4bit_quant_type") or "int4")
    if found.get("load_in_8bit"):
        return "int8"
    bits = found.get("bits", found.get("w_bit", found.get("num_bits")))
    if isinstance(bits, int) and not isinstance(bits, bool):
        return f"int{bits}"
    return _by_groups(found)


def _by_groups(found: Mapping[str, Any]) -> str | None:
    """The format that compressed-tensors and ModelOpt give per group of modules."""
    groups = found.get("config_groups")
    formats = set()
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            formats.add(_number(weights, str(group.get("format") or found.get("format") or "")))
    return formats.pop() if len(formats) == 1 else "mixed" if formats else None


def _number(scheme: Mapping[str, Any], packing: str) -> str:
    bits, kind = scheme.get("num_bits"), scheme.get("type", "int")
    if kind == "float" and bits == 4:
        return "mxfp4" if packing.startswith("mxfp4") else "nvfp4"
    return f"fp{bits}" if kind == "float" else f"int{bits}"


def cache_format(found: Mapping[str, Any]) -> str | None:
    """The KV cache format that the checkpoint asks for, where it asks for one."""
    scheme = found.get("kv_cache_scheme") or found.get("kv_cache_quant_algo")
    if isinstance(scheme, str):
        return scheme.lower()
    return _number(scheme, "") if isinstance(scheme, Mapping) else None
