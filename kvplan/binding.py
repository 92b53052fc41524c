"""What is given for a cell: catalog entries and quantities, laid over what was given before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvplan.catalog import SHELVES, Catalog, Entry, given, override_groups
from kvplan.errors import KvplanError, Place, Problem, ValueProblem, suggest
from kvplan.records import Binding, Given
from kvplan.registry import load_registry
from kvplan.values.show import byte_prefix
from kvplan.yamltext import Document, Path_


class Binder:
    """Extends bindings by overrides of one document, collecting what is wrong with them."""

    def __init__(self, project: Path, document: Document, problems: list[Problem]) -> None:
        self.catalog = Catalog(project)
        self.document, self.problems = document, problems
        self.registry = load_registry()
        self._entries: dict[Path_, Entry | None] = {}

    def extend(self, base: Binding, overrides: Mapping[str, Any], path: Path_) -> Binding:
        """The binding with `overrides` (catalog names and quantities) laid over it."""
        if not overrides:
            return base
        return self.extend_axes(base, overrides, {key: (*path, key) for key in overrides})

    def extend_axes(
        self, base: Binding, overrides: Mapping[str, Any], places: Mapping[str, Path_]
    ) -> Binding:
        """As `extend`, where each override has a place of its own."""
        givens, groups = dict(base.givens), base.groups
        labels, shorts = dict(base.labels), dict(base.shorts)
        for key in (k for k in overrides if k in SHELVES):
            entry = self._entry(key, overrides[key], places[key])
            if entry is None:
                continue
            givens.update(entry.givens)
            labels[key], shorts[key] = entry.title, entry.short
            groups = entry.groups if key == "model" else groups
        layer_values: list[Given] = []
        for key in (k for k in overrides if k not in SHELVES):
            made = self._quantity(key, overrides[key], places[key])
            if made is None:
                continue
            if self.registry[key].per == "layer_group":
                layer_values.append(made)
            else:
                givens[key] = made
        if layer_values and not groups and not self._model_failed():
            self.problems.append(
                Problem(
                    f"'{layer_values[0].name}' belongs to a model, and none is named",
                    "",
                    "model: NAME, or a mapping",
                    layer_values[0].place,
                )
            )
        elif layer_values and groups:
            what_if = all(places[g.name][:1] != ("uses",) for g in layer_values)
            groups = override_groups(groups, layer_values, self.problems, what_if)
        binding = Binding(givens, groups, labels, shorts, base.engine)
        self.problems.extend(_contradictions(binding, overrides))
        return binding

    def _model_failed(self) -> bool:
        return any(path[-1] == "model" and not entry for path, entry in self._entries.items())

    def _entry(self, kind: str, raw: object, path: Path_) -> Entry | None:
        if path not in self._entries:
            try:
                self._entries[path] = self.catalog.entry(kind, raw, self.document, path)
            except KvplanError as error:
                self.problems.extend(error.problems)
                self._entries[path] = None
            entry = self._entries[path]
            if entry and kind == "accelerator" and "peak_flops" in entry.givens:
                self._check_peak(entry.givens["peak_flops"], "sparse_peak_flops" in entry.givens)
        return self._entries[path]

    def _quantity(self, key: str, raw: object, path: Path_) -> Given | None:
        place = self.document.place(path, key=raw is None)
        quantity = self.registry[key] if key in self.registry else None
        if quantity is None:
            names = [*SHELVES, *self.registry.quantities]
            self.problems.append(
                Problem(
                    f"unknown input '{key}'",
                    "inputs are catalog names (" + ", ".join(SHELVES) + ") and quantities",
                    suggest(key, names),
                    self.document.place(path, key=True),
                )
            )
            return None
        if quantity.constant is not None or quantity.per == "request":
            self.problems.append(
                Problem(
                    f"'{key}' cannot be given here",
                    quantity.doc,
                    "give a workload" if quantity.per else "",
                    place,
                )
            )
            return None
        try:
            made = given(quantity, raw, place, None, self.document.path)
        except ValueProblem as error:
            self.problems.append(error.at(place))
            return None
        if key == "peak_flops":
            self._check_peak(made, False)
        if key == "device_memory" and byte_prefix(raw) == "decimal":
            self.problems.append(
                Problem(
                    f"'{key}' is given as {raw}, in powers of ten",
                    "drivers report powers of two; a card sold as 80 GB reports about 79.6 GiB",
                    "write what the driver reports, in MiB or GiB",
                    place,
                )
            )
        return made

    def _check_peak(self, made: Given, has_sparse: bool) -> None:
        """Flags a with-sparsity figure given as the dense peak."""
        if has_sparse or (made.place and made.place.path.startswith("catalog/")):
            return
        for name in self.catalog.names("accelerator"):
            known = self.catalog.packaged("accelerator", name)
            dense, sparse = (known.givens.get(f) for f in ("peak_flops", "sparse_peak_flops"))
            if not dense or not sparse:
                continue
            if _near(made.value, dense.value):
                return
            if _near(made.value, sparse.value):
                self.problems.append(
                    Problem(
                        f"{made.text} is the with-sparsity peak of {known.title}",
                        "weights of language models are dense, so this doubles the speed of "
                        "everything",
                        f"use the dense peak, {dense.text}; if your figure is dense, "
                        "give sparse_peak_flops beside it",
                        made.place,
                    )
                )
                return


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 0.02 * b


def _contradictions(binding: Binding, changed: Mapping[str, Any]) -> list[Problem]:
    """Pairs of inputs that cannot both be meant."""
    return [*_same_number_of_bytes(binding, changed), *_page_in_reservation(binding, changed)]


def _same_number_of_bytes(binding: Binding, changed: Mapping[str, Any]) -> list[Problem]:
    """The same number once as GB and once as GiB: one of the two was misread."""
    written: dict[tuple[str, str], Given] = {}
    for one in binding.givens.values():
        kind = byte_prefix(one.text)
        if not kind or one.text.endswith("/s"):
            continue
        bare = one.text.replace("i", "").replace(" ", "")
        other = written.get((bare, "decimal" if kind == "binary" else "binary"))
        if other and {one.name, other.name} & set(changed):
            late = one if one.name in changed else other
            return [
                Problem(
                    f"'{other.name}' is {other.text} and '{one.name}' is {one.text}",
                    "the same number in powers of ten and of two: 1 GiB is 7 % more than 1 GB",
                    "if both are meant, write one of them in bytes",
                    late.place,
                )
            ]
        written[bare, kind] = one
    return []


def _page_in_reservation(binding: Binding, changed: Mapping[str, Any]) -> list[Problem]:
    page, reserve = binding.givens.get("page"), binding.givens.get("reserve")
    if page and reserve and page.value > reserve.value and {"page", "reserve"} & set(changed):
        return [
            Problem(
                f"a page of {page.text} is larger than the reservation of {reserve.text}",
                "a reservation holds whole pages",
                "make the page smaller",
                page.place if "page" in changed else reserve.place,
            )
        ]
    return []


def set_document(overrides: tuple[str, ...]) -> tuple[dict[str, str], Document]:
    """`--set name=value` words as a mapping with a position each."""
    found: dict[str, str] = {}
    places: dict[Path_, tuple[int, int, int]] = {}
    problems = []
    for number, word in enumerate(overrides, start=1):
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            problems.append(
                Problem(
                    f"'{word}' is not of the form name=value",
                    "",
                    'for instance --set kv_budget="40 GiB"',
                    Place("--set", number, 1, len(word), word),
                )
            )
        elif name.strip() in found:
            problems.append(
                Problem(
                    f"'{name.strip()}' is set twice",
                    "only one of the two could count",
                    "give it once",
                    Place("--set", number, 1, len(name), word),
                )
            )
        found[name.strip()] = value.strip()
        places[(name.strip(),)] = (number, len(name) + 2, max(1, len(value)))
    if problems:
        raise KvplanError(problems)
    return found, Document("--set", found, overrides, places, places)
