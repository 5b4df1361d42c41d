"""Hooks that MkDocs calls while it builds the site: navigation, generated pages, formulas."""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # MkDocs loads this file alone

import notebooks  # noqa: E402
import reference  # noqa: E402
from formulas import FORMULAS  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402

DOCS = HERE.parent
ROOT = DOCS.parent

SECTIONS = {
    "Start": ("install", "ten-minutes"),
    "Guides": (
        "tables", "images", "text", "language-models", "tags", "translation", "forecasts", "links",
        "diffusion", "registration",
        "segmentation", "volumes", "likelihoods", "survival", "rankings",
        "linear-models", "ensembles", "gaussian-processes", "sampling", "bayesian-models", "report",
        "diagnostics", "attribution", "compare",
        "tune", "augmentation",
        "symmetry", "scale", "export", "cli",
    ),
    "In your own PyTorch code": (
        "networks", "image-networks", "convolution", "recurrence", "attention", "training",
        "your-own",
    ),
    "Theory": ("claims", "learning-theory", "expressivity", "connectionism"),
    "About": ("glossary", "benchmarks", "formats", "architecture"),
}  # fmt: skip

PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}  # of the root

_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_OUTSIDE = re.compile(r"\]\(\.\./(?!reference)([^)#\s]+)(#[^)\s]*)?\)")


def title(path: Path) -> str:
    """Returns the first heading of a page or notebook."""
    found = re.search(r'^(?: *")?# (.+?)(?:\\n)?"?,?$', path.read_text(encoding="utf-8"), re.M)
    return found[1].strip() if found else path.stem


def guide() -> list[dict[str, Any]]:
    """Lists the pages of docs/ in the order of a first reading."""
    sections = [
        {name: [{title(DOCS / f"{stem}.md"): f"{stem}.md"} for stem in stems]}
        for name, stems in SECTIONS.items()
    ]
    return [{"Home": "index.md"}, *sections]


def notebook_pages() -> list[dict[str, Any]]:
    """Lists the notebooks of docs/notebooks, if there are any."""
    found = sorted((DOCS / "notebooks").glob("*.ipynb"))
    return [{"Notebooks": [{title(p): f"notebooks/{p.stem}.md"} for p in found]}] if found else []


def gallery() -> list[dict[str, Any]]:
    """Lists the claims by area, in the order of their contents."""
    folder = DOCS / "claims"
    if not (folder / "index.md").exists():
        return []
    listed = re.findall(r"\]\((\w+\.md)\)$", (folder / "index.md").read_text("utf-8"), re.M)
    named = [{title(folder / name): f"claims/{name}"} for name in listed]
    return [{"Claims": ["claims/index.md", *named]}]


def on_config(config: Any) -> Any:
    """Sets the navigation."""
    start, guides, *others, about = guide()[1:]
    ((_, last),) = about.items()
    last += [{title(ROOT / source): page} for source, page in PAGES.items()]
    home = {"Home": "index.md"}
    config.nav = [home, start, guides, *notebook_pages(), *others, about, *gallery()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the reference, the notebooks, pages of the root and other files that pages link to."""
    FORMULAS.found.clear()

    def add(path: str, content: str | bytes) -> None:
        files.append(File.generated(config, path, content=content))

    listed: list[dict[str, Any]] = []
    for page in reference.pages():
        add(page.path, page.text)
        folder, _, _ = page.path.removeprefix("reference/").rpartition("/")
        if folder:  # a page per source file stands below its package
            ((package, inside),) = listed[-1].items()
            own = inside if isinstance(inside, list) else [inside]
            listed[-1] = {package: [*own, {page.title: page.path}]}
        else:
            listed.append({page.title: page.path})
    config.nav.append({"Reference": listed})
    for path in (DOCS / "notebooks").glob("*.ipynb"):
        notebook = notebooks.convert(path)
        add(f"notebooks/{path.stem}.md", notebook.text)
        for name, picture in notebook.pictures.items():
            add(f"notebooks/{name}", picture)
    linked = {path for page in DOCS.glob("*.md") for path in _linked(page)}
    for source, page_name in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        linked |= {path for path in _LINK.findall(text) if not path.startswith("docs/")}
        add(page_name, _LINK.sub(lambda match: f"]({_place(match[1])}", text))
    for source in linked - set(PAGES):
        add(f"files/{source}", (ROOT / source).read_bytes())
    return files


def _place(path: str) -> str:
    """Where the site has a file of the repository."""
    return PAGES.get(path) or (path[5:] if path.startswith("docs/") else f"files/{path}")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replaces formulas by tokens that Markdown leaves alone."""
    if page.file.src_uri.startswith("reference/"):
        return markdown  # mkdocstrings replaces them
    if "/" not in page.file.src_uri:  # a page in a folder links to its neighbours
        markdown = _OUTSIDE.sub(lambda match: f"]({_place(match[1])})", markdown)
    return FORMULAS.hide(markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Puts the formulas back, as MathML."""
    return FORMULAS.show(html)


def _linked(page: Path) -> set[str]:
    found = {match[1] for match in _OUTSIDE.finditer(page.read_text(encoding="utf-8"))}
    absent = sorted(path for path in found if not (ROOT / path).is_file())
    if absent:
        raise FileNotFoundError(f"{page.name} links to '../{absent[0]}', which is not a file.")
    return found
