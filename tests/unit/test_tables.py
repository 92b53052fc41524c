"""Text in tables and prose is printed as it is, whatever Markdown would make of it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kvplan.markdown import address, code, escape, hanging, html_of, without_html
from kvplan.records import ShownCell, ShownTable
from kvplan.tables import pipe_table

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LETTERS = st.text(alphabet="aB1 \n|\\`*_~[]()<>&;#!-+.=/:'\"$@é·", max_size=30)


def read_back(markdown: str) -> str:
    """What a renderer prints for inline Markdown: text and code only, anything else is a fault."""
    tokens = PARSER.parse(markdown)
    assert [t.type for t in tokens] in (["paragraph_open", "inline", "paragraph_close"], [])
    children = tokens[1].children or [] if tokens else []
    assert {t.type for t in children} <= {"text", "text_special", "code_inline"}
    return "".join(t.content for t in children)


@given(LETTERS)
@example("1. item")
@example("- item")
@example("---")
@example("&amp; &#42; &lt;")
@example("<https://example.org> <a@b.c>")
def test_escaped_text_reads_as_it_was(text: str) -> None:
    """Any text comes back, but for its white space."""
    assert read_back(escape(text)) == " ".join(text.split())


@given(LETTERS)
def test_code_reads_as_it_was(text: str) -> None:
    """Any text comes back from a code span; a bar is escaped for the table around it."""
    assert read_back(code(text)) == " ".join(text.split()).replace("|", "\\|")


@given(st.lists(LETTERS, min_size=4, max_size=4))
def test_no_label_breaks_its_table(texts: list[str]) -> None:
    """Two rows of two cells stay two rows of two cells, each with its text."""
    cells = [ShownCell(text, "", True) for text in texts]
    table = ShownTable("t", "T", "", ("a|b", "*c*"), (tuple(cells[:2]), tuple(cells[2:])))
    tokens = PARSER.parse(pipe_table(table))
    found = [
        "".join(child.content for child in token.children or ())
        for token in tokens
        if token.type == "inline"
    ]
    assert found == ["a|b", "*c*", *(" ".join(text.split()) for text in texts)]


@pytest.mark.parametrize(
    "text", ["kv_budget of 80 GiB", "2 * 80 * 8", "x < 5 & y > 3", "GQA-8, about 6x", "H_kv"]
)
def test_ordinary_text_stays_readable(text: str) -> None:
    """What Markdown leaves alone is left alone."""
    assert escape(text) == text


def test_numbers_stand_at_the_right() -> None:
    """Columns of numbers are aligned right, columns of words left."""
    row = (ShownCell("a", "", True), ShownCell("1,024", "", False))
    lines = pipe_table(ShownTable("t", "T", "", ("name", "size (B)"), (row,))).splitlines()
    assert lines == [
        "| name   |   size (B) |",
        "|:-------|-----------:|",
        "| a      |      1,024 |",
    ]


@pytest.mark.parametrize(
    ("prose", "kept"),
    [
        ("a <b>c</b>", "a &lt;b>c&lt;/b>"),
        ("`<b>` and ``a ` <i>``", "`<b>` and ``a ` <i>``"),
        ("see <https://example.org/a>", "see <https://example.org/a>"),
        ("<!-- x --> <?php ?>", "&lt;!-- x --> &lt;?php ?>"),
        ("5 < 6", "5 < 6"),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}b", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_raw_html_in_prose_is_text(prose: str, kept: str) -> None:
    """Only code and web addresses keep their angle brackets."""
    assert without_html(prose) == kept


@given(LETTERS)
def test_prose_makes_no_element_but_markdowns(text: str) -> None:
    """No raw tag, image or script address comes through, whatever is written."""
    html = html_of(without_html(text))
    assert "<script" not in html and "<img" not in html and 'href="javascript' not in html


@pytest.mark.parametrize("url", ["javascript:alert(1)", 'https://a/"><b', "https://a b", "", "#x"])
def test_only_web_addresses_are_linked(url: str) -> None:
    """Anything else leads nowhere."""
    assert address(url) == "#"


def test_a_list_item_keeps_its_later_lines() -> None:
    """They are indented under the first."""
    assert hanging("a\nb\n\nc\n") == "a\n  b\n\n  c"
