"""The catalog that comes with kvplan: every entry can be read and says where it is from."""

from __future__ import annotations

import pytest

from kvplan.catalog import SHELVES, Catalog

CATALOG = Catalog()
NAMES = [(kind, name) for kind in SHELVES for name in CATALOG.names(kind)]


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=lambda part: part)
def test_an_entry_can_be_read_and_has_a_source(kind: str, name: str) -> None:
    """No entry has a fault, and none is without a source."""
    entry = CATALOG.packaged(kind, name)
    assert entry.source
    assert all(value.source for value in entry.givens.values())


def test_sixty_models_over_all_kinds() -> None:
    """The kinds of layer that have formulas each have a model."""
    models = [CATALOG.packaged("model", name) for name in CATALOG.names("model")]
    assert len(models) >= 60
    kinds = {group.kind for model in models for group in model.groups}
    assert kinds >= {"full", "sliding", "chunked", "mla", "recurrent", "cross", "shared", "none"}
