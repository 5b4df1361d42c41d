"""The notebooks in docs/notebooks run from top to bottom and show what they showed when written.

``python tests/test_notebooks.py`` runs them and writes their outputs anew. No Jupyter is needed.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import torch
from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.\d+|-?\d+")


def png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode()


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def outputs_of(code: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Runs a cell and gives its outputs: what it prints, and the value of its last expression."""
    *body, last = ast.parse(code).body
    shown = isinstance(last, ast.Expr) and not code.rstrip().endswith(";")
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if shown:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        else:
            exec(compile(ast.Module([last], []), "<cell>", "exec"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = lines(printed.getvalue())
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data: dict[str, Any] = {"text/plain": lines(re.sub(r" at 0x\w+", "", repr(value)))}
        if hasattr(value, "to_html"):
            data = {"text/html": lines(value.to_html(border=0)), **data}
        if isinstance(value, Figure):
            data = {"image/png": png(value), "text/plain": ["a figure"]}
        result = {"data": data, "metadata": {}, "output_type": "execute_result"}
        found.append({**result, "execution_count": count})
    return found


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of every code cell, run in order in a fresh namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), matplotlib.rc_context():
        return [outputs_of("".join(c["source"]), names, k) for k, c in enumerate(cells, start=1)]


def text_of(outputs: list[dict[str, Any]]) -> str:
    return "\n".join(
        "".join(each.get("text") or each["data"]["text/plain"]) for each in outputs
    ).strip()


def figures_of(notebook: dict[str, Any]) -> int:
    found = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in found)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_it_shows_what_its_outputs_say(notebook):
    torch.set_default_dtype(torch.float32)  # what a user has
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, found in zip(cells, run(notebook), strict=True):
        before, now = text_of(cell["outputs"]), text_of(found)
        assert NUMBER.sub("#", now).split() == NUMBER.sub("#", before).split(), now
        # Another machine rounds otherwise, and training carries it on.
        expected = [pytest.approx(float(x), rel=0.15, abs=0.05) for x in NUMBER.findall(before)]
        assert [float(x) for x in NUMBER.findall(now)] == expected, now


def test_it_is_small_and_has_a_figure(notebook):
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert figures_of(notebook) >= 1 and len(json.dumps(notebook)) < 150_000
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds[0] == "markdown" and "code" in kinds
    assert len({cell["id"] for cell in notebook["cells"]}) == len(kinds)


def test_there_are_five():
    assert len(NOTEBOOKS) == 5


def main() -> None:
    """Runs the notebooks and writes their outputs."""
    matplotlib.use("agg")
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for count, (cell, found) in enumerate(zip(cells, run(notebook), strict=True), start=1):
            cell["outputs"], cell["execution_count"] = found, count
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text)} bytes")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
