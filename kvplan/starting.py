"""A name in, a commented experiment out that renders at once."""

from __future__ import annotations

import re
from pathlib import Path

from kvplan.errors import KvplanError, Place, Problem
from kvplan.files import write_whole

START = """\
# yaml-language-server: $schema=experiment.schema.json
title: How many requests fit?
question: How many requests of one length does a budget hold, as the length grows?

# What every table starts from: catalog names (kvplan list models) and quantities with a unit.
uses:
  model: llama-3.1-8b
  kv_dtype: bf16
  kv_budget: 40 GiB
  page: 16 token

# Single numbers. `of` names a quantity (kvplan list formulas).
values:
  bytes_per_token: {of: kv_per_token, unit: KiB/token}

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


def start(name: str) -> Path:
    """Writes the start; refuses to overwrite."""
    path = Path("experiments") / f"{name}.yaml"
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,79}", name):
        raise KvplanError(
            Problem(
                f"'{name}' cannot be an experiment's id",
                "",
                "use small letters, digits and _, starting with a letter",
                Place("NAME", 1, 1, len(name), name),
            )
        )
    if path.exists():
        raise KvplanError(
            Problem("the file exists already", "", "choose another name", Place(path.as_posix()))
        )
    write_whole(path, START)
    return path
