"""What an experiment file may say, as pydantic models, and its JSON Schema for editors."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

# Where the schema is kept beside experiments/, and the first line of each experiment.
SCHEMA_FILE = "schema/experiment.schema.json"
SCHEMA_LINE = f"# yaml-language-server: $schema=../{SCHEMA_FILE}"

Scalar = str | int | float
Overrides = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)


class Names(_Strict):
    """The short names of catalog entries for which a condition holds, joined by commas."""

    entity: str = Field(description="the kind of entry, for instance tier")
    among: list[Any] = Field(min_length=1, max_length=100, description="the entries to try")
    when: str = Field(description="a comparison that is held against each entry")


class Wanted(_Strict):
    """One value: a registry quantity (`of`), an expression (`derive`), or text."""

    of: str | None = Field(None, description="a registry quantity: kvplan list formulas")
    derive: str | None = Field(None, description="an expression over columns, values, quantities")
    when: str | None = Field(None, description="a comparison; prints 'then' or 'otherwise'")
    then: str | None = Field(None, description="the text where 'when' holds")
    otherwise: str | None = Field(None, description="the text where 'when' does not hold")
    names: Names | None = Field(None, description="the catalog entries for which something holds")
    label: str | None = Field(
        None, description="text that names the row: 'case', or a kind of entry such as model"
    )
    overrides: Overrides = Field(
        default_factory=dict, alias="with", description="inputs that differ for this one only"
    )
    unit: str | None = Field(None, description="the unit it is shown in, for instance GiB")
    digits: int | None = Field(None, ge=0, le=12, description="decimals shown")
    title: str | None = Field(
        None, max_length=120, description="its header; without one, the key with spaces"
    )


def _short_value(raw: Any) -> Any:
    return {"of": raw} if isinstance(raw, str) else raw


def _short_column(raw: Any) -> Any:
    if isinstance(raw, str):
        return {"key": raw, "of": raw}
    if isinstance(raw, dict) and len(raw) == 1:
        key, inner = next(iter(raw.items()))
        inner = _short_value(inner)
        if isinstance(inner, dict):
            return {"key": key, **inner}
    return raw


class Column(Wanted):
    """A column of a table."""

    key: str


_COLUMN_SCHEMA = {
    "anyOf": [
        {"type": "string", "description": "a quantity; the column bears its name"},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Wanted"}]},
        },
    ]
}
WantedValue = Annotated[Wanted, BeforeValidator(_short_value)]
WantedColumn = Annotated[Column, BeforeValidator(_short_column)]


class Steps(_Strict):
    """Evenly spaced points of an axis: of the values, or of their logarithms."""

    start: Scalar = Field(alias="from", description="the first point")
    end: Scalar = Field(alias="to", description="the last point")
    points: int = Field(ge=2, le=1_000_000, description="how many, both ends included")
    spacing: Literal["linear", "log"] = Field("linear", description="even in value, or in ratio")


class Table(_Strict):
    """Rows (a product of axes, or named cases) against columns."""

    title: str | None = Field(
        None, max_length=200, description="its heading; without one, its name with spaces"
    )
    note: str | None = Field(None, description="one or two sentences printed under the table")
    rows: dict[str, Any] | None = Field(
        None, description="axis: list of values, or from/to/points; several axes make a product"
    )
    cases: dict[str, Overrides | None] | None = Field(
        None, description="name of the row: the inputs that differ there"
    )
    columns: list[WantedColumn] = Field(
        min_length=1, max_length=60, description="a quantity, or key: quantity, or key: a mapping"
    )


class Claim(_Strict):
    """A sentence with a number that must hold, or must fail where it is refuted."""

    id: str = Field(description="its name in messages and scripts")
    says: str = Field(max_length=300, description="the sentence")
    cell: str | None = Field(None, description="a value, or table[row].column")
    expect: Scalar | None = Field(None, description="the number claimed")
    within: Scalar | None = Field(
        None,
        description="how far from 'expect': a quantity, or % of it (points if the cell is in %)",
    )
    at_least: Scalar | None = Field(None, description="a lower bound that may be met")
    at_most: Scalar | None = Field(None, description="an upper bound that may be met")
    more_than: Scalar | None = Field(None, description="a lower bound that must be passed")
    less_than: Scalar | None = Field(None, description="an upper bound that must not be met")
    derivation: str | None = Field(
        None, description="the same number from literals and inputs, without registry formulas"
    )
    unit: str | None = Field(None, description="the unit of the derivation")
    constant: str | None = Field(None, description="a quantity that must not change over 'over'")
    over: dict[str, Steps] | None = Field(None, description="the inputs to vary, each in steps")
    holds: bool = Field(True, description="false for a claim that is expected to be refuted")
    because: str | None = Field(None, description="why a refuted claim fails; numbers as cells")
    source: str | None = Field(None, description="who says so")


class ExperimentFile(_Strict):
    """An experiment: one question, its inputs, and the tables and claims that answer it."""

    title: str = Field(min_length=1, max_length=200, description="the heading of the report")
    question: str = Field(min_length=1, description="what the report answers, in one sentence")
    source: str | None = Field(None, description="the document the experiment restates")
    uses: Overrides = Field(description="catalog names and quantities every table starts from")
    values: dict[str, WantedValue] = Field(
        default_factory=dict,
        max_length=500,
        description="single numbers by name: a quantity, or a mapping",
    )
    tables: dict[str, Table] = Field(
        default_factory=dict, max_length=100, description="tables by name"
    )
    claims: list[Claim] = Field(
        default_factory=list, max_length=200, description="sentences that must hold"
    )
    text: str | None = Field(None, description="prose after the tables; numbers as cells")
    takeaway: str | None = Field(None, description="the answer in a sentence; numbers as cells")
    caveats: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="what the answer leaves out; numbers as cells",
    )
    template: str = Field(
        "report", pattern=r"^[a-z][a-z0-9_]*$", description="templates/NAME.md.j2 and .html.j2"
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of an experiment file."""
    schema = ExperimentFile.model_json_schema(by_alias=True)
    # The short forms are unfolded by validators, which a generated schema cannot see.
    definitions = schema["$defs"]
    definitions["Table"]["properties"]["columns"]["items"] = _COLUMN_SCHEMA
    schema["properties"]["values"]["additionalProperties"] = {
        "anyOf": [{"type": "string"}, {"$ref": "#/$defs/Wanted"}]
    }
    definitions.pop("Column")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def schema_text() -> str:
    """The JSON Schema as the file that editors read."""
    return json.dumps(json_schema(), indent=1) + "\n"
