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

    entity: str
    among: list[Any] = Field(min_length=1, max_length=100)
    when: str


class Wanted(_Strict):
    """One value: a registry quantity (`of`), an expression (`derive`), or text."""

    of: str | None = Field(None, description="a registry quantity: kvplan list formulas")
    derive: str | None = Field(None, description="an expression over columns, values, quantities")
    when: str | None = Field(None, description="a comparison; prints 'then' or 'otherwise'")
    then: str | None = None
    otherwise: str | None = None
    names: Names | None = None
    label: str | None = Field(None, description="the title of a catalog entry, or 'case'")
    overrides: Overrides = Field(default_factory=dict, alias="with")
    unit: str | None = Field(None, description="the unit it is shown in, for instance GiB")
    digits: int | None = Field(None, ge=0, le=12, description="decimals shown")
    title: str | None = Field(None, max_length=120)


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

    start: Scalar = Field(alias="from")
    end: Scalar = Field(alias="to")
    points: int = Field(ge=2, le=1_000_000)
    spacing: Literal["linear", "log"] = "linear"


class Table(_Strict):
    """Rows (a product of axes, or named cases) against columns."""

    title: str | None = Field(None, max_length=200)
    note: str | None = Field(None, description="one or two sentences printed under the table")
    rows: dict[str, Any] | None = Field(None, description="axis: list of values, or from/to/points")
    cases: dict[str, Overrides | None] | None = Field(None, description="name: what it overrides")
    columns: list[WantedColumn] = Field(min_length=1, max_length=60)


class Claim(_Strict):
    """A sentence with a number that must hold, or must fail where it is refuted."""

    id: str
    says: str = Field(max_length=300)
    cell: str | None = Field(None, description="a value, or table[row].column")
    expect: Scalar | None = None
    within: Scalar | None = None
    at_least: Scalar | None = None
    at_most: Scalar | None = None
    more_than: Scalar | None = None
    less_than: Scalar | None = None
    derivation: str | None = Field(
        None, description="the same number from literals and inputs, without registry formulas"
    )
    unit: str | None = Field(None, description="the unit of the derivation")
    constant: str | None = Field(None, description="a quantity that must not change over 'over'")
    over: dict[str, Steps] | None = None
    holds: bool = True
    because: str | None = Field(None, description="why a refuted claim fails; numbers as cells")
    source: str | None = None


class ExperimentFile(_Strict):
    """An experiment: one question, its inputs, and the tables and claims that answer it."""

    title: str = Field(min_length=1, max_length=200)
    question: str = Field(min_length=1)
    source: str | None = Field(None, description="the document the experiment restates")
    uses: Overrides = Field(description="catalog names and quantities every table starts from")
    values: dict[str, WantedValue] = Field(default_factory=dict, max_length=500)
    tables: dict[str, Table] = Field(default_factory=dict, max_length=100)
    claims: list[Claim] = Field(default_factory=list, max_length=200)
    text: str | None = Field(None, description="prose after the tables; numbers as cells")
    takeaway: str | None = None
    caveats: list[str] = Field(default_factory=list, max_length=100)
    template: str = Field("report", pattern=r"^[a-z][a-z0-9_]*$")


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
