"""Writes the evidence of the README and the pages from the records: python benchmarks/readme.py.

With --check it only says whether they quote the records as they are.
"""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


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
    peers = {
        "skorch": "skorch",
        "lightning": "Lightning",
        "keras": "Keras",
        "scikit-learn": "scikit-learn",
        "hand loop": "loop by hand, fused",
    }
    lines = [
        f"| network | ours, s | {' | '.join(peers.values())} |",
        f"|---|---:|{'---:|' * len(peers)}",
    ]
    shapes = {
        "tiny": "1,000 x 20, (64, 64), batch 32, 50 epochs",
        "large": "20,000 x 784, (256, 128), batch 128, 10 epochs",
    }
    for name, shape in shapes.items():
        (row,) = record(f"bench-speed-{name}")
        ratios = " | ".join(
            f"{row['ratio'][peer]:.1f} x" if peer in row["ratio"] else "" for peer in peers
        )
        lines.append(f"| {name}: {shape} | {row['ours']:.2f} | {ratios} |")
    return "\n".join(lines)


def ensembles() -> str:
    """Test nll of ensembles on the published UCI splits, beside the published figures."""
    path = ROOT / "benchmarks" / "results" / "quality-uci.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [
        "| table | splits | ensemble | Deep Ensembles, published | RMSE | 90 % intervals hold |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, published in PUBLISHED.items():
        mine = [row for row in rows if row["set"] == name]
        nll = [row["nll"] for row in mine]
        error = statistics.stdev(nll) / len(nll) ** 0.5
        rmse, held = (statistics.fmean(row[key] for row in mine) for key in ("rmse", "coverage"))
        lines.append(
            f"| {name} | {len(mine)} | {statistics.fmean(nll):.2f} ± {error:.2f} | "
            f"{published:.2f} | {rmse:.2f} | {held:.1%} |"
        )
    return "\n".join(lines)


def trees() -> str:
    """Ensembles on larger tables beside boosted trees and the linear model."""
    path = ROOT / "benchmarks" / "results" / "quality-tables.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [
        "| table | likelihood | splits | RMSE or error | boosted trees | nll | linear nll |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name and row["inference"] == "ensemble"]
        keys = ("error", "boosted trees", "nll", "linear nll")
        shown = [f"{statistics.fmean(row[key] for row in mine):.4g}" for key in keys]
        lines.append(f"| {name} | {mine[0]['likelihood']} | {len(mine)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def bins() -> str:
    """What it brings to cut numbers in bins."""
    path = ROOT / "benchmarks" / "results" / "bins.json"
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    lines = [
        "| table | training rows | error without | with | nll without | with | default | time |",
        "|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for name, row in found.items():
        shown = [f"{row[count][key]:.4g}" for key in ("error", "nll") for count in ("0", "32")]
        bins = row["default"]["bins"]
        ratio = row["default"]["seconds"] / row["0" if row["rows"] < 10_000 else "32"]["seconds"]
        words = "with" if bins else "without"
        lines.append(f"| {name} | {row['rows']:,} | {' | '.join(shown)} | {words} | {ratio:.2g} |")
    return "\n".join(lines)


def numerics() -> str:
    lines = [
        "| likelihood | cdf | log_survival | icdf | error | in the tails | scipy's logsf there |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in record("likelihoods"):
        found, errors = row["speed"], row["accuracy"]
        ratios = [times(found[name].get("ratio")) for name in ("cdf", "log_survival", "icdf")]
        logs = [[errors[r][tail] for tail in LOGS] for r in ("bulk", "lower", "upper")]
        bulk, tails = worst(logs[0]), worst(logs[1] + logs[2])
        peer = [errors[r].get("scipy_logsf", "none") for r in ("lower", "upper")]
        theirs = next((v for v in peer if isinstance(v, str)), None) or f"{max(peer):.0e}"
        shown = " | ".join([*ratios, bulk, tails, theirs])
        lines.append(f"| `{row['name']}` | {shown} |")
    return "\n".join(lines)


def images_speed() -> str:
    """Seconds and ratios on images, of what is recorded."""
    path = ROOT / "benchmarks" / "results" / "bench-speed-images.json"
    if not path.exists():
        return "Nothing is recorded yet."
    lines = ["| case | ours, s | beside | ratio | limit |", "|---|---:|---|---:|---:|"]
    for row in record("bench-speed-images"):
        for peer, ratio in row["ratio"].items():
            bar = row["limit"].get(peer, {})
            limit = " ".join(f"{SIGNS[key]} {value:g}" for key, value in bar.items())
            lines.append(f"| {row['name']} | {row['ours']:.2f} | {peer} | {ratio:.2f} | {limit} |")
    return "\n".join(lines)


def images_quality() -> str:
    """Errors on images, of what is recorded: mean over seeds, and the largest."""
    lines = [
        "| set | network | seeds | error | worst seed | epochs | minutes | threads |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for file, key in (("quality-images", "error"), ("quality-segmentation", "pixel_error")):
        path = ROOT / "benchmarks" / "results" / f"{file}.jsonl"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        rows = [json.loads(line) for line in text.splitlines()]
        for name in dict.fromkeys(row["set"] for row in rows):
            mine = [row for row in rows if row["set"] == name]
            window = [{**row, **row["sliding window"]} for row in mine if "sliding window" in row]
            lines += [images_row(name, each, key) for each in (mine, window) if each]
    return "\n".join(lines) if len(lines) > 2 else "Nothing is recorded yet."


def images_row(name: str, rows: list[dict], key: str) -> str:
    errors = [row[key] for row in rows]
    epochs, seconds = (statistics.fmean(row[k] for row in rows) for k in ("epochs", "seconds"))
    dice = (
        f", Dice {statistics.fmean(row['dice'] for row in rows):.3f}" if "dice" in rows[0] else ""
    )
    return (
        f"| {name} | {rows[0]['network']} | {len(rows)} | {statistics.fmean(errors):.2%}{dice} | "
        f"{max(errors):.2%} | {epochs:.1f} | {seconds / 60:.0f} | {rows[0]['threads']} |"
    )


def worst(errors: list[float | str]) -> str:
    """The largest, or the word that stands for one that is not finite."""
    words = [error for error in errors if isinstance(error, str)]
    return words[0] if words else f"{max(map(float, errors)):.0e}"


def times(ratio: float | None) -> str:
    if ratio is None:
        return "none"
    return f"{ratio:.1f} x" if ratio >= 0.1 else f"{ratio:.1g} x"


SIGNS = {"at_least": ">=", "at_most": "<="}
LOGS = ("log_cdf", "log_survival")
# Lakshminarayanan et al. (2017), table 1: mean test nll of deep ensembles on the same splits.
PUBLISHED = {"boston": 2.41, "concrete": 3.06, "energy": 1.38, "kin8nm": -1.20, "wine": 0.94}
PAGES = {
    ROOT / "README.md": {
        "tables": tables,
        "ensembles": ensembles,
        "trees": trees,
        "images quality": images_quality,
        "speed": speed,
    },
    ROOT / "docs" / "likelihoods.md": {"numerics": numerics},
    ROOT / "docs" / "tables.md": {"bins": bins},
    ROOT / "docs" / "benchmarks.md": {
        "images speed": images_speed,
        "images quality": images_quality,
    },
}


def fill(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    for name, block in blocks.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        head, _, rest = text.partition(start)
        text = head + start + block() + end + rest.partition(end)[2]
    return text


def main() -> None:
    for page, blocks in PAGES.items():
        text = page.read_text(encoding="utf-8")
        filled = fill(text, blocks)
        if "--check" in sys.argv[1:] and filled != text:
            sys.exit(f"{page.name} differs from benchmarks/results")
        if filled != text:
            page.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
