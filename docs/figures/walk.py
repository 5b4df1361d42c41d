"""Writes the walk of one table fit, file by file, into docs/architecture.md.

``python docs/figures/walk.py`` fits a small table by the command line with a tracer and lists the
files whose functions ran, in the order of their first call, with the first function of each.
Leaf libraries (data, likelihoods, linear, networks, layers, metrics, optim) stand in one line each.
"""

import collections
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import ansatz
from ansatz.cli.main import run

PAGE = Path(__file__).parent.parent / "architecture.md"
ROOT = Path(ansatz.__file__).parent
LEAVES = ("data", "likelihoods", "linear", "networks", "layers", "metrics", "optim")


def table(folder: Path) -> Path:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": draw.choice(["u", "v"], size=300)})
    frame["y"] = x[:, 0] + draw.normal(size=300)
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return path


def fit(data: Path, out: Path) -> None:
    words = ["fit", str(data), "--target", "y", "--likelihood", "normal", "--out", str(out), "-q"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert run(words) == 0


def traced(data: Path, out: Path) -> dict[str, str]:
    """The first function that ran in each file, in order."""
    found: dict[str, str] = {}

    def see(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(f"{ROOT}/"):
            name = frame.f_code.co_name
            if not name.startswith("<"):
                found.setdefault(str(Path(frame.f_code.co_filename).relative_to(ROOT)), name)

    sys.setprofile(see)
    try:
        fit(data, out)
    finally:
        sys.setprofile(None)
    return found


def rows(found: dict[str, str]) -> list[str]:
    lines, leaves = [], collections.Counter(name.split("/")[0] for name in found)
    said: set[str] = set()
    for name, function in found.items():
        folder = name.split("/")[0]
        if folder not in LEAVES:
            lines.append(f"| `{name}` | `{function}` |")
        elif folder not in said:
            said.add(folder)
            lines.append(f"| `{folder}/` ({leaves[folder]} files) | |")
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        data = table(Path(place))
        fit(data, Path(place) / "warm")  # what is imported once is not part of the walk
        lines = rows(traced(data, Path(place) / "model"))
    count = sum(not line.endswith("| |") for line in lines)
    text = f"{count} files, and the leaf libraries:\n\n| file | first call |\n| --- | --- |\n"
    text += "\n".join(lines)
    page = PAGE.read_text(encoding="utf-8")
    made = re.sub(
        r"(<!-- walk -->\n).*?(<!-- end of walk -->)",
        lambda match: match[1] + text + "\n" + match[2],
        page,
        flags=re.DOTALL,
    )
    PAGE.write_text(made, encoding="utf-8")
    print(count, "files")


if __name__ == "__main__":
    main()
