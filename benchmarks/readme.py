"""Writes the README's evidence from the records: python benchmarks/readme.py.

With --check it only says whether the README quotes the records as they are.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def record(name: str) -> list[dict]:
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def tables() -> str:
    lines = [
        "Test negative log-likelihood (lower is better), default settings, one seed:",
        "",
        "| table | rows | likelihood | network | linear | constant | seconds |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for row in record("tables"):
        nll = [row[who]["nll"] for who in ("metrics", "linear", "constant")]
        best = min(nll)
        shown = " | ".join(f"**{x:.3f}**" if x == best else f"{x:.3f}" for x in nll)
        rows = sum(row["rows"].values())
        lines.append(
            f"| {row['name']} | {rows:,} | {row['likelihood']} | {shown} | {row['seconds']} |"
        )
    return "\n".join(lines)


def speed() -> str:
    names = {
        "hand_loop": "hand-written torch loop",
        "sklearn": "scikit-learn",
        "skorch": "skorch",
        "skorch_fused": "skorch, fused AdamW",
    }
    lines = [
        f"| network | ours, µs | {' | '.join(names.values())} |",
        f"|---|---:|{'---:|' * len(names)}",
    ]
    for row in record("analytic-step"):
        ratios = " | ".join(f"{row['ratio'][peer]:.1f} x" for peer in names)
        lines.append(f"| {row['name']} | {row['ours']['analytic']:.0f} | {ratios} |")
    return "\n".join(lines)


def fill(text: str) -> str:
    for name, block in (("tables", tables()), ("speed", speed())):
        pattern = rf"<!-- {name} -->\n.*?<!-- end of {name} -->"
        text = re.sub(
            pattern,
            lambda _, n=name, b=block: f"<!-- {n} -->\n{b}\n<!-- end of {n} -->",
            text,
            flags=re.DOTALL,
        )
    return text


def main() -> None:
    text = README.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        sys.exit(0 if fill(text) == text else "README.md differs from benchmarks/results")
    README.write_text(fill(text), encoding="utf-8")


if __name__ == "__main__":
    main()
