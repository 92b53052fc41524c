"""Strict YAML text in, plain data and a position for every key and value out."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvplan.errors import KvplanError, Place, Problem

MAX_BYTES = 1_000_000
MAX_NODES = 100_000
MAX_DEPTH = 40

Path_ = tuple[str | int, ...]

_INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+")
_ODD_BREAK = re.compile("[\x85\u2028\u2029]")
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Document:
    """Plain data of one file and where each part of it stands."""

    path: str
    data: Any
    lines: tuple[str, ...]
    values: dict[Path_, tuple[int, int, int]] = field(default_factory=dict)
    keys: dict[Path_, tuple[int, int, int]] = field(default_factory=dict)

    def place(self, path: Path_, key: bool = False) -> Place:
        """Where a value (or its key) stands; the nearest parent when it is not in the file."""
        while True:
            found = self.keys.get(path) if key else self.values.get(path)
            found = found or self.values.get(path)
            if found or not path:
                break
            path = path[:-1]
        line, column, width = found or (1, 1, 1)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return Place(self.path, line, column, width, text)


def read(
    path: Path, shown: str | None = None, limit: int = MAX_BYTES, inside: Path | None = None
) -> str:
    """The text of a file; every way of not being readable is a Problem.

    A link that leads out of the folder `inside` is one: what it points to would be quoted.
    """
    name = shown or str(path)
    try:
        if inside and not leads_into(path, inside):
            why = "files of a project come from strangers and may not name others"
            fix = "put the file itself in its place"
            raise KvplanError(Problem("the link leads out of the project", why, fix, Place(name)))
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise KvplanError(Problem("not a regular file", "", "name a YAML file", Place(name)))
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise KvplanError(_unreadable(path, name, error)) from None
    if len(raw) > limit:
        why = f"files may have up to {limit:,} bytes; this one has more"
        raise KvplanError(
            Problem("the file is too large", why, "split it by question", Place(name))
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        problem = Problem(
            f"byte 0x{raw[error.start]:02x} is not UTF-8 text",
            "kvplan reads UTF-8 only, so that a number means the same everywhere",
            "save the file as UTF-8",
            Place(name, line, column),
        )
        raise KvplanError(problem) from None


def leads_into(path: Path, folder: Path) -> bool:
    """Whether a path, its links followed, is inside a folder; a broken one is judged later."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return True


def _unreadable(path: Path, name: str, error: OSError | ValueError) -> Problem:
    place = Place(name)
    if isinstance(error, ValueError):
        return Problem("cannot be a file's name", str(error), "check the path", place)
    if isinstance(error, FileNotFoundError):
        if path.is_symlink():
            target = "the link points to a file that does not exist"
            return Problem("broken symbolic link", target, "mend or remove the link", place)
        near = ", ".join(sorted(p.name for p in path.parent.glob("*.yaml"))[:8])
        fix = f"files here: {near}" if near else "check the path"
        return Problem("no such file", "", fix, place)
    if isinstance(error, IsADirectoryError):
        return Problem("is a folder, not a file", "", "name the files: folder/*.yaml", place)
    if isinstance(error, PermissionError):
        return Problem("no permission to read the file", "", "chmod u+r it", place)
    return Problem(f"cannot be read: {error.strerror or error}", "", "", place)


def parse(text: str, path: str) -> Document:
    """Plain data (dict, list, str, int, float, bool, None) with positions.

    YAML 1.2 rules, tightened: no duplicate keys, no octal look-alikes, no tags, no numbers that
    are not finite, aliases expanded only up to MAX_NODES nodes.
    """
    odd = _ODD_BREAK.search(text)
    if odd:
        lines = text[: odd.start() + 1].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        raise KvplanError(
            Problem(
                f"the character U+{ord(odd[0]):04X} breaks lines in YAML, but not in most editors",
                "what a reviewer sees and what is read would differ",
                "replace it by a space or a line break",
                Place(path, len(lines), len(lines[-1]), 1, lines[-1]),
            )
        )
    return _Builder(text, path).document()


class _Builder:
    """Builds data from YAML events, iteratively checked for depth and size."""

    def __init__(self, text: str, path: str) -> None:
        self.path, self.lines = path, tuple(re.split(r"\r\n|[\r\n\x85\u2028\u2029]", text))
        self.values: dict[Path_, tuple[int, int, int]] = {}
        self.keys: dict[Path_, tuple[int, int, int]] = {}
        self.anchors: dict[str, Any] = {}
        self.nodes = 0
        self.problems: list[Problem] = []
        self.events = self._events(text)

    def document(self) -> Document:
        import yaml

        try:
            data = self._stream()
        except yaml.YAMLError as error:
            raise KvplanError(self._syntax(error)) from None
        if self.problems:
            raise KvplanError(self.problems)
        return Document(self.path, data, self.lines, self.values, self.keys)

    def _events(self, text: str) -> Any:
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return yaml.parse(text, Loader=loader)

    def _stream(self) -> Any:
        data, documents = None, 0
        for event in self.events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    self._fail(
                        event,
                        "a second document begins",
                        "a file holds one document",
                        "remove the '---' or split the file",
                    )
            elif kind not in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
                data = self._node(event, ())
        if not documents or data is None:
            self.problems.append(
                Problem(
                    "the file is empty",
                    "",
                    "kvplan new NAME writes a start",
                    Place(self.path, 1, 1),
                )
            )
        return data

    def _node(self, event: Any, path: Path_) -> Any:
        self._count(event, len(path))
        kind = type(event).__name__
        if kind != "AliasEvent":
            self.values[path] = self._span(event)
        if getattr(event, "tag", None) not in (None, "!"):
            self._fail(
                event,
                f"the tag '{event.tag}' is not allowed",
                "experiments are plain data; a tag could name code",
                "remove the tag",
            )
        if kind == "AliasEvent":
            return self._alias(event, path)
        if kind == "ScalarEvent":
            data: Any = self._scalar(event)
        elif kind == "SequenceStartEvent":
            data = self._sequence(path)
        else:
            data = self._mapping(path)
        if event.anchor:
            self.anchors[event.anchor] = (data, path)
        return data

    def _alias(self, event: Any, path: Path_) -> Any:
        if event.anchor not in self.anchors:
            self._fail(event, f"nothing is anchored as '&{event.anchor}' before this", "", "")
        data, origin = self.anchors[event.anchor]
        self.values[path] = self._span(event)
        self._copy_places(data, origin, path, event)
        return data

    def _copy_places(self, data: Any, origin: Path_, path: Path_, event: Any) -> None:
        self._count(event, len(path))
        items = (
            data.items()
            if isinstance(data, dict)
            else enumerate(data)
            if isinstance(data, list)
            else ()
        )
        for key, value in items:
            here, there = (*path, key), (*origin, key)
            self.values[here] = self.values.get(there, self._span(event))
            if there in self.keys:
                self.keys[here] = self.keys[there]
            self._copy_places(value, there, here, event)

    def _sequence(self, path: Path_) -> list[Any]:
        items: list[Any] = []
        for event in self.events:
            if type(event).__name__ == "SequenceEndEvent":
                break
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path_) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for event in self.events:
            if type(event).__name__ == "MappingEndEvent":
                break
            if type(event).__name__ != "ScalarEvent" or event.tag not in (None, "!"):
                self._fail(event, "a key must be plain text", "", "quote it, or use a list")
            key = str(event.value)
            here = (*path, key)
            if key == "<<" and not event.style:
                self._fail(
                    event,
                    "merge keys ('<<') are not supported",
                    "a reviewer should see each value where it is used",
                    "write it out",
                )
            if here in self.keys:
                line = self.keys[here][0]
                self.problems.append(
                    Problem(
                        f"the key '{key}' stands here a second time",
                        f"it stands first in line {line}; one of the two would be lost",
                        "remove or rename one",
                        self._place(event),
                    )
                )
            self.keys[here] = self._span(event)
            items[key] = self._node(next(self.events), here)
        return items

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if event.style:
            return text
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
            return text.lower() == "true"
        if _LEADING_ZERO.fullmatch(text):
            plain = text.replace("_", "").lstrip("+-0") or "0"
            self._fail(
                event,
                f"'{text}' can be read as octal or as decimal",
                "YAML 1.1 and 1.2 disagree on a leading zero",
                f"write {plain}, or quote it if it is text",
            )
        if _NOT_FINITE.fullmatch(text):
            self._fail(
                event,
                f"'{text}' is not a finite number",
                "a plan cannot be computed from it",
                "give a number, or quote it as text",
            )
        if _INT.fullmatch(text):
            if len(text) > 40:
                self._fail(event, "the number has more than 40 digits", "", "use 1e12 style")
            return int(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            number = float(text.replace("_", ""))
            if not math.isfinite(number):
                self._fail(
                    event,
                    f"'{text}' is larger than any number kvplan can hold",
                    "",
                    "check the exponent",
                )
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
        return text

    def _count(self, event: Any, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._fail(
                event,
                f"the file expands to more than {MAX_NODES:,} values",
                "aliases multiply what they point to",
                "write fewer, or no aliases",
            )
        if depth > MAX_DEPTH:
            self._fail(event, f"nested more than {MAX_DEPTH} levels deep", "", "flatten it")

    def _span(self, event: Any) -> tuple[int, int, int]:
        start, end = event.start_mark, event.end_mark
        one_line = start.line == end.line and type(event).__name__ == "ScalarEvent"
        return (
            start.line + 1,
            start.column + 1,
            max(1, end.column - start.column) if one_line else 1,
        )

    def _place(self, event: Any) -> Place:
        line, column, width = self._span(event)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return Place(self.path, line, column, width, text)

    def _control_character(self) -> tuple[int, int]:
        """Where the first character stands that YAML does not allow."""
        for number, line in enumerate(self.lines, start=1):
            for column, char in enumerate(line, start=1):
                if not char.isprintable() and char != "\t":
                    return number, column
        return 1, 1

    def _fail(self, event: Any, what: str, why: str, fix: str) -> None:
        raise KvplanError([*self.problems, Problem(what, why, fix, self._place(event))])

    def _syntax(self, error: Any) -> Problem:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if mark and "end of stream" in reason and getattr(error, "context_mark", None):
            # What was opened and not closed is the fault, not the end of the file.
            mark, reason = error.context_mark, f"{error.context}: {reason}"
        line, column = (mark.line + 1, mark.column + 1) if mark else self._control_character()
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        fix = "check the indentation and quotes of this line and the one before"
        if "\t" in text[: column + 1]:
            reason, fix = "a tab cannot be used for indentation", "indent with spaces"
        return Problem(
            f"not valid YAML: {reason}", "", fix, Place(self.path, line, column, 1, text)
        )
