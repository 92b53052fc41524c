"""Text in, Markdown or HTML out: what is data stays text in both, raw HTML in prose too."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# What Markdown would read as more than text. `_`, `*`, `&` and `<` often stand for themselves:
# inside a word, between spaces, before a space; those stay readable.
_SPECIAL = re.compile(
    r"[\\`|\[\]~]"
    r"|\*(?!(?<=\s\*)(?=\s))"
    r"|(?<![^\W_])_|_(?![^\W_])"
    r"|&(?=#?\w+;)"
    r"|<(?=[A-Za-z/!?])"
)
_SPACES = "\n\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"
_ENTITY = {"&": "&amp;", "<": "&lt;"}
_BLOCK_START = re.compile(r"^(>|#{1,6}(?=\s|$)|[-+](?=\s|$)|=+$|-+$|\d{1,9}(?=[.)](?:\s|$)))")
# A code span or block is left alone; elsewhere `<` may not open a tag, only an address.
_CODE_OR_TAG = re.compile(r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)|<(?=[A-Za-z/!?])", re.DOTALL)
_ADDRESS = re.compile(r"<https?://[^\s<>]*>")


def escape(text: str) -> str:
    """Text as Markdown that prints it as it is: no HTML, no table bars, one line."""
    line = " ".join(_printable(str(text)).split())
    line = _SPECIAL.sub(lambda match: _ENTITY.get(match[0], "\\" + match[0]), line)
    return _BLOCK_START.sub(_not_a_block, line)


def _not_a_block(match: re.Match[str]) -> str:
    start = match[0]
    return f"{start}\\" if start.isdigit() else f"\\{start}"


def code(text: str) -> str:
    """Text as a Markdown code span; bars are escaped, so that it can stand in a table."""
    line = " ".join(_printable(str(text)).split())
    if not line:
        return ""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{space}{line}{space}{ticks}".replace("|", "\\|")


def address(url: str) -> str:
    """A link's address, or nothing where it is not one of the web's."""
    clean = str(url).strip()
    return clean if re.fullmatch(r"https?://[^\s<>\"'`|\\]+", clean) else "#"


def hanging(text: str) -> str:
    """Prose as the content of a list item: later lines are indented under the first."""
    return re.sub(r"\n(?=[^\n])", "\n  ", text.strip())


def without_html(text: str) -> str:
    """Prose in which raw HTML is text; code and <https://addresses> stay as they are."""

    def tamed(match: re.Match[str]) -> str:
        if match["ticks"] or _ADDRESS.match(text, match.start()):
            return match[0]
        return "&lt;"

    return _CODE_OR_TAG.sub(tamed, _printable(text))


def _printable(text: str) -> str:
    """Text without control characters, which could hide or reorder what is shown."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in _SPACES else "\N{REPLACEMENT CHARACTER}" for c in text
    )


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def html_of(text: str) -> str:
    """The HTML of a piece of prose; links other than http(s) stay text."""
    rendered: str = _parser().render(text)
    return rendered.strip()


def html_inside(text: str) -> str:
    """The HTML of one line of prose, without a paragraph around it."""
    rendered: str = _parser().renderInline(" ".join(text.split()))
    return rendered
