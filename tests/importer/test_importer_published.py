"""Published configs import, and agree with what is known of them. Skipped where they are absent."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from published import configs, research, rows

from kvplan.importer import (
    ImportedModel,
    Origin,
    expand_pattern,
    import_config,
    read_config,
    to_yaml,
)

EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "expected.yaml").read_text(encoding="utf-8")
)
TOTALS = {"full": "growth", "mla": "growth", "sliding": "windowed", "chunked": "chunked"}
LETTERS = {"F": "full", "S": "sliding", "C": "chunked", "L": "recurrent", "M": "recurrent",
           "V": "recurrent", "E": "none", "-": "none", "X": "cross"}  # fmt: skip

pytestmark = pytest.mark.skipif(research() is None, reason="the published configs are absent")


def load(path: Path) -> ImportedModel:
    """Import one file."""
    return import_config(read_config(path), path.stem)


def summary(model: ImportedModel) -> dict[str, Any]:
    """Layers by kind, and cached numbers per token or request by kind."""
    kinds: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for group in model.groups:
        f: dict[str, Any] = dict(group.fields)
        kinds[group.kind] += group.layers
        if group.kind == "mla":
            each = f["latent"] + f["rope_dim"]
        else:
            size = f.get("head_dim", 0)
            each = f.get("kv_heads", 0) * (size + f.get("value_head_dim", size))
        name = TOTALS.get(group.kind, "encoder" if group.kind == "cross" else "")
        totals[name] += group.layers * each
        if group.kind in TOTALS:
            totals["index_keys"] += group.layers * f.get("indexer_dim", 0)
        totals["state"] += group.layers * (f.get("conv_elements", 0) + f.get("state_elements", 0))
    del totals[""]
    return {"kinds": dict(kinds), **{k: n for k, n in totals.items() if n}}


@pytest.mark.parametrize("path", configs(), ids=lambda p: p.stem)
def test_every_published_config_imports(path: Path) -> None:
    """A catalog file comes out, and it is YAML that says the same."""
    model = load(path)
    data = yaml.safe_load(to_yaml(model, Origin("t", "u", "2026-11-30")))
    assert sum(g["layers"] for g in data["groups"] if g["kind"] != "x") >= model.layers
    assert data["parameters"] == model.parameters


@pytest.mark.parametrize("stem", EXPECTED)
def test_kinds_and_sizes_are_as_expected(stem: str) -> None:
    """Layers by kind, numbers cached per token, and the published parameter count within 1 %."""
    path = next((p for p in configs() if p.stem == stem), None)
    if path is None:
        pytest.skip("this config is absent")
    model, expected = load(path), dict(EXPECTED[stem])
    parameters = expected.pop("parameters", None)
    assert summary(model) == expected
    if parameters is not None:
        assert model.parameters == pytest.approx(parameters, rel=0.01)


@pytest.mark.parametrize("row", rows(), ids=lambda r: Path(r["config_file"]).stem)
def test_cross_checked_facts_agree(row: dict[str, Any]) -> None:
    """Every field that the cross-checked table gives of this model."""
    folder = research()
    assert folder is not None
    model = load(folder / row["config_file"])
    plain = {"layers": "num_hidden_layers", "hidden_size": "hidden_size",
             "vocab_size": "vocab_size", "max_context": "max_position_embeddings"}  # fmt: skip
    for ours, theirs in plain.items():
        assert row.get(theirs) is None or getattr(model, ours) == row[theirs], theirs
    heads = [g.fields for g in model.groups if "kv_heads" in g.fields]
    names = {"query_heads": "num_attention_heads", "kv_heads": "num_key_value_heads",
             "head_dim": "head_dim"}  # fmt: skip
    for ours, theirs in names.items():
        if heads and "sliding_layers" not in row and row.get(theirs) is not None:
            assert row[theirs] in {f[ours] for f in heads}, theirs
    if "mla" in row:
        latents = {(g.fields["latent"], g.fields["rope_dim"]) for g in model.groups
                   if g.kind == "mla"}  # fmt: skip
        assert latents == {(row["mla"]["kv_lora_rank"], row["mla"]["qk_rope_head_dim"])}
    if row.get("sliding_window"):
        windows = {g.fields["window"] for g in model.groups if "window" in g.fields}
        assert windows == {f"{row['sliding_window']} token"}
    agree_on_layers(model, row)
    agree_on_elements(model, row)
    agree_on_parameters(model, row)


def agree_on_layers(model: ImportedModel, row: dict[str, Any]) -> None:
    """The kind of each layer in order, and the number of draft layers."""
    pattern = row.get("layer_pattern") or ""
    if not set(pattern) - set(LETTERS):
        kinds = {g.name: g.kind for g in model.groups}
        same = {"mla": "full", "shared": "full"}
        ours = [kinds[n.split("+")[0]] for n in expand_pattern(model.layer_pattern)]
        assert [same.get(k, k) for k in ours] == [LETTERS[c] for c in pattern]
    if row.get("mtp_layers") and row["model_type"] != "nemotron_h":
        # A draft step of Nemotron-H is two blocks: attention and experts.
        assert sum(g.layers for g in model.draft_groups) == row["mtp_layers"]


def agree_on_elements(model: ImportedModel, row: dict[str, Any]) -> None:
    """Numbers cached per token, by kind of layer."""
    ours, theirs = summary(model), row.get("kv_elements_per_token") or {}
    keys = {"unbounded": "growth", "sliding_window": "windowed",
            "cross_attention_per_vision_token": "encoder",
            "cross_attention_per_encoder_token": "encoder"}  # fmt: skip
    for theirs_key, ours_key in keys.items():
        if theirs.get(theirs_key) is not None:
            assert ours.get(ours_key, 0) == theirs[theirs_key], theirs_key


def agree_on_parameters(model: ImportedModel, row: dict[str, Any]) -> None:
    """Exact counts to the last digit of the text model, stated ones within 1 %."""
    counts = row.get("params") or {}
    if counts.get("text_total_computed") and model.parameters is not None:
        tower = model.vision_parameters or 0
        assert model.parameters - tower == counts["text_total_computed"]
    # Names round: only counts that a source states are held to 1 %. The vision tower of Llama 4
    # Scout is part of its stated count and not of these trimmed files; Kimi-K2's is "1 trillion".
    rounded = ("llama4", "kimi_k2")
    held = counts.get("kind") != "nominal" and row["model_type"] not in rounded
    if counts.get("total") and held:
        assert model.parameters == pytest.approx(counts["total"], rel=0.01)
