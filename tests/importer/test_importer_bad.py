"""Every mistake in tests/importer/bad gives its exact message; nothing else is ever raised."""

from pathlib import Path

import pytest

from kvplan.errors import KvplanError
from kvplan.importer import import_config, read_config

BAD = Path(__file__).parent / "bad"
MISTAKES = sorted(BAD.glob("*.json"))


def message(path: Path) -> str:
    """What a reader is told about a config, with the file named as if it stood alone."""
    with pytest.raises(KvplanError) as caught:
        import_config(read_config(path), path.stem)
    return str(caught.value).replace(str(path), path.name) + "\n"


@pytest.mark.parametrize("path", MISTAKES, ids=lambda p: p.stem)
def test_the_message_is_exact(path: Path) -> None:
    """The message names file, line and column, and what to do."""
    assert message(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_every_message_has_its_mistake() -> None:
    """No text without a config."""
    assert {p.stem for p in BAD.glob("*.txt")} == {p.stem for p in MISTAKES}


def test_200_megabytes_are_refused_unread(tmp_path: Path) -> None:
    """The size is looked at before the content."""
    path = tmp_path / "config.json"
    with path.open("wb") as stream:
        stream.truncate(200_000_000)
    with pytest.raises(KvplanError, match="the file has 200,000,000 bytes"):
        read_config(path)


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    """No traceback for a path that leads nowhere."""
    with pytest.raises(KvplanError, match="no such file"):
        read_config(tmp_path / "config.json")


def test_a_plain_mapping_needs_no_text() -> None:
    """Without a text the place is the model's name."""
    with pytest.raises(KvplanError) as caught:
        import_config({"model_type": "quokka", "num_hidden_layers": 2}, "my-model")
    assert str(caught.value).startswith("my-model: model_type names an architecture not known here")
