"""A report in a real browser: quiet, alone, readable on a phone and in the dark, printable."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pages import SCRIPT, hostile, markdown_tables, rendered

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).parent.parent
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
REQUIRED = bool(os.environ.get("KVPLAN_REQUIRE_BROWSER"))

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER) and not REQUIRED,
    reason="no chromium and chromedriver on PATH (apt-get install chromium chromium-driver)",
)

# The contrast of every text against what lies behind it, by the formula of WCAG 2.2.
CONTRAST = """
const light = c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const luminance = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
const behind = e => {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
};
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.textContent.trim() || !e.checkVisibility()) continue;
  const pair = [luminance(rgb(getComputedStyle(e).color)), luminance(behind(e))];
  const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  found.push([ratio, walk.currentNode.textContent.trim()]);
}
const ground = getComputedStyle(document.body).backgroundColor;
return [found.length, found.filter(f => f[0] < 4.5), ground];
"""
# Each button in turn: its popover opens, shows the button's own text, and closes again.
POPOVERS = """
const wrong = [], buttons = [...document.querySelectorAll("main button")];
for (const button of buttons) {
  const popover = document.getElementById(button.getAttribute("popovertarget"));
  button.click();
  const open = popover.matches(":popover-open") && popover.checkVisibility();
  if (!open || !popover.innerText.includes(button.innerText)) wrong.push(button.innerText);
  popover.querySelector("button").click();
  if (popover.matches(":popover-open")) wrong.push("stays open: " + button.innerText);
}
return [buttons.length, wrong];
"""
TABLES = """
return [...document.querySelectorAll("table.values, table.data")].map(table =>
  [...table.rows].map(row => [...row.cells].map(c => c.textContent.trim().replace(/\\s+/g, " "))));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    """One headless chromium whose every way out leads nowhere."""
    from selenium import webdriver

    assert CHROMIUM and DRIVER, "KVPLAN_REQUIRE_BROWSER is set, and there is no chromium"
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--proxy-server=127.0.0.1:9",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, Path]]:
    """The Markdown and the HTML file of an ordinary report and of a hostile one."""
    made = {}
    for name in ("paged_allocation", "hostile"):
        folder = tmp_path_factory.mktemp(name)
        plain = ROOT / "experiments" / f"{name}.yaml"
        path = hostile(folder) if name == "hostile" else plain
        made[name] = (rendered(path, folder / "out")[0], folder / "out" / f"{name}.html")
    return made


@pytest.fixture(params=["paged_allocation", "hostile"])
def page(
    request: pytest.FixtureRequest, browser: Chrome, pages: dict[str, tuple[str, Path]]
) -> tuple[Chrome, str]:
    """The browser with a report open on a desktop's screen, and the Markdown of that report."""
    markdown, file = pages[request.param]
    screen(browser, 1200)
    browser.get_log("performance")
    browser.get(file.as_uri())
    return browser, markdown


def screen(browser: Chrome, width: int, scheme: str = "light") -> None:
    """Sets the width of the screen and whether it is light or dark."""
    command: Any = browser.execute_cdp_cmd
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    command("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    command("Emulation.setEmulatedMedia", {"features": [feature]})


def test_it_is_quiet_and_asks_for_nothing(page: tuple[Chrome, str]) -> None:
    """No message on the console, no dialog, and the file itself is the only request."""
    browser, _ = page
    browser.execute_script(POPOVERS)
    events = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    urls = {
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    }
    assert urls == {browser.current_url}
    assert browser.get_log("browser") == []


def test_its_tables_are_those_of_the_markdown(page: tuple[Chrome, str]) -> None:
    """Cell by cell, as the browser shows them."""
    browser, markdown = page
    assert browser.execute_script(TABLES) == markdown_tables(markdown)


def test_every_figure_opens_its_derivation(page: tuple[Chrome, str]) -> None:
    """Each button's popover opens, shows the figure, and closes."""
    browser, _ = page
    count, wrong = browser.execute_script(POPOVERS)
    assert count > 10
    assert wrong == []


def test_a_derivation_opens_and_closes_from_the_keyboard(page: tuple[Chrome, str]) -> None:
    """Enter opens, Tab reaches the close button, Escape closes and goes back to the figure."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser, _ = page
    button = browser.find_element(By.CSS_SELECTOR, "table.data button")
    shown = "return document.querySelectorAll(':popover-open').length"
    button.send_keys(Keys.ENTER)
    assert browser.execute_script(shown) == 1
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Close"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert browser.execute_script(shown) == 0
    assert browser.switch_to.active_element == button


def test_a_phone_does_not_scroll_sideways(page: tuple[Chrome, str]) -> None:
    """At 360 px the page is 360 px wide, also with a derivation open; tables scroll inside."""
    browser, _ = page
    screen(browser, 360)
    wide = "return [document.documentElement.scrollWidth, innerWidth]"
    assert browser.execute_script(wide) == [360, 360]
    inside = """
      document.querySelector("table.data button").click();
      const box = document.querySelector(":popover-open").getBoundingClientRect();
      return box.left >= 0 && box.right <= 360 && box.width > 300;"""
    assert browser.execute_script(inside)
    assert browser.execute_script(wide) == [360, 360]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(page: tuple[Chrome, str], scheme: str) -> None:
    """Every text has a contrast of 4.5 or more, in a light and in a dark scheme."""
    browser, _ = page
    screen(browser, 1200, scheme)
    count, faint, ground = browser.execute_script(CONTRAST)
    assert count > 50
    assert faint == []
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]


def printed(browser: Chrome) -> bytes:
    """The page as PDF; the browser's printing service sometimes has to be asked again."""
    from selenium.common.exceptions import WebDriverException

    for attempt in range(3):
        try:
            made = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
            return base64.b64decode(made["data"])
        except WebDriverException as error:
            if "Printing failed" not in str(error) or attempt == 2:
                raise
    raise AssertionError("not reached")


def test_it_prints(page: tuple[Chrome, str]) -> None:
    """Printing gives pages, without the derivations that are closed."""
    browser, _ = page
    pdf = printed(browser)
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") < 12
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = (
        "return [...document.querySelectorAll('nav, [popover]')].every(e => !e.checkVisibility())"
    )
    assert browser.execute_script(hidden)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen"})


def test_hostile_text_is_seen_as_text(browser: Chrome, pages: dict[str, tuple[str, Path]]) -> None:
    """A model named like a script is read on the page, and no element comes of it."""
    browser.get(pages["hostile"][1].as_uri())
    assert browser.title.startswith(SCRIPT)
    seen = browser.execute_script("return document.body.innerText")
    for number in (1, 4, 5, 6, 7, 8, 9):
        assert f"<script>alert({number})</script>" in seen
    assert browser.execute_script("return document.querySelectorAll('script, img').length") == 0
