"""Mutated input gives a result or a KvplanError with a position; anything else is a bug.

The suite runs the same 2,000 and more mutations every time. `KVPLAN_FUZZ=100000` in the
environment runs that many of each kind, drawn anew.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvplan import axes, yamltext
from kvplan.address import find_cell
from kvplan.errors import KvplanError, ValueProblem
from kvplan.evaluate import evaluate
from kvplan.judge import judge
from kvplan.load import load
from kvplan.pipeline import Run
from kvplan.prose import fill, typed_digits
from kvplan.records import Results
from kvplan.render import report
from kvplan.resolve import resolve
from kvplan.values import simulate
from kvplan.workloads import lengths

ROOT = Path(__file__).parent.parent
BASE = """\
title: Pages
question: How many requests fit in {{ cell("held") }}?
uses:
  model:
    source: a card
    parameters: 7e9
    groups:
      - {kind: full, layers: 4, query_heads: 8, kv_heads: 2, head_dim: 64}
      - {kind: full, layers: 2, query_heads: 8, kv_heads: 4, head_dim: 64}
  kv_dtype: fp16
  kv_budget: 1 GiB
  workload: {lengths: {list: [9 token, 200 token, 3e3 token], output: [1 token, 2 token, 9 token]}}
  accelerator: h100-sxm-80gb
  tensor_parallel: 2
  page: 16 token
values:
  held: {of: paged_bytes, with: {page: 8 token}, unit: MiB, digits: 1}
  twice: {derive: "2 * held / total(group_kv_per_token)", unit: token}
tables:
  sweep:
    note: See {{ cell("sweep[page=22, kv_budget=2].batch") }}.
    rows: {page: {from: 1 token, to: 64 token, points: 4}, kv_budget: [1 GiB, 2 GiB]}
    columns:
      - page
      - batch: paged_batch
      - waste: {of: paged_internal_waste, unit: "%", digits: 2}
      - many: {when: batch > 2, then: "yes", otherwise: "no"}
  named:
    cases: {small: {page: 8 token}, "large, \\"one\\"": {kv_budget: 4 GiB, model: 8b-gqa}}
    columns:
      - name: {label: case}
      - per_token: kv_per_token
      - fast:
          names: {entity: tier, among: [hbm3, nvme], when: tier_bandwidth > 0 * tier_bandwidth}
claims:
  - id: page_bytes
    says: a page is small
    cell: named["small"].per_token
    at_most: 1 MiB/token
    derivation: "2 * 64 * 2 * (4 * 2 + 2 * 4)"
  - id: cancels
    says: it does not depend on the page
    constant: break_even_bandwidth
    over: {prefix: {from: 1 token, to: 1024 token, points: 8, spacing: log}}
takeaway: The batch is {{ cell("sweep[page=1, kv_budget=1].batch") }} ({{ cite("2023") }}).
"""
TEXTS = [BASE, *(p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("experiments/*.yaml")))]
TOKENS = [
    *"{}[]:,-#&*!|>'\"%@`\t\n \\?~=<()+/._0189aB",
    *("- ", ": ", "\n  ", "\n- ", "null", "true", "no", "1e9", "1e400", ".inf", ".nan", "-1", "0"),
    *(
        "010",
        "99999999999999999999",
        "GiB",
        "GB",
        "token",
        "%",
        "x",
        "{}",
        "[]",
        '""',
        "<<: ",
        "*a",
    ),
    *("&a ", "!!python/none ", "---\n", "...\n", "{{ ", " }}", '{{ cell("x") }}', "title", "page"),
    *("model", "kv_heads", "batch", "tables", "values", "with", "of", "derive", "\x00", "\ufeff"),
    *("\u202e", "é", "界", "\U0001f600", "\r\n", "\x85", "\u2028", "1/0", "2**63", "9**9"),
]
WEIRD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        1e308,
        -1e-308,
        2**63,
        10**39,
        "",
        " ",
        "x",
        "nan",
        "1e400 GiB",
    ),
    *(
        "16 token",
        "1 GiB",
        "1 GB",
        "80 %",
        "70b-gqa",
        "../x",
        "page",
        "batch",
        "1/0",
        "a\nb",
        "0 token",
    ),
    *({}, [], [[]], {"": ""}, {"a": None}, [None], ["16 token", "8 token"], {"value": "1 GiB"}),
    *(
        {"use": "70b-gqa"},
        {"from": 1, "to": 2, "points": 3},
        {"of": "page"},
        {"derive": "page * 2"},
    ),
    *(
        {"value": "1 GiB", "source": {"titel": "x"}},
        {"values": [1, 2], "unit": "token"},
        "{{",
        "[0]",
    ),
    *(
        {"title": [1], "source": 3},
        {"lengths": {"list": ["1 token"]}},
        {"groups": [{"kind": ["x"]}]},
    ),
]
MANY = int(os.environ.get("KVPLAN_FUZZ", "0"))


def cases(number: int) -> Any:
    """Settings for a number of examples, the same in every run unless more are asked for."""
    return settings(
        max_examples=MANY or number,
        derandomize=not MANY,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "MAX_REQUESTS", 5_000)
    monkeypatch.setattr(axes, "MAX_CELLS", 2_000)
    monkeypatch.setattr(simulate, "MAX_DRAWS", 5_000)


def outcome(path: Path, overrides: tuple[str, ...] = ()) -> Results | None:
    """An experiment's results, or nothing where it is refused properly."""
    try:
        experiment = load(path)
        typed_digits(experiment)
        results = evaluate(resolve(experiment, overrides))
        done = Run(results, judge(results))
        json.dumps(done.golden, allow_nan=False)
        report(results, done.verdicts)
    except KvplanError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.what and problem.place and problem.place.line > 0 < problem.place.column
            assert len(str(problem)) < 5_000
        return None
    return results


@st.composite
def mutated_texts(draw: st.DrawFn) -> bytes:
    """A valid experiment with some spans removed, doubled, moved, or replaced by odd tokens."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from((0, 0, 1, 1, 2, 5, 20, 100))))
        kind = draw(st.integers(0, 9))
        other = draw(st.integers(0, len(text)))
        new = text[other : other + end - start] if kind == 0 else draw(st.sampled_from(TOKENS))
        text = text[:start] + new + text[end:]
    raw = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        spot = draw(st.integers(0, len(raw)))
        raw = raw[:spot] + bytes([draw(st.integers(0, 255))]) + raw[spot + 1 :]
    return raw


@st.composite
def mutated_trees(draw: st.DrawFn) -> str:
    """A valid experiment's data with some nodes replaced, renamed, removed or moved."""
    data = copy.deepcopy(draw(st.sampled_from(TREES)))
    for _ in range(draw(st.integers(1, 3))):
        spots = list(_spots(data))
        if not spots:
            break
        holder, key = draw(st.sampled_from(spots))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[str(draw(st.sampled_from(WEIRD)))] = holder.pop(key)
        elif kind == 2:
            other, there = draw(st.sampled_from(spots))
            holder[key] = copy.deepcopy(other[there]) if _has(other, there) else None
        else:
            holder[key] = copy.deepcopy(draw(st.sampled_from(WEIRD)))
    return json.dumps(data, indent=1, ensure_ascii=draw(st.booleans()))


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _spots(node: Any) -> Iterator[tuple[Any, Any]]:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        yield node, key
        if isinstance(value, (dict, list)):
            yield from _spots(value)


TREES = [yamltext.parse(text, "x.yaml").data for text in TEXTS]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a mutated experiment is written."""
    path = tmp_path_factory.mktemp("fuzz") / "experiments" / "x.yaml"
    path.parent.mkdir()
    return path


@pytest.fixture(scope="module")
def results(experiment: Path) -> Results:
    """The results of the base experiment, which is valid."""
    path = experiment.with_name("base.yaml")
    path.write_text(BASE, encoding="utf-8")
    found = outcome(path)
    assert found
    return found


@cases(1200)
@given(raw=mutated_texts())
def test_mutated_text(experiment: Path, raw: bytes) -> None:
    """Text and bytes changed anywhere."""
    experiment.write_bytes(raw)
    outcome(experiment)


@cases(1000)
@given(text=mutated_trees())
def test_mutated_data(experiment: Path, text: str) -> None:
    """Well-formed YAML that says odd things."""
    experiment.write_text(text, encoding="utf-8")
    outcome(experiment)


NAMES = st.sampled_from(
    ["model", "page", "kv_budget", "kv_heads", "workload", "tier", "", "x", "layers"]
)
WORDS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([str(w) for w in WEIRD] + TOKENS),
    st.builds("{}={}".format, NAMES, st.sampled_from([str(w) for w in WEIRD])),
    st.builds("{}={}".format, NAMES, st.text(max_size=20)),
)


@cases(300)
@given(words=st.lists(WORDS, min_size=1, max_size=3))
def test_set_words(results: Results, words: list[str]) -> None:
    """--set with anything after it."""
    outcome(results.plan.experiment.path, tuple(words))


ADDRESSES = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            [
                "sweep",
                "named",
                "held",
                "[",
                "]",
                ".",
                "page",
                "=",
                "8",
                ",",
                '"',
                "small",
                "0",
                "-1",
            ]
            + ["batch", "per_token", "1e999", "nan", " ", "9" * 400, "²", "kv_budget"]
        ),
        max_size=12,
    ).map("".join),
)


@cases(500)
@given(text=ADDRESSES)
def test_cell_addresses(results: Results, text: str) -> None:
    """An address finds a cell or says why not."""
    try:
        assert find_cell(results, text).address
    except ValueProblem as problem:
        assert problem.what


@cases(500)
@given(
    text=st.lists(
        st.one_of(
            ADDRESSES,
            st.sampled_from(
                [
                    "{{ ",
                    " }}",
                    "cell(",
                    '"',
                    "'",
                    ")",
                    ", unit=",
                    ", digits=",
                    "12",
                    "99",
                    "GiB",
                    "MiB",
                ]
                + ["cite(", "held", "{%", "{{ cell('held') }}", '{{ cell("held", digits=3) }}']
            ),
        ),
        max_size=12,
    ).map("".join)
)
def test_prose_holes(results: Results, text: str) -> None:
    """Prose is filled in or refused; nothing is evaluated."""
    try:
        fill(text, results)
    except ValueProblem as problem:
        assert problem.what
