"""A report in Chromium: nothing runs, nothing is fetched, it prints (W5, W10)."""

import shutil

import numpy as np
import pandas as pd
import pytest

from ansatz import Regressor
from ansatz.report import build, gather

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


def look(browser, path, **options):
    """The page with everything that it tried to do."""
    context = browser.new_context(offline=True, **options)
    page, seen = context.new_page(), []
    page.on("dialog", lambda dialog: (seen.append("dialog"), dialog.dismiss()))
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("request", lambda request: seen.append(request.url))
    page.goto(path.as_uri())
    return page, [what for what in seen if what != path.as_uri() and what != "data:,"]


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hostile_page_does_nothing(browser, hostile_page, tmp_path, script, scheme):
    path = tmp_path / "a.html"
    path.write_text(hostile_page, encoding="utf-8")
    page, seen = look(browser, path, java_script_enabled=script, color_scheme=scheme)
    assert seen == []
    assert page.locator("h2").count() >= 8
    assert page.locator("figure svg").count() >= 3


@pytest.mark.parametrize("width", [360, 1200])
def test_a_phone_needs_no_sideways_scrolling(browser, hostile_page, tmp_path, width):
    path = tmp_path / "a.html"
    path.write_text(hostile_page, encoding="utf-8")
    page, _ = look(browser, path, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_style_is_applied(browser, hostile_page, tmp_path):
    path = tmp_path / "a.html"
    path.write_text(hostile_page, encoding="utf-8")
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 18, 20)")):
        page, _ = look(browser, path, color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    label = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert page.evaluate(label) == "rgb(166, 166, 174)"  # the ink follows the page


def test_it_prints_with_all_its_figures(browser, hostile_page, tmp_path):
    path = tmp_path / "a.html"
    path.write_text(hostile_page, encoding="utf-8")
    page, _ = look(browser, path)
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF") and printed.count(b"/Type /Page\n") >= 3


def test_many_rows_and_an_empty_column_make_a_small_page(browser, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=8_000), "nothing": np.nan})
    y = frame.x.to_numpy() + rng.normal(size=8_000)
    model = Regressor("normal", network="linear").fit(frame[:2_000], y[:2_000])
    evidence = gather(model, frame, y, training=(frame[:2_000], y[:2_000]))
    evidence.settings["refits"] = 0
    path = tmp_path / "a.html"
    path.write_text(build(evidence).page, encoding="utf-8")
    assert path.stat().st_size < 5_000_000
    page, seen = look(browser, path)
    assert seen == [] and "Could not be computed" not in page.inner_text("body")
