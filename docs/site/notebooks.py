"""Turns executed notebooks into Markdown pages; their stored outputs are shown, nothing runs."""

import base64
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

_LINKS = re.compile(r"\(([\w-]+)\.ipynb\)")  # to other notebooks, which are pages here
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Notebook(NamedTuple):
    """The page of a notebook and the pictures that it shows, by file name."""

    text: str
    pictures: dict[str, bytes]


def convert(path: Path) -> Notebook:
    """Reads a notebook of format 4."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in cells:
        source = "".join(cell["source"]).rstrip()
        if cell["cell_type"] == "markdown":
            parts.append(_LINKS.sub(r"(\1.md)", source))
        elif cell["cell_type"] == "code" and source:
            parts.append(f"```python\n{source}\n```")
            for output in cell["outputs"]:
                parts.append(_output(output, path.stem, pictures))
    parts.insert(1, f"[Download this notebook]({path.name}).")
    return Notebook("\n\n".join(part for part in parts if part) + "\n", pictures)


def _output(output: dict[str, Any], stem: str, pictures: dict[str, bytes]) -> str:
    data = output.get("data", {})
    if "image/png" in data or "image/svg+xml" in data:
        vector = "image/png" not in data
        name = f"{stem}-{len(pictures) + 1}.{'svg' if vector else 'png'}"
        found = "".join(data["image/svg+xml" if vector else "image/png"])
        pictures[name] = found.encode() if vector else base64.b64decode(found)
        return f"![A result of the code above]({name})"
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        return f'<div class="output">{" ".join(html.split())}</div>'
    text = "".join(output.get("text", data.get("text/plain", output.get("traceback", ""))))
    return f"```text\n{_COLOURS.sub('', text).rstrip()}\n```" if text.strip() else ""
