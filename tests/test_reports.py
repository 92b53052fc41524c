"""Reports hold what was computed, in the order a reviewer reads, and labels stay labels."""

import re
from pathlib import Path

import pytest
from pages import SCRIPT, Page, hostile, markdown_tables, rendered

from kvplan import pipeline
from kvplan.work import MAX_PER_TABLE

ROOT = Path(__file__).parent.parent
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
SMALL = """
title: Small
question: How many bytes?
uses: {model: 70b-gqa, kv_dtype: fp16, kv_budget: 172.5 GiB}
values:
  k: kv_per_token
claims:
"""


def small(folder: Path, more: str) -> Path:
    """A project with one small experiment; `more` are its claims and what follows."""
    file = folder / "experiments" / "small.yaml"
    file.parent.mkdir()
    file.write_text(SMALL + more, encoding="utf-8")
    return file


@pytest.fixture(scope="module", params=EXPERIMENTS, ids=lambda p: p.stem)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """Both forms of the report of each experiment."""
    return rendered(request.param, tmp_path_factory.mktemp("reports"))


def test_tables_of_both_forms_are_equal(both: tuple[str, str]) -> None:
    """Every cell of every table reads the same in Markdown and in HTML."""
    markdown, html = both
    tables = Page(html).tables
    assert tables
    assert tables == markdown_tables(markdown)


def test_sections_of_both_forms_are_in_one_order(both: tuple[str, str]) -> None:
    """The headings are the same, in the same order."""
    markdown, html = both
    in_html = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    assert in_html == re.findall(r"^## (.*)$", markdown, re.MULTILINE)


def test_the_answer_stands_first(both: tuple[str, str]) -> None:
    """Question, takeaway and verdict come before the first section, in both forms."""
    markdown, html = both
    words = [w for w in ("Question", "Takeaway", "Verdict") if f"**{w}.**" in markdown]
    assert words[0] == "Question"
    for text, form in ((markdown.split("\n## ")[0], "**{}.**"), (html, "<dt>{}</dt>")):
        found = [text.index(form.format(word)) for word in words]
        assert found == sorted(found)
    assert "<nav" not in html[: html.index(f"<dt>{words[-1]}</dt>")]


def test_a_page_needs_nothing_else(both: tuple[str, str]) -> None:
    """No script, image, frame, font or style sheet; links lead out only when followed."""
    page = Page(both[1])
    fetching = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source"}
    fetching |= {"svg", "base", "form", "input", "picture", "track", "frame", "portal"}
    assert not {tag for tag, _ in page.elements} & fetching
    assert not any(key in fields for _, fields in page.elements for key in ("src", "srcset"))
    assert not any(key.startswith("on") for _, fields in page.elements for key in fields)
    assert "url(" not in both[1] and "@import" not in both[1]
    policy = next(m["content"] for m in page.tags("meta") if "Policy" in m.get("http-equiv", ""))
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_every_address_in_a_page_leads_somewhere(both: tuple[str, str]) -> None:
    """Ids are unique; links inside the page and buttons name one that exists."""
    page = Page(both[1])
    ids = [fields["id"] for _, fields in page.elements if "id" in fields]
    assert len(ids) == len(set(ids))
    wanted = [a["href"][1:] for a in page.tags("a") if a["href"].startswith("#")]
    wanted += [b["popovertarget"] for b in page.tags("button")]
    assert wanted and set(wanted) <= set(ids)


def test_a_page_is_small_and_names_no_machine(both: tuple[str, str]) -> None:
    """Under 500 KB; no path of this machine."""
    assert len(both[1].encode()) < 500_000
    for text in both:
        assert str(ROOT) not in text and str(Path.home()) + "/" not in text


def test_the_way_to_a_file_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute path, a relative one and one from another folder give the same bytes."""
    whole = rendered(EXPERIMENTS[0], tmp_path / "a")
    monkeypatch.chdir(ROOT)
    assert rendered(EXPERIMENTS[0].relative_to(ROOT), tmp_path / "b") == whole
    monkeypatch.chdir(ROOT / "experiments")
    assert rendered(Path("..", "experiments", EXPERIMENTS[0].name), tmp_path / "c") == whole


def test_an_override_is_said_at_the_top(tmp_path: Path) -> None:
    """A report made with --set says so before the question, and where the input stands."""
    word = "kv_budget=40 GiB"
    markdown, html = rendered(EXPERIMENTS[-1], tmp_path, word)
    assert markdown.index(f"`{word}`") < markdown.index("**Question.**")
    assert html.index(word) < html.index("Question")
    row = next(line for line in markdown.splitlines() if "`kv_budget`" in line)
    assert "40 GiB" in row and "given on the command line" in row


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """Titles, labels, prose, sources and claims make no element or link of their own."""
    markdown, html = rendered(hostile(tmp_path), tmp_path / "out")
    page = Page(html)
    assert not page.open
    for tag in ("script", "img", "i", "u", "iframe"):
        assert not page.tags(tag)
    assert len(page.tags("style")) == 1
    assert not any("onerror" in fields for _, fields in page.elements)
    assert all(a["href"].startswith(("#", "https://")) for a in page.tags("a"))
    assert SCRIPT in page.text and "&lt;script>alert(1)&lt;/script>" in markdown
    outside = re.sub(r"(`+).*?\1", "", markdown)
    assert not re.search(r"<(?!https://)[A-Za-z/!?]", outside)


def test_hostile_labels_stay_in_their_cells(tmp_path: Path) -> None:
    """Bars, stars, lines, code, entities and links in labels read the same in both forms."""
    markdown, html = rendered(hostile(tmp_path), tmp_path / "out")
    tables = Page(html).tables
    assert tables == markdown_tables(markdown)
    assert [row[0] for row in tables[1][1:]] == [
        SCRIPT,
        r"a | b \| c",
        "*stars* _lines_ __init__ ~~gone~~ `code`",
        "[link](https://example.org) &amp; &lt;",
        "- item",
    ]
    assert {len(row) for row in tables[1]} == {5}


def test_a_claim_that_fails_is_said_first(tmp_path: Path) -> None:
    """A failing claim and one that holds against expectation are counted in the verdict."""
    claims = """
  - {id: a, says: too small, cell: k, less_than: 1 KiB/token, derivation: "2 * 80 * 8 * 128 * 2"}
  - {id: b, says: fine, cell: k, more_than: 1 KiB/token, holds: false, because: no,
     derivation: "2 * 80 * 8 * 128 * 2"}
  - {id: c, says: derived otherwise, cell: k, more_than: 1 KiB/token, derivation: "2 * 80"}
  - {id: d, says: right, cell: k, expect: 320 KiB/token, derivation: "2 * 80 * 8 * 128 * 2"}
"""
    markdown, html = rendered(small(tmp_path, claims), tmp_path / "out")
    verdict = "4 claims: {}, {}, 1 holds."
    assert (
        verdict.format("**2 FAIL**", "**1 hold that should be refuted**")
        in markdown.split("\n## ")[0]
    )
    assert "4 claims: 2 FAIL, 1 hold that should be refuted, 1 holds." in Page(html).text
    assert "- **FAILS**: too small\n  - computed 327,680 B/token in `k`" in markdown
    assert "the two disagree" in markdown and "HOLDS, but was expected to be refuted" in markdown


def test_a_refuted_claim_shows_the_number_and_the_reason(tmp_path: Path) -> None:
    """What refutes a claim is printed with it."""
    claims = """
  - {id: a, says: tiny, cell: k, less_than: 1 KiB/token, holds: false,
     because: 'it has {{ cell("k") }}', derivation: "2 * 80 * 8 * 128 * 2"}
"""
    markdown, _ = rendered(small(tmp_path, claims), tmp_path / "out")
    assert "1 claim: 0 hold, 1 refuted as expected." in markdown
    assert (
        "- **refuted, as expected**: tiny\n"
        "  - computed 327,680 B/token in `k`, claimed < 1,024 B/token\n"
        "  - derived independently: `2 * 80 * 8 * 128 * 2 = 327,680 B/token`\n"
        "  - because it has 327,680 B/token"
    ) in markdown


def test_a_long_table_does_not_explode(tmp_path: Path) -> None:
    """Derivations stop at their limit, and the page says where the others are."""
    more = """
  - {id: d, says: right, cell: k, expect: 320 KiB/token, derivation: "2 * 80 * 8 * 128 * 2"}
tables:
  long:
    rows: {context: {from: 1 token, to: 4000 token, points: 4000}}
    columns: [context, kv_per_sequence]
"""
    _, html = rendered(small(tmp_path, more), tmp_path / "out")
    page = Page(html)
    assert len(page.tables[1]) == 4001
    popovers = [fields for fields in page.tags("div") if "popover" in fields]
    assert len(popovers) == MAX_PER_TABLE + 1
    left = 8000 - MAX_PER_TABLE
    assert (
        f"at most {MAX_PER_TABLE} derivations of a table, in 4000 lines; {left} cells" in page.text
    )
    assert len(html) < 1_500_000


def test_a_chain_of_values_does_not_explode(tmp_path: Path) -> None:
    """Values that rest on each other are derived up to a number of lines."""
    claims = """
  - {id: d, says: right, cell: k, expect: 320 KiB/token, derivation: "2 * 80 * 8 * 128 * 2"}
"""
    path = small(tmp_path, claims)
    links = [f"  v{i}: {{derive: v{i + 1} + k, unit: B/token}}" for i in range(120)]
    chain = "\n".join([*links, "  v120: kv_per_token", "claims:"])
    path.write_text(path.read_text().replace("claims:", chain))
    _, html = rendered(path, tmp_path / "out")
    assert "cells here have none" in Page(html).text
    assert len(html) < 1_000_000


def test_inputs_say_where_they_stand() -> None:
    """Every input line has a file and line, or says that it is a constant, and a source."""
    for path in EXPERIMENTS:
        text = pipeline.run(path).text("md")
        section = text.split("## Inputs\n")[1].split("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        assert rows
        for row in rows:
            assert re.search(r"\| `(experiments|catalog)/[\w./-]+\.yaml:\d+|`a constant`", row)
            assert not row.endswith("|  |")
