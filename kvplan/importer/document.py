"""Text of a config.json in, plain mapping out; what is not one clean JSON object is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Place, Problem

LARGEST_FILE = 5_000_000  # bytes; the largest published config.json known to us is under 200 kB

DEEPEST = 100  # levels of objects and lists; published configs have fewer than ten
_TOO_DEEP = "the JSON is nested too deep or holds a number too long"
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
_CURE = "give the config.json as the model's repository publishes it"
_SPACE = re.compile(r"[ \t\r\n]*")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class Config(dict[str, Any]):
    """The object of a config.json that still knows its text, so that errors can point into it."""

    def __init__(self, data: dict[str, Any], path: str, text: str) -> None:
        super().__init__(data)
        self.path, self.text = path, text

    def place(self, json_path: str) -> Place:
        """Where a value stands; the nearest enclosing one when the path is not in the file."""
        start, end = locate(self.text, json_path)
        return _place(self.path, self.text, start, end - start)


def read_config(path: Path | str) -> Config:
    """Read a config.json; raises KvplanError for what is not one JSON object."""
    from kvplan.yamltext import read

    name = str(path)
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    if size > LARGEST_FILE:
        what = (
            f"the file has {size:,} bytes; a config.json of more than {LARGEST_FILE:,} is not read"
        )
        cure = "check that this is config.json and not weights, a tokenizer or an index"
        raise KvplanError(Problem(what, "", cure, Place(name)))
    return parse_config(read(Path(path), limit=LARGEST_FILE), name)


def parse_config(text: str, name: str) -> Config:
    """The config in a text; `name` stands in for the file in messages."""
    text = text.removeprefix("\ufeff")
    document = _parse(text, name)
    if not isinstance(document, dict):
        raise _refuse(f"the file holds {_kind(document)} where a config is an object", name, text)
    return Config(document, name, text)


def _depth(text: str) -> int:
    """How deep objects and lists are nested; counted, since parsers differ in what they bear."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        deepest = max(deepest, depth)
    return deepest


def _parse(text: str, name: str) -> Any:
    if not text.strip():
        raise _refuse("the file is empty", name, text)
    if _depth(text) > DEEPEST:
        raise _refuse(_TOO_DEEP, name, text)
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [k for k, _ in pairs]
            repeated.extend(k for k in found if keys.count(k) > 1)
        return found

    def constant(word: str) -> float:
        # Published configs hold Infinity (time_step_limit of Mamba-2); NaN is never a setting.
        if word == "NaN":
            at = text.find("NaN")
            raise _refuse("the file holds NaN, which is not a number", name, text, at, 3)
        return float(word.lower().replace("infinity", "inf"))

    try:
        found = json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise _not_json(text, name, error) from None
    except (RecursionError, ValueError):
        # Nesting deeper than the interpreter's stack, or an integer of thousands of digits.
        raise _refuse(_TOO_DEEP, name, text) from None
    if repeated:
        at = text.rfind(f'"{repeated[0]}"')
        what = f"the key '{repeated[0]}' appears twice in one object, so its value is ambiguous"
        problem = Problem(what, "", "remove one of the two", _place(name, text, max(at, 0), 1))
        raise KvplanError(problem)
    return found


def _not_json(text: str, name: str, error: json.JSONDecodeError) -> KvplanError:
    """Tell a file that stops too early from one that was never JSON."""
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return _refuse("the file is truncated: the JSON is still open here", name, text, error.pos)
    return _refuse(f"the file is not JSON: {error.msg}", name, text, error.pos)


def _refuse(what: str, name: str, text: str, start: int = 0, width: int = 1) -> KvplanError:
    return KvplanError(Problem(what, "", _CURE, _place(name, text, start, width)))


def _place(name: str, text: str, start: int, width: int) -> Place:
    before = text[:start]
    first = before.rfind("\n") + 1
    line = text[first:].split("\n", 1)[0].rstrip("\r")
    return Place(name, before.count("\n") + 1, start - first + 1, max(width, 1), line)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def locate(text: str, json_path: str) -> tuple[int, int]:
    """Start and end of the value at a path such as $.a.b[3] in a text known to be JSON."""
    start = _skip(text, 0)
    end = start + 1
    for key, index in _STEP.findall(json_path):
        found = _member(text, start, key, index)
        if found is None:
            break
        start, end = found
    return start, end


def _member(text: str, at: int, key: str, index: str) -> tuple[int, int] | None:
    """The span of a member of the object or array that starts at `at`."""
    decoder = json.JSONDecoder()
    if text[at] != ("[" if index else "{"):
        return None
    at, number = _skip(text, at + 1), 0
    while text[at] not in "]}":
        name: Any = str(number)
        if not index:
            name, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, at)
        if name == (index or key):
            return at, end
        at, number = _skip(text, end), number + 1
        at = _skip(text, at + 1) if text[at] == "," else at
    return None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
