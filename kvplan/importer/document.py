"""Text of a config.json in, plain mapping out; anything that is not one clean JSON object is refused."""

from __future__ import annotations

import json
from typing import Any

from kvplan.importer.errors import refuse

LARGEST_FILE = 5_000_000  # bytes; the largest published config.json known to us is under 200 kB

_REPLACE = "give the config.json as the model's repository publishes it"


def read_config(text: str | bytes) -> dict[str, Any]:
    """Read the text of a config.json; raises UnreadableConfig for what is not one JSON object."""
    size = len(text)
    if size > LARGEST_FILE:
        raise refuse(
            "$",
            f"the file has {size:,} bytes; a config.json of more than {LARGEST_FILE:,} is not read",
            "check that this is config.json and not weights, a tokenizer or an index",
        )
    document = _parse(_decode(text))
    if not isinstance(document, dict):
        raise refuse("$", f"the file holds {_name(document)} where a config is an object", _REPLACE)
    return document


def _decode(text: str | bytes) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 text: byte {error.start} is 0x{text[error.start]:02x}"
        raise refuse("$", message, _REPLACE) from None


def _parse(text: str) -> Any:
    if not text.strip():
        raise refuse("$", "the file is empty", _REPLACE)
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise _not_json(text, error) from None
    except (RecursionError, ValueError) as error:
        # Nesting deeper than the interpreter's stack, or an integer of thousands of digits.
        raise refuse("$", f"the JSON cannot be read: {type(error).__name__}", _REPLACE) from None


def _not_json(text: str, error: json.JSONDecodeError) -> Exception:
    """Tell a file that stops too early from one that was never JSON."""
    where = f"line {error.lineno} column {error.colno}"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return refuse("$", f"the file is truncated: the JSON is still open at {where}", _REPLACE)
    return refuse("$", f"the file is not JSON: {error.msg} at {where}", _REPLACE)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            message = f"the key '{key}' appears twice in one object, so its value is ambiguous"
            raise refuse(f"$..{key}", message, "remove one of the two")
        seen[key] = value
    return seen


def _constant(name: str) -> float:
    """Published configs hold Infinity (time_step_limit of Mamba-2); NaN is never a setting."""
    if name == "NaN":
        raise refuse("$", "the file holds NaN, which is not a number", _REPLACE)
    return float(name.lower().replace("infinity", "inf"))


def _name(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
