"""Reports read back: the tables of a page and of a Markdown file, and a hostile experiment."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from markdown_it import MarkdownIt

from kvplan import pipeline

SCRIPT = "<script>alert(1)</script>"
HOSTILE = r"""
title: "<script>alert(1)</script> & *title* | `x`"
question: |
  Is <img src=x onerror="alert(2)"> text, and `a < b | c` code? <b>Bold</b> is not.
source: "<i>source</i> [link](javascript:alert(3))"
uses:
  model:
    title: "<script>alert(1)</script>"
    source: {title: "a \"quoted\" <source> | with *stars*", url: "https://example.org/?a=1&b=2"}
    groups:
      - {kind: full, layers: 80, kv_heads: 8, head_dim: 128 element/token}
  kv_dtype: fp16
  kv_budget: 172.5 GiB
values:
  plain_value: {of: kv_per_token, title: "per <token> _and_ | **more**"}
tables:
  hostile_table:
    title: "Title </h2><script>alert(4)</script> # | _x_"
    note: "A note with </table><script>alert(5)</script> and {{ cell(\"plain_value\") }}."
    cases:
      "<script>alert(1)</script>": {context: 1024 token}
      "a | b \\| c": {context: 2048 token}
      "*stars* _lines_ __init__ ~~gone~~ `code`": {context: 4096 token}
      "[link](https://example.org) &amp; &lt;": {context: 8192 token}
      "- item": {context: 16384 token}
    columns:
      - name: {label: case, title: "name | <b>"}
      - model: {label: model}
      - context
      - kv_per_sequence
      - word: {when: kv_budget > 100 * kv_per_sequence, then: "</button><b>yes|", otherwise: "*no*"}
claims:
  - id: per_token
    says: "it is </li><script>alert(6)</script> | *320* KiB"
    cell: plain_value
    expect: 320 KiB/token
    derivation: "2 * 80 * 8 * 128 * 2"
    source: "<u>nobody</u>"
  - id: refuted
    says: it is less than 1 KiB
    cell: plain_value
    less_than: 1 KiB/token
    derivation: "2 * 80 * 8 * 128 * 2"
    holds: false
    because: "</dd><script>alert(7)</script> it is {{ cell(\"plain_value\") }}"
takeaway: "</dl><script>alert(8)</script> A token holds {{ cell(\"plain_value\") }}."
text: |
  <script>alert(9)</script>

  [a link](javascript:alert(10)) and ![an image](https://example.org/x.png)
caveats:
  - "<style>*{display:none}</style> and <https://example.org/ok>"
"""


def hostile(folder: Path) -> Path:
    """A project with one experiment whose every text tries to be more than text."""
    file = folder / "experiments" / "hostile.yaml"
    file.parent.mkdir()
    file.write_text(HOSTILE, encoding="utf-8")
    return file


def rendered(path: Path, folder: Path, *overrides: str) -> tuple[str, str]:
    """The Markdown and the HTML report of an experiment, written to a folder."""
    markdown, html = pipeline.write_reports(path, overrides, folder)
    return markdown.read_text(encoding="utf-8"), html.read_text(encoding="utf-8")


class Page(HTMLParser):
    """What a report's HTML holds: elements, text, and its data tables cell by cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None
        self._in_table = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = {key: value or "" for key, value in attrs}
        self.elements.append((tag, fields))
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "table":
            self._in_table = fields.get("class") in ("data", "values")
            self.tables += [[]] if self._in_table else []
        elif tag == "tr" and self._in_table:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self._in_table:
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing at {self.getpos()}"
        if tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)
        if self._cell is not None:
            self._cell.append(data)

    @property
    def text(self) -> str:
        """All that is printed."""
        return " ".join("".join(self.words).split())

    def tags(self, name: str) -> list[dict[str, str]]:
        """The attributes of every element of a name."""
        return [fields for tag, fields in self.elements if tag == name]


def markdown_tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown file but that of the inputs, as a renderer reads them."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    text = "\n".join(part for part in text.split("\n## ") if not part.startswith("Inputs\n"))
    found: list[list[list[str]]] = []
    cell, inside = "", False
    for token in parser.parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and inside:
            cell = "".join(_text(child) for child in token.children or ())
        elif token.type in ("td_close", "th_close"):
            found[-1][-1].append(" ".join(cell.split()))
            inside = False
        elif token.type in ("td_open", "th_open"):
            cell, inside = "", True
    return found


def _text(token: object) -> str:
    kind, content = token.type, token.content  # type: ignore[attr-defined]
    assert kind in ("text", "text_special", "code_inline"), f"a cell holds {kind}: {content}"
    return str(content)
