"""Every planner case of the research data gives exactly what the release's planner answered."""

from __future__ import annotations

import pytest

from kvplan.engines.sglang import state_bytes_per_request
from kvplan.engines.sglang_cells import SglangSettings
from kvplan.engines.vllm.caches import state_bytes
from kvplan.engines.vllm.versions import rules_for
from tests.engines.planner import settings_of, sglang_answer, shape_of, vllm_answer
from tests.engines.research import OUT_OF_SCOPE, read_cases

CASES = {case["id"]: case for case in read_cases("planner_cases.jsonl")}
ANSWERS = {"vllm": vllm_answer, "sglang": sglang_answer}
NEEDED = pytest.mark.skipif(not CASES, reason="the research data is not here")


@NEEDED
@pytest.mark.parametrize("name", CASES)
def test_planner_case(name: str) -> None:
    """Groups, blocks, tokens, concurrency, refusals and estimates, one by one."""
    if name in OUT_OF_SCOPE["planner_cases"]:
        pytest.skip(OUT_OF_SCOPE["planner_cases"][name])
    case = CASES[name]
    answer = ANSWERS[case["engine"]](case)
    wrong = {
        key: (answer.get(key), expected)
        for key, expected in case["expected"].items()
        if answer.get(key) != expected
    }
    assert wrong == {}


@NEEDED
def test_states_have_the_bytes_the_engine_reports() -> None:
    """States are computed from dimensions; the files also give the bytes of a rank."""
    seen = 0
    for case in CASES.values():
        shape, i = shape_of(case["inputs"]), case["inputs"]
        given = {
            g["state_bytes_per_rank"] * g["count"]
            for g in i["layer_groups"]
            if g["kind"] == "mamba"
        }
        if not given:
            continue
        if case["engine"] == "sglang":
            ssm = {"float32": "fp32", "bfloat16": "bf16"}[i["mamba_ssm_dtype"]]
            settings = SglangSettings(i["context_len"], ssm_dtype=ssm)
            total = state_bytes_per_request(shape, settings, i["tensor_parallel"])
        else:
            rules = rules_for(case["version"])
            total = sum(
                g.layers * state_bytes(g, settings_of(case), rules, i["tensor_parallel"])
                for g in shape.groups
                if g.kind == "recurrent"
            )
        assert total == sum(given), case["id"]
        seen += 1
    assert seen
