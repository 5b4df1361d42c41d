"""docs/likelihoods.md names and shows every likelihood, in figures of one script."""

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ansatz.likelihoods import registry

DOCS = Path(__file__).parents[1] / "docs"
IMAGES = DOCS / "images" / "likelihoods"
PAGE = (DOCS / "likelihoods.md").read_text(encoding="utf-8")
SHARED = {  # losses that are drawn together, for comparison
    "losses": {"mse", "mae", "huber", "tukey"},
    "robust_losses": {"charbonnier", "cauchy", "geman_mcclure", "welsch"},
    "class_losses": {"cross_entropy", "focal"},
}
OF_MOLECULES = {"energy_forces"}  # drawn on the page of molecules
LOSSES = {"autoregressive", "dice", "kl", "span", "sum"}.union(
    *SHARED.values()
)  # the first: of too many numbers to draw


def drawn():
    """The figures that docs/figures/likelihoods.py can draw."""
    tree = ast.parse((DOCS / "figures" / "likelihoods.py").read_text(encoding="utf-8"))
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "DRAWN"
    )
    return {name.id for name in table.generators[0].iter.elts}


@pytest.mark.parametrize("name", registry.names())
def test_the_page_has_a_place_for_every_likelihood(name):
    heading, row = f"### `{name}`", f"\n| `{name}` |"
    assert (row if name in LOSSES | OF_MOLECULES else heading) in PAGE


@pytest.mark.parametrize("name", sorted(set(registry.names()) - LOSSES - OF_MOLECULES))
def test_every_likelihood_has_its_figure_in_its_section(name):
    section = PAGE.split(f"### `{name}`")[1].split("\n#")[0]
    assert f"](images/likelihoods/{name}.svg)" in section
    assert (IMAGES / f"{name}.svg").exists()


@pytest.mark.parametrize("name", SHARED)
def test_losses_are_drawn_together(name):
    assert f"](images/likelihoods/{name}.svg)" in PAGE


def test_only_losses_do_without_a_figure_of_their_own():
    assert not [name for name in LOSSES if getattr(registry.get(name), "has_distribution", True)]


def test_one_script_draws_what_is_there():
    found = {path.stem for path in IMAGES.glob("*.svg")}
    assert found == drawn() == set(re.findall(r"images/likelihoods/(\w+)\.svg", PAGE))


@pytest.mark.parametrize("path", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.stem)
def test_figures_are_small_and_have_no_ground(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert re.search(r'<g id="patch_1">\s*<path [^>]*style="fill: none', text)


def test_every_link_of_the_table_leads_to_a_section():
    headings = re.findall(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
