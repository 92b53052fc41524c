"""Catalog names (or the same written inline) in, entries with a source for every value out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvplan import yamltext
from kvplan.errors import KvplanError, Place, Problem, ValueProblem, suggest
from kvplan.records import Given, Group, Source
from kvplan.registry import Quantity, load_registry
from kvplan.values.show import parse_quantity
from kvplan.workloads.lengths import Lengths, read_lengths
from kvplan.yamltext import Document, Path_

_PACKAGED = Path(__file__).parent
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_META = ("title", "short", "source", "note", "use")
MAX_TEXT = 400
_SOURCE = "source: {title: ..., url: https://..., seen: 2026-01-31}"
# What a model's file says about itself beside the quantities: read by people, not by formulas.
_ABOUT = (
    *("layer_pattern", "draft_groups", "draft_pattern", "model_type", "architecture"),
    *("model_dtype", "weight_dtype", "quantisation", "origins", "not_understood", "notes"),
)
_ABOUT_GROUP = ("kind", "name", "type", "of", "state_dtype")
GROUP_KINDS = (
    *("full", "sliding", "chunked", "mla", "sliding_latent", "compressed"),
    *("recurrent", "cross", "shared", "none"),
)


@dataclass(frozen=True)
class Shelf:
    """A kind of entry: its folder, its word, and how its fields are named in formulas."""

    folder: str
    word: str
    rename: dict[str, str] = field(default_factory=dict)


# What `uses` may name, beside quantities.
SHELVES = {
    "model": Shelf("models", "model", {"ratio": "compress_ratio"}),
    "accelerator": Shelf("accelerators", "accelerator"),
    "tier": Shelf("tiers", "tier"),
    "workload": Shelf("workloads", "workload"),
    "kv_dtype": Shelf("dtypes", "dtype", {"element": "kv_element"}),
    "weight_dtype": Shelf("dtypes", "dtype", {"element": "weight_element"}),
    "state_dtype": Shelf("dtypes", "dtype", {"element": "state_element"}),
    "conv_dtype": Shelf("dtypes", "dtype", {"element": "conv_element"}),
    "indexer_dtype": Shelf("dtypes", "dtype", {"element": "indexer_element"}),
}


@dataclass(frozen=True)
class Entry:
    """A catalog entry: what it gives, each value with its source."""

    id: str
    title: str
    short: str
    givens: dict[str, Given]
    groups: tuple[Group, ...]
    source: Source | None


class Catalog:
    """Entries of the project's own catalog/ first, then those that come with kvplan."""

    def __init__(self, project: Path | None = None) -> None:
        own = [project / "catalog"] if project else []
        self.roots = [root for root in own if os.path.isdir(root)] + [_PACKAGED]
        self.project = project
        self._documents: dict[tuple[str, str], Document | None] = {}

    def names(self, kind: str) -> list[str]:
        """All names of a shelf, in order."""
        folder = SHELVES[kind].folder
        return sorted({file.stem for root in self.roots for file in (root / folder).glob("*.yaml")})

    def entry(self, kind: str, raw: object, document: Document, path: Path_) -> Entry:
        """The entry for a name or an inline mapping; raises KvplanError at its position."""
        if isinstance(raw, str):
            return self._named(kind, raw, document, path)
        if not isinstance(raw, dict):
            raise KvplanError(
                Problem(
                    f"'{kind}' must be a catalog name or a mapping",
                    "",
                    f"kvplan list {SHELVES[kind].word}s",
                    document.place(path),
                )
            )
        base = None
        if "use" in raw:
            base = self._named(kind, raw["use"], document, (*path, "use"))
        return _Reader(kind, document, path, "", document.path, base).entry(raw)

    def packaged(self, kind: str, name: str) -> Entry:
        """An entry by a name known to exist."""
        document = self._document(kind, name)
        assert document
        return _Reader(kind, document, (), name, document.path, None).entry(document.data)

    def _named(self, kind: str, raw: object, document: Document, path: Path_) -> Entry:
        shelf, place = SHELVES[kind], document.place(path)
        name = str(raw)
        found = (
            self._document(kind, name) if isinstance(raw, str) and _NAME.fullmatch(name) else None
        )
        if found is None:
            names = self.names(kind)
            raise KvplanError(
                Problem(
                    f"unknown {shelf.word} '{name}'",
                    f"kvplan list {shelf.word}s names those of the catalog",
                    suggest(name, names) or "name one of them, or write it inline",
                    place,
                )
            )
        return _Reader(kind, found, (), name, found.path, None).entry(found.data)

    def _document(self, kind: str, name: str) -> Document | None:
        key = (SHELVES[kind].folder, name)
        if key not in self._documents:
            self._documents[key] = self._read(*key)
        return self._documents[key]

    def _read(self, folder: str, name: str) -> Document | None:
        for root in self.roots:
            file = root / folder / f"{name}.yaml"
            if os.path.isfile(file):
                shown = f"catalog/{folder}/{name}.yaml"
                inside = root if root is _PACKAGED else self.project
                return yamltext.parse(yamltext.read(file, shown, inside=inside), shown)
        return None


class _Reader:
    """Turns one mapping (a catalog file, or inline) into an Entry, collecting its problems."""

    def __init__(
        self, kind: str, document: Document, path: Path_, name: str, owner: str, base: Entry | None
    ) -> None:
        self.kind, self.document, self.path, self.name = kind, document, path, name
        self.owner, self.base = owner, base
        self.registry = load_registry()
        self.problems: list[Problem] = []
        self.inline = not name

    def entry(self, raw: object) -> Entry:
        if not isinstance(raw, dict):
            raise KvplanError(Problem("a catalog entry is a mapping", "", "", self._place()))
        source = self._source(raw) or (self.base.source if self.base else None)
        groups, base = self._groups(raw, source), self.base
        givens = dict(base.givens) if base else {}
        for key, value in raw.items():
            about = _ABOUT if self.kind == "model" else ()
            if key not in (*_META, *about, "groups", "lengths"):
                self._field(key, value, source, givens)
        if "lengths" in raw:
            self._lengths(raw["lengths"], source, givens)
        title = self._text(raw, "title", base.title if base else self.name)
        if self.inline and "title" not in raw and not base:
            title = "given in the experiment"
        if base and groups is None:
            groups = self._override_groups(base.groups, givens)
        if self.kind == "model" and not groups and "groups" not in raw:
            self._fail(
                "a model needs 'groups', the layers by kind",
                "bytes per token follow from them",
                "groups:\n  - {kind: full, layers: 32, "
                "query_heads: 32, kv_heads: 8, head_dim: 128 element/token}",
                key=True,
            )
        short = self._text(raw, "short", base.short if base else title)
        if self.problems:
            raise KvplanError(self.problems)
        return Entry(
            self.name,
            title,
            short,
            givens,
            groups or (),
            source,
        )

    def _place(self, *steps: str | int, key: bool = False) -> Place:
        return self.document.place((*self.path, *steps), key)

    def _fail(
        self, what: str, why: str = "", fix: str = "", *steps: str | int, key: bool = False
    ) -> None:
        self.problems.append(Problem(what, why, fix, self._place(*steps, key=key)))

    def _source(self, raw: dict[str, Any], *steps: str | int) -> Source | None:
        """The source of an entry, or of the value at `steps`; None where none is given.

        A source is text, or {title, url, seen}, each of them text.
        """
        given, where = raw.get("source"), (*steps, "source")
        if given is None and "source" not in raw and (self.inline or steps):
            return None
        if isinstance(given, str) and given.strip():
            return Source(given)
        if given is None:
            self._fail("an entry needs a source", "every number must be traceable", _SOURCE, *where)
            return None
        parts = given if isinstance(given, dict) else {}
        if "title" not in parts or not set(parts) <= {"title", "url", "seen"}:
            self._fail("a source is text, or has title, url and seen", "", _SOURCE, *where)
        elif not all(isinstance(part, str) and len(part) <= MAX_TEXT for part in parts.values()):
            self._fail(f"a source is text of up to {MAX_TEXT} characters", "", _SOURCE, *where)
        elif not parts.get("url", "https://").startswith(("https://", "http://")):
            what = f"'{parts['url']}' is not the address of a page"
            self._fail(what, "reports link to it", "https://...", *where, "url")
        else:
            return Source(**parts)
        return None

    def _text(self, raw: dict[str, Any], key: str, otherwise: str) -> str:
        """The title or short name, on one line."""
        text = raw.get(key, otherwise)
        if isinstance(text, str) and 0 < len(text) <= MAX_TEXT and text.isprintable():
            return text
        if key in raw:
            self._fail(f"'{key}' must be text on one line, up to {MAX_TEXT} long", "", "", key)
        return otherwise

    def _field(
        self,
        key: str,
        value: object,
        source: Source | None,
        givens: dict[str, Given],
        *steps: str | int,
        group: bool = False,
    ) -> None:
        name = SHELVES[self.kind].rename.get(key, key)
        quantity = self.registry[name] if name in self.registry else None
        if quantity is None or quantity.constant is not None:
            known = [n for n, q in self.registry.quantities.items() if q.is_input]
            self._fail(
                f"unknown key '{key}'",
                f"a {SHELVES[self.kind].word} may give inputs; kvplan list formulas names them",
                suggest(key, known),
                *steps,
                key,
                key=True,
            )
            return
        where = (*steps, key)
        if isinstance(value, dict) and "value" in value:
            for inner in set(value) - {"value", "source"}:
                self._fail(
                    f"unknown key '{inner}'",
                    "a value with its own source has: value, source",
                    suggest(inner, ("value", "source")),
                    *where,
                    inner,
                    key=True,
                )
            source = self._source(value, *where) or source
            value, where = value["value"], (*where, "value")
        if quantity.per == "layer_group" and not group and not self.base:
            self._fail(
                f"'{key}' belongs to a layer group",
                "a model may have several kinds of layer",
                "move it under 'groups'",
                *where,
                key=True,
            )
            return
        try:
            givens[name] = given(quantity, value, self._place(*where), source, self.owner)
        except ValueProblem as error:
            self.problems.append(error.at(self._place(*where)))

    def _lengths(self, raw: object, source: Source | None, givens: dict[str, Given]) -> None:
        try:
            lengths = read_lengths(raw)
        except ValueProblem as error:
            where = self._place("lengths", *error.path, key="unknown key" in error.what)
            self.problems.append(error.at(where))
            return
        for name in ("prompt_tokens", "output_tokens"):
            givens[name] = Given(
                name, lengths, lengths.summary(name), self._place("lengths"), source, self.owner
            )

    def _groups(self, raw: dict[str, Any], source: Source | None) -> tuple[Group, ...] | None:
        given_groups = raw.get("groups")
        if given_groups is None:
            return None
        if not isinstance(given_groups, list) or not given_groups:
            self._fail("'groups' must be a list of layer groups", "", "", "groups")
            return None
        return tuple(self._group(item, index, source) for index, item in enumerate(given_groups))

    def _group(self, raw: object, index: int, source: Source | None) -> Group:
        steps = ("groups", index)
        if not isinstance(raw, dict):
            self._fail("a layer group is a mapping", "", "{kind: full, layers: 32, ...}", *steps)
            return Group("", "", {})
        kind = raw.get("kind")
        if kind not in GROUP_KINDS:
            self._fail(
                f"unknown kind of layer '{kind}'" if kind else "a layer group needs a kind",
                f"kinds: {', '.join(GROUP_KINDS)}",
                suggest(kind, GROUP_KINDS) if kind else "",
                *steps,
                "kind",
            )
        givens: dict[str, Given] = {}
        for key, value in raw.items():
            if key not in _ABOUT_GROUP:
                self._field(key, value, source, givens, *steps, group=True)
        for problem in check_group(givens):
            self.problems.append(problem)
        return Group(str(raw.get("name", kind)), str(kind), givens)

    def _override_groups(
        self, groups: tuple[Group, ...], givens: dict[str, Given]
    ) -> tuple[Group, ...]:
        mine = {n: givens.pop(n) for n in list(givens) if self.registry[n].per == "layer_group"}
        what_if = self.path[:1] != ("uses",)
        return override_groups(groups, mine.values(), self.problems, what_if)


def given(
    quantity: Quantity, raw: object, place: Place | None, source: Source | None, owner: str
) -> Given:
    """A value of a quantity, converted and checked against its limits."""
    value = parse_quantity(raw, quantity.unit, quantity.name)
    shown = str(raw)
    if quantity.whole and value != int(value):
        raise ValueProblem(f"'{quantity.name}' must be a whole number, not {shown}")
    if quantity.above is not None and value <= quantity.above:
        raise ValueProblem(
            f"'{quantity.name}' must be more than {quantity.above:g}, not {shown}", quantity.doc
        )
    if quantity.at_least is not None and value < quantity.at_least:
        raise ValueProblem(
            f"'{quantity.name}' must be at least {quantity.at_least:g}, not {shown}", quantity.doc
        )
    if quantity.at_most is not None and value > quantity.at_most:
        raise ValueProblem(
            f"'{quantity.name}' must be at most {quantity.at_most:g}, not {shown}", quantity.doc
        )
    if abs(value) > 1e30:
        raise ValueProblem(f"'{quantity.name}' of {shown} is larger than any machine")
    return Given(quantity.name, value, shown, place, source, owner)


def check_group(givens: dict[str, Given]) -> list[Problem]:
    """What cannot be true of a layer's heads, whatever the model."""
    query, kv = givens.get("query_heads"), givens.get("kv_heads")
    if not query or not kv:
        return []
    if kv.value > query.value:
        return [
            Problem(
                f"{kv.value} KV heads are more than the {query.value} query heads",
                "each KV head serves one or more query heads",
                "check whether the two are swapped",
                kv.place,
            )
        ]
    if query.value % kv.value:
        return [
            Problem(
                f"{kv.value} KV heads do not divide {query.value} query heads",
                "each KV head serves the same number of query heads",
                "read num_key_value_heads from the model's config",
                kv.place,
            )
        ]
    return []


def _query_heads_meant(group: Group, made: Given) -> list[Problem]:
    """Query heads given as KV heads of a model that is known to have fewer of these."""
    query, kv = group.givens.get("query_heads"), group.givens["kv_heads"]
    if not query or made.value != query.value or kv.value == query.value:
        return []
    return [
        Problem(
            f"{made.value} is the number of query heads; the model keeps {kv.value} KV heads",
            f"with query heads in their place, KV would be {query.value / kv.value:g}x too large",
            "remove 'kv_heads'; to ask what if, give it in 'with', 'rows' or 'cases'",
            made.place,
        )
    ]


def override_groups(
    groups: tuple[Group, ...],
    overrides: Iterable[Given],
    problems: list[Problem],
    what_if: bool = True,
) -> tuple[Group, ...]:
    """The groups with values of a layer replaced; only clear when one group has the value.

    Where the model itself is stated (not `what_if`), its query heads given as KV heads are flagged.
    """
    changed = list(groups)
    for one in overrides:
        holders = [i for i, g in enumerate(groups) if one.name in g.givens]
        if len(holders) != 1:
            why = (
                f"{len(holders)} layer groups have it"
                if holders
                else "no layer group of the model has it"
            )
            problems.append(
                Problem(
                    f"'{one.name}' cannot be overridden for this model",
                    why,
                    "write the model inline with its groups",
                    one.place,
                )
            )
            continue
        group = changed[holders[0]]
        if one.name == "kv_heads" and not what_if:
            problems.extend(_query_heads_meant(group, one))
        changed[holders[0]] = Group(group.name, group.kind, {**group.givens, one.name: one})
    for group in changed:
        problems.extend(check_group(dict(group.givens)))
    return tuple(changed)


__all__ = ["SHELVES", "Catalog", "Entry", "Lengths", "given", "override_groups"]
