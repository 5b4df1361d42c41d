"""docs/claims/ has every claim, with the numbers of its recorded run."""

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ansatz import claims
from ansatz.claims.registry import areas

DOCS = Path(__file__).parents[2] / "docs"


def load(path: Path):
    """Loads a script of the documentation, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


gallery = load(DOCS / "figures" / "claims.py")
RECORD = gallery.read_record()
ADVICE = f"To make the gallery again: {gallery.COMMAND}"


def test_every_claim_is_recorded():
    assert sorted(RECORD) == claims.names(), ADVICE


def test_every_recorded_claim_holds_and_refutes_what_is_wrong():
    for name, found in RECORD.items():
        assert found["holds"], name
        wrong = [check["wrong"] for check in found["checks"] if "wrong" in check]
        assert wrong and all(each["refuted"] for each in wrong), name


def test_the_pages_hold_the_statements_and_the_recorded_numbers():
    pages = gallery.pages(RECORD)
    assert {path.name for path in gallery.PAGES.glob("*.md")} == set(pages), ADVICE
    for name, text in pages.items():
        assert (gallery.PAGES / name).read_text(encoding="utf-8") == text.rstrip() + "\n", ADVICE


@pytest.mark.parametrize("name", sorted(RECORD))
def test_a_claim_has_its_section_figure_and_command(name):
    area = next(area for area, names in areas().items() if name in names)
    page = (gallery.PAGES / f"{area}.md").read_text(encoding="utf-8")
    section = page.split(f"\n## `{name}`\n")[1].split("\n## ")[0]
    assert f"`ansatz verify {name}`" in section
    assert claims.get(name).formula in section
    assert (claims.get(name).draw is not None) == RECORD[name]["figure"], ADVICE
    assert (f"](../images/claims/{name}.svg)" in section) == RECORD[name]["figure"]
    assert f"({area}.md#{name})" in (gallery.PAGES / "index.md").read_text(encoding="utf-8")


def test_figures_are_those_of_the_record_small_and_without_a_ground():
    files = {path.stem: path for path in gallery.IMAGES.glob("*.svg")}
    assert set(files) == {name for name, found in RECORD.items() if found["figure"]}, ADVICE
    assert sum(path.stat().st_size for path in files.values()) < gallery.LIMIT
    for path in files.values():
        text = path.read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag.endswith("svg") and "currentColor" not in text
        names = set(re.findall(r' id="([^"]+)"', text))
        for target in re.findall(r'href="([^"]*)"', text):
            is_image = target.startswith("data:image/png;base64,")
            assert is_image or target[1:] in names, f"{path.name}: {target[:40]}"


def test_every_formula_is_known_to_the_converter_of_the_site():
    pytest.importorskip("latex2mathml")
    formulas = load(DOCS / "site" / "formulas.py")
    for name in claims.names():
        formula = claims.get(name).formula
        assert "\\" not in formulas.mathml(formula, "block"), f"{name}: {formula}"


def test_markdown_sees_no_markup_in_words():
    assert gallery.text("a*b_c |x| <y> [z] $1$") == ("a\\*b\\_c \\|x\\| &lt;y&gt; \\[z\\] \\$1\\$")
    assert gallery.reference("A, B. https://a.org/b_c.") == "A, B. <https://a.org/b_c>."


def test_numbers_keep_four_digits():
    assert gallery.rounded({"a": 0.123456, "b": True, "c": None, "d": -0.0}) == {
        "a": 0.1235, "b": True, "c": None, "d": 0.0,
    }  # fmt: skip
    assert gallery.rounded(float("nan")) == "nan"


def test_a_rounding_error_keeps_its_decade():
    check = {"measured": 5.3e-16, "predicted": 0.0, "tolerance": 6.2e-13}
    assert gallery.steady(check)["measured"] == "< 1e-15"
    assert gallery.number("< 1e-15") == 1e-15 and gallery.shown("< 1e-15") == "&lt; 1e-15"
    for other in ({"measured": 0.3}, {"predicted": 1.0}, {"tolerance": 6e-16}, {"measured": 0.0}):
        assert gallery.steady(check | other) == check | other
