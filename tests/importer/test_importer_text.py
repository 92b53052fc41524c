"""Patterns, positions, YAML text, quantisation blocks, and what an import must not load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import KvplanError, ValueProblem
from kvplan.importer import (
    Origin,
    compress_pattern,
    expand_pattern,
    import_config,
    parse_config,
    to_yaml,
    write_catalog_file,
)
from kvplan.importer.document import locate
from kvplan.importer.quantisation import describe

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "rope_theta": 500000.0,
    "head_start": 3,
}
ORIGIN = Origin(
    "config.json of a model", "https://example.org/config.json", "2026-11-30", "A: model"
)


@given(st.lists(st.sampled_from(["full", "sliding", "full+recurrent"]), max_size=60))
def test_a_pattern_expands_to_what_was_compressed(names: list[str]) -> None:
    """Compressing loses nothing."""
    assert expand_pattern(compress_pattern(names)) == names


@pytest.mark.parametrize(
    "text", ["(full", "full)", "full*", "full*x", "*3", "full*999999", "3 full"]
)
def test_a_broken_pattern_is_a_problem(text: str) -> None:
    """Bad patterns are named, not guessed."""
    with pytest.raises(ValueProblem, match="the layer pattern"):
        expand_pattern(text)


def test_values_are_located_in_the_text() -> None:
    """A path leads to the value's own characters, the nearest parent otherwise."""
    text = '{"a": 1, "b": {"c": [10, {"d": "x, y"}]}}'
    paths = {"$.a": "1", "$.b.c[0]": "10", "$.b.c[1].d": '"x, y"', "$.b.e": text[14:40]}
    for path, expected in paths.items():
        start, end = locate(text, path)
        assert text[start:end] == expected


def test_the_catalog_file_says_what_the_model_holds() -> None:
    """Groups, counts, origins and what was not understood, as YAML."""
    model = import_config(LLAMA, "llama-3.1-8b")
    text = to_yaml(model, ORIGIN)
    data = yaml.safe_load(text)
    assert data["title"] == "A: model"
    assert data["source"] == {"title": ORIGIN.title, "url": ORIGIN.url, "seen": ORIGIN.seen}
    assert data["groups"] == [
        {"kind": "full", "layers": 32, "query_heads": 32, "kv_heads": 8, "head_dim": 128}
    ]
    assert data["parameters"] == 8_030_261_248
    assert data["embedding_parameters"] == 2 * 128256 * 4096
    assert data["max_context"] == "131072 token"
    assert data["weight_dtype"] == "bf16"
    assert data["origins"]["full.kv_heads"] == "config.json: num_key_value_heads"
    assert data["not_understood"] == ["head_start"]
    assert to_yaml(model, ORIGIN) == text


def test_a_catalog_file_is_written_whole(tmp_path: Path) -> None:
    """The file bears the model's name; nothing else is left beside it."""
    model = import_config(LLAMA, "llama-3.1-8b")
    path = write_catalog_file(model, ORIGIN, tmp_path / "models")
    assert path.read_text(encoding="utf-8") == to_yaml(model, ORIGIN)
    assert [p.name for p in path.parent.iterdir()] == ["llama-3.1-8b.yaml"]


def test_every_key_is_accounted_for() -> None:
    """Read, ignored and not understood keys are all the keys there are."""
    keys = import_config(parse_config(json.dumps(LLAMA), "x"), "x").keys
    assert sorted(keys.read + keys.ignored + keys.not_understood) == sorted(LLAMA)
    assert {"rope_theta"} <= set(keys.ignored)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, "mxfp4"),
        ({"quant_algo": "NVFP4", "quant_method": "modelopt"}, "nvfp4"),
        ({"quant_algo": "MIXED_PRECISION"}, "mixed"),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            "nf4",
        ),
        ({"config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        ({"config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4"),
        ({"group_size": 64, "bits": 8}, "int8"),
    ],
)
def test_the_weight_format_of_a_quantisation_block(block: dict[str, object], expected: str) -> None:
    """Each producer's spelling gives one common word."""
    assert describe(block)["weights"] == expected


def test_the_cache_format_a_checkpoint_asks_for() -> None:
    """kv_cache_scheme as a word or as a scheme."""
    scheme = {"num_bits": 8, "type": "float", "dynamic": False}
    assert describe({"kv_cache_scheme": scheme})["kv_cache"] == "fp8"
    assert describe({"kv_cache_scheme": "FP8"})["kv_cache"] == "fp8"
    assert "kv_cache" not in describe({"quant_method": "fp8", "kv_cache_scheme": None})


def test_importing_loads_neither_numpy_nor_pydantic() -> None:
    """A config is read in a fraction of a second because nothing heavy is loaded for it."""
    code = (
        "import sys, json; from kvplan.importer import import_config; "
        f"import_config(json.loads({json.dumps(json.dumps(LLAMA))}), 'x'); "
        "print([m for m in ('numpy', 'pydantic', 'yaml', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["../x", "A", "a b", "", "a/b", ".hidden"])
def test_an_id_that_is_no_file_name_is_refused(name: str, tmp_path: Path) -> None:
    """Nothing is written outside the folder."""
    with pytest.raises(KvplanError, match="is no id of a catalog file"):
        write_catalog_file(import_config(LLAMA, name), ORIGIN, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_list_is_no_config() -> None:
    """What the JSON reader would refuse is refused here too."""
    with pytest.raises(KvplanError, match="the config is a list"):
        import_config([LLAMA], "x")  # type: ignore[arg-type]
