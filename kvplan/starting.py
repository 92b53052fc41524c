"""A name in, a commented experiment out that renders at once."""

from __future__ import annotations

import re
from pathlib import Path

from kvplan.errors import KvplanError, Place, Problem
from kvplan.files import write_whole
from kvplan.schema import SCHEMA_FILE, SCHEMA_LINE, schema_text

START = """\
title: How many requests fit?
question: How many requests of one length does a budget hold, as the length grows?

# What every table starts from: catalog names (kvplan list models) and quantities with a unit.
# Change one here, or try another without editing: kvplan render FILE --set model=llama-3.1-70b
uses:
  model: llama-3.1-8b
  kv_dtype: bf16
  kv_budget: 40 GiB
  page: 16 token

# Single numbers. `of` names a quantity (kvplan list formulas).
values:
  bytes_per_token: {of: kv_per_token, unit: KiB/token}

# Each table has rows (the product of its axes, or named cases) and columns.
# A column that only names a quantity bears its name; otherwise write `- name: quantity`.
tables:
  by_length:
    title: Requests by length
    rows: {context: [1024 token, 8192 token, 32768 token]}
    columns:
      - context
      - kv_per_sequence
      - requests: paged_sequences

# A claim is a sentence with a number, and arithmetic that confirms it without the formula.
claims:
  - id: one_token
    says: one token holds 128 KiB
    cell: bytes_per_token
    expect: 128 KiB/token
    derivation: "2 * 32 * 8 * 128 * 2"
    unit: B/token

# Numbers in prose are cells: they cannot go stale.
takeaway: >-
  At {{ cell("by_length[context=8192].context") }} a request holds
  {{ cell("by_length[context=8192].kv_per_sequence") }}, and the budget holds
  {{ cell("by_length[context=8192].requests") }} of them.
"""


def start(name: str) -> list[Path]:
    """Writes the start, and the schema its first line names if there is none; the paths written.

    Raises KvplanError rather than overwrite an experiment.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,79}", name):
        raise KvplanError(_bad_name(name))
    path = Path("experiments") / f"{name}.yaml"
    if path.exists() or path.is_symlink():
        raise KvplanError(
            Problem(
                "exists already", "it is kept as it is", "choose another name", Place(str(path))
            )
        )
    write_whole(path, f"{SCHEMA_LINE}\n{START}")
    schema = Path(SCHEMA_FILE)
    if schema.exists():
        return [path]
    write_whole(schema, schema_text())
    return [path, schema]


def _bad_name(name: str) -> Problem:
    stem = Path(name).name.removesuffix(".yaml")
    cleaned = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:80]
    usable = re.fullmatch(r"[a-z][a-z0-9_]*", cleaned)
    return Problem(
        f"'{name}' cannot be an experiment's id",
        "the id is small letters, digits and _, starting with a letter; reports bear it",
        f"for instance: kvplan new {cleaned}" if usable else "",
    )
