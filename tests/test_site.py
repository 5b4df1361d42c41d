"""The site has every page and every public name, and is built without a broken link."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("latex2mathml")
pytest.importorskip("mkdocstrings_handlers")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"


def load(name: str):
    """A file of docs/site, which is not a package."""
    sys.path.insert(0, str(SITE))
    try:
        spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(SITE))


formulas, reference, docstring, notebooks, hooks = map(
    load, ("formulas", "reference", "docstring", "notebooks", "site_hooks")
)


def entries(nav) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    values = nav if isinstance(nav, list) else nav.values()
    return [path for each in values for path in entries(each)]


def test_every_page_of_the_guide_is_in_the_navigation_once():
    found = entries(hooks.guide())
    assert sorted(found) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    assert found[0] == "index.md"


def public_names() -> list[str]:
    """``ansatz.package.Name`` of every public class and function."""
    spec = importlib.util.spec_from_file_location("api", ROOT / "tests" / "test_public_api.py")
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    dotted = {re.match(r"[\w.]+", line).group() for line in api.public_api().splitlines()}
    kinds = {name for name in dotted if name.count(".") <= 2}
    return sorted(name for name in kinds if name.rpartition(".")[0] not in kinds)


def test_every_public_name_has_its_place_in_the_reference():
    places = reference.places()
    written = {page.path: page.text for page in reference.pages()}
    everything = "\n".join(written.values())
    for name in public_names():
        if name in places:
            assert re.search(rf"^::: {re.escape(places[name])}$", everything, re.M), name
        else:  # a value or a registry's function: its package has a page
            assert f"reference/{name.split('.')[1]}.md" in written, name


def test_the_reference_lists_inherited_methods():
    (page,) = [page for page in reference.pages() if page.path == "reference/estimators.md"]
    entry = page.text.split("::: ansatz.estimators.Regressor\n")[1]
    assert entry.lstrip().startswith("options:\n      inherited_members: true")
    (gamma,) = [page for page in reference.pages() if page.path.endswith("likelihoods/gamma.md")]
    assert "[`interval`][ansatz.likelihoods.Distribution.interval]" in gamma.text


def test_a_docstring_becomes_markdown():
    text = r"""A likelihood.

    .. math:: p(y) = \frac{1}{2},
        \quad y > 0

    with :math:`y` = ``raw[0]``, see :class:`~ansatz.likelihoods.Normal` and a*b.

    Args:
        one: the first
            of two.

    Shapes:
        - y: ``(B,)``.

    Example:
        >>> 1 + 1
        2

    References:
        A (2001), B. https://example.org/b.
    """
    written = docstring.markdown(text)
    block, inline = (formulas.FORMULAS.show(t) for t in re.findall(r"zzFORMULA\d+zz", written))
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>" in block
    assert block.startswith('<div class="formula">') and "<mi>y</mi>" in inline
    found = re.sub(r"zzFORMULA\d+zz", "FORMULA", written)
    assert found.strip() == (
        "A likelihood.\n\n\nFORMULA\n\n\n"
        "with FORMULA = `raw[0]`, see [`Normal`][ansatz.likelihoods.Normal] and a\\*b.\n\n"
        "Args:\n    one: the first\n        of two.\n\n"
        "**Shapes:**\n\n- y: `(B,)`.\n\n"
        "Examples:\n    >>> 1 + 1\n    2\n\n"
        "**References:**\n\nA (2001), B. <https://example.org/b>."
    )


def test_formulas_leave_code_alone_and_come_back_as_mathml():
    page = formulas.Formulas()
    hidden = page.hide("Costs $5. `$HOME$` and $x_1$.\n\n$$a \\qquad b$$\n\n```\n$y$\n```\n")
    assert "`$HOME$`" in hidden and "$y$" in hidden and "x_1" not in hidden
    shown = page.show(hidden)
    assert shown.count("<math") == 3 and '<div class="formula">' in shown


def test_every_formula_of_a_docstring_is_known_to_the_converter():
    for file in (ROOT / "src" / "ansatz").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        found = re.findall(r"^ *\.\. math::(.*?)(?=\n\s*\n)", text, re.MULTILINE | re.DOTALL)
        for tex in found:
            assert "\\" not in formulas.mathml(tex, "block"), f"{file.name}: {tex}"


def test_a_notebook_becomes_a_page_with_its_outputs(tmp_path):
    def code(source, **output):
        return {"cell_type": "code", "source": [source], "outputs": [output] if output else []}

    cells = [
        {"cell_type": "markdown", "source": ["# Waves\n", "[Tides](tides.ipynb)."]},
        code("print(1)", output_type="stream", text=["1\n"]),
        code("draw()", output_type="display_data", data={"image/png": "aGk="}),
        code("table", output_type="execute_result", data={"text/html": ["<table></table>"]}),
    ]
    (tmp_path / "waves.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    page = notebooks.convert(tmp_path / "waves.ipynb")
    assert page.pictures == {"waves-1.png": b"hi"}
    for part in (
        "```python\nprint(1)\n```\n\n```text\n1\n```",
        "(waves-1.png)",
        "<table>",
        "(tides.md)",
    ):
        assert part in page.text
    assert hooks.title(tmp_path / "waves.ipynb") == "Waves"


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link_and_asks_nobody(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//")
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not loads.search(text), page
        assert not re.search(r"zz(?:FORMULA|CODE)\d+zz", text), page
    assert (tmp_path / "search" / "search_index.js").stat().st_size > 100_000
