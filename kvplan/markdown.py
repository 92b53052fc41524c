"""Markdown prose in, HTML out; raw HTML in it stays text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def html_of(text: str) -> str:
    """The HTML of a piece of prose; links other than http(s) stay text."""
    rendered: str = _parser().render(text)
    return rendered.strip()
