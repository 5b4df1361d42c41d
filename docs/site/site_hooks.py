"""What MkDocs calls while it builds the site: navigation, reference pages and formulas."""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # MkDocs loads this file alone

from formulas import FORMULAS  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402
from reference import pages  # noqa: E402

DOCS = HERE.parent
ROOT = DOCS.parent

# The guide in the order of a first reading; pages that are not named here follow by their title.
GUIDE = (
    "tables", "grids", "images", "segmentation", "likelihoods", "survival", "rankings",
    "linear-models", "ensembles", "report", "diagnostics", "compare", "tune", "scale", "export",
    "cli",
)  # fmt: skip
INSIDE = (
    "networks", "image-networks", "convolution", "augmentation", "expressivity", "training",
    "formats", "benchmarks", "architecture",
)  # fmt: skip

_OUTSIDE = re.compile(r"\]\(\.\./(?!reference)([^)#\s]+)(#[^)\s]*)?\)")


def title(path: Path) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].strip() if found else path.stem


def guide() -> list[dict[str, Any]]:
    """Home, the guide and the inner workings: every page of the folder has its place."""
    there = {path.stem: path for path in sorted(DOCS.glob("*.md"))}
    home = there.pop("index")
    inside = [there.pop(name) for name in INSIDE if name in there]
    first = [there.pop(name) for name in GUIDE if name in there]
    return [
        {"Home": home.name},
        {"Guide": [{title(path): path.name} for path in (*first, *there.values())]},
        {"Inside": [{title(path): path.name} for path in inside]},
    ]


def gallery() -> list[dict[str, Any]]:
    """The claims by area, in the order of their contents."""
    folder = DOCS / "claims"
    if not (folder / "index.md").exists():
        return []
    listed = re.findall(r"\]\((\w+\.md)\)$", (folder / "index.md").read_text("utf-8"), re.M)
    pages = [f"claims/{name}" for name in listed]
    named = [{title(DOCS / page): page} for page in pages]
    return [{"Claims": ["claims/index.md", *named]}]


def on_config(config: Any) -> Any:
    """The navigation, whatever pages there are."""
    config.nav = [*guide(), *gallery()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the reference, and files outside the folder that pages lead to."""
    FORMULAS.found.clear()
    listed: list[dict[str, Any]] = []
    nested: dict[str, list[dict[str, str]]] = {}
    for page in pages():
        files.append(File.generated(config, page.path, content=page.text))
        folder, _, _ = page.path.removeprefix("reference/").rpartition("/")
        if folder:
            nested.setdefault(f"ansatz.{folder}", []).append({page.title: page.path})
        else:
            listed.append({page.title: page.path})
    config.nav.append({"Reference": [_with_files(entry, nested) for entry in listed]})
    for source in {path for page in DOCS.glob("*.md") for path in _led_to(page)}:
        copy = File.generated(config, f"files/{source}", content=(ROOT / source).read_bytes())
        files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Formulas become tokens that Markdown leaves alone."""
    if page.file.src_uri.startswith("reference/"):
        return markdown  # its formulas were taken out when it was made
    if "/" not in page.file.src_uri:  # a page in a folder leads to its neighbours
        markdown = _OUTSIDE.sub(r"](files/\1)", markdown)
    return FORMULAS.hide(markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """The formulas come back as MathML."""
    return FORMULAS.show(html)


def _with_files(entry: dict[str, Any], nested: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    ((name, path),) = entry.items()
    return {name: [path, *nested[name]]} if name in nested else entry


def _led_to(page: Path) -> set[str]:
    found = {match[1] for match in _OUTSIDE.finditer(page.read_text(encoding="utf-8"))}
    absent = sorted(path for path in found if not (ROOT / path).is_file())
    if absent:
        raise FileNotFoundError(f"{page.name} leads to '../{absent[0]}', which is no file.")
    return found
