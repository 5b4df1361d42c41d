"""Runs every claim and writes docs/claims/ with its figures: python docs/figures/claims.py.

The numbers of the run are kept in docs/claims/record.json; the pages are made from them. Without
a change in the claims the files come out the same, byte for byte.
"""

import argparse
import importlib
import json
import math
import os
import re
from pathlib import Path
from typing import Any

from ansatz import claims
from ansatz.claims.catalog import catalog
from ansatz.claims.errata import errata
from ansatz.claims.registry import areas, select

DOCS = Path(__file__).parents[1]
PAGES, IMAGES = DOCS / "claims", DOCS / "images" / "claims"
RECORD = PAGES / "record.json"
COMMAND = "python docs/figures/claims.py"
LIMIT = 4_000_000  # bytes of all figures
Record = dict[str, Any]  # what the run of one claim found, as JSON


def main() -> None:
    """Runs, draws, and writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="claims to run again; the others stay")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pages", action="store_true", help="write the pages only")
    chosen = parser.parse_args()
    record = read_record() if RECORD.exists() else {}
    if not chosen.pages:
        wanted = select(chosen.names)
        for outcome in claims.verify(
            *wanted, figures="svg", workers=chosen.workers, on_outcome=show
        ):
            if outcome.finding is None:
                raise SystemExit(f"{outcome.id} broke: {outcome.error}")
            record[outcome.id] = recorded(outcome)
            save_figure(outcome)
    record = {name: record[name] for name in claims.names() if name in record}
    write(RECORD, json.dumps({"command": COMMAND, "claims": record}, indent=1, ensure_ascii=False))
    remove_the_rest(record)
    for name, text in pages(record).items():
        write(PAGES / name, text)
    size = sum(path.stat().st_size for path in IMAGES.glob("*.svg"))
    print(f"{len(record)} claims, figures of {size / 1e6:.2f} MB")
    if size > LIMIT:
        raise SystemExit(f"the figures have {size} bytes, at most {LIMIT} are wanted")


def show(outcome: claims.Outcome) -> None:
    """Prints one line per claim."""
    size = len(outcome.figure or b"")
    print(
        f"{outcome.id:40} {outcome.verdict:16} {outcome.seconds:6.2f} s {size:8} bytes", flush=True
    )


def read_record() -> dict[str, Record]:
    """The numbers of the last run, by claim."""
    found: dict[str, Record] = json.loads(RECORD.read_text(encoding="utf-8"))["claims"]
    return found


def recorded(outcome: claims.Outcome) -> Record:
    """What is kept of a run: four digits, and of rounding errors the decade."""
    assert outcome.finding is not None
    return {
        "holds": outcome.holds,
        "figure": outcome.figure is not None,
        "checks": [steady(rounded(check.to_dict())) for check in outcome.finding.checks],
    }


def rounded(value: Any) -> Any:
    """Numbers to four significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | str):
        return value
    found = float(value)
    return float(f"{found:.4g}") + 0.0 if math.isfinite(found) else str(found)


def steady(check: Record) -> Record:
    """A rounding error by its decade: its digits change with the place of an array in memory."""
    value, tolerance = check["measured"], check["tolerance"]
    if check["predicted"] != 0 or not isinstance(value, float) or not 0 < abs(value) < 1e-9:
        return check
    decade = f"1e{math.ceil(math.log10(abs(value))):+03d}"
    if not isinstance(tolerance, float) or float(decade) > tolerance:
        return check
    found = check | {"measured": f"< {decade}"}
    if "wrong" in check and check["wrong"]["measured"] == value:
        found["wrong"] = check["wrong"] | {"measured": f"< {decade}"}
    return found


def number(kept: float | str) -> float:
    """A kept number as one that can be compared."""
    return float(str(kept).removeprefix("< "))


def save_figure(outcome: claims.Outcome) -> None:
    """The drawing, if there is one."""
    if outcome.figure is not None:
        IMAGES.mkdir(parents=True, exist_ok=True)
        (IMAGES / f"{outcome.id}.svg").write_bytes(outcome.figure)


def remove_the_rest(record: dict[str, Record]) -> None:
    """Removes figures and pages of claims that no longer exist."""
    drawn = {name for name, found in record.items() if found["figure"]}
    for path in IMAGES.glob("*.svg"):
        if path.stem not in drawn:
            path.unlink()
    for path in PAGES.glob("*.md"):
        if path.name not in pages(record):
            path.unlink()


def write(path: Path, text: str) -> None:
    """A text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


def pages(record: dict[str, Record]) -> dict[str, str]:
    """The text of every page by its file's name."""
    by_area = ordered_areas(record)
    found = {f"{area}.md": area_page(area, names, record) for area, names in by_area.items()}
    return {"index.md": index_page(by_area, record), "errata.md": errata_page(record)} | found


def ordered_areas(record: dict[str, Record]) -> dict[str, list[str]]:
    """The areas in the order of the catalog."""
    place = {row.id: k for k, row in enumerate(catalog())}
    there = {area: [name for name in names if name in record] for area, names in areas().items()}

    def first(names: list[str]) -> float:
        return min(place[source] for name in names for source in claims.get(name).sources)

    filled = {area: names for area, names in there.items() if names}
    return dict(sorted(filled.items(), key=lambda item: first(item[1])))


def index_page(by_area: dict[str, list[str]], record: dict[str, Record]) -> str:
    """All claims, by area, with a small figure each."""
    held = sum(found["holds"] for found in record.values())
    parts = [
        "# Gallery of claims",
        f"{len(record)} statements of deep learning and its mathematics, measured; {held} hold. "
        "[How to read and run a claim, and how to write one](../claims.md). "
        "The numbers are those of a quick run with seed 0, recorded in [record.json](record.json); "
        f"`{COMMAND}` makes these pages.",
    ]
    for area, names in by_area.items():
        rows = ["| | claim | measured | predicted |", "|---|---|---:|---:|"]
        rows += [index_row(area, name, record[name]) for name in names]
        parts += [f"## [{area.capitalize()}]({area}.md)", about(area), "\n".join(rows)]
    lead = "Common slips in printed formulas, the right formulas, and the numbers that decide."
    parts += ["## [Errata](errata.md)", lead]
    return "\n\n".join(parts)


def index_row(area: str, name: str, found: Record) -> str:
    """A small figure, the name, and the headline."""
    image = f'<img src="../images/claims/{name}.svg" width="180" alt="">' if found["figure"] else ""
    head = found["checks"][0]
    headline = f"{shown(head['measured'])} | {aim(head)}"
    title = text(claims.get(name).title)
    return f"| {image} | [`{name}`]({area}.md#{name})<br>{title} | {headline} |"


def area_page(area: str, names: list[str], record: dict[str, Record]) -> str:
    """Each claim of an area: statement, formula, figure, numbers, command."""
    links = ", ".join(f"[{name}](#{name})" for name in names)
    parts = [f"# {area.capitalize()}", f"{about(area)} [All areas](index.md).", links]
    return "\n\n".join([*parts, *(section(name, record[name]) for name in names)])


def errata_page(record: dict[str, Record]) -> str:
    """The common slips in their order, each with the two numbers."""
    area_of = {name: area for area, names in areas().items() for name in names}
    found = errata([outcome_of(name, kept) for name, kept in record.items()])
    lines = ["| | printed | correct | of |", "|---|---|---|---|"]
    for each in found:
        if each.claim not in record or each.erratum is None or each.check is None:
            lines.append(row(each.row.id, text(each.row.item), "", "none yet"))
            continue
        printed = f"{text(each.erratum.printed)}<br>*gives {shown(each.printed_gives)}*"
        correct = f"{text(each.erratum.correct)}<br>*gives {shown(each.correct_gives)}*"
        link = f"[{each.claim}]({area_of[each.claim]}.md#{each.claim})"
        lines.append(row(each.row.id, printed, correct, f"{text(each.check.what)}<br>{link}"))
    refuted = len({each.row.id for each in found if each.refuted})
    lead = (
        "Each row has a common slip in a printed formula, and the right formula; measurements "
        f"refute {refuted} of 65 slips. *Gives* is the number that the formula predicts, or "
        "the number that is measured when it is used; the claim has the check that decides. "
        "`ansatz verify --errata` measures them again. [All claims](index.md)."
    )
    return "\n\n".join(["# Errata", lead, "\n".join(lines)])


def outcome_of(name: str, found: Record) -> claims.Outcome:
    """A recorded run as the library knows runs."""
    checks = []
    for kept in found["checks"]:
        values = {key: kept[key] for key in ("what", "because", "relation")}
        values |= {key: number(kept[key]) for key in ("measured", "predicted", "tolerance")}
        if "wrong" in kept:
            slip = kept["wrong"]
            own = {
                key: None if slip[key] == kept[key] else number(slip[key])
                for key in ("measured", "predicted")
            }
            values["wrong"] = claims.Wrong(slip["name"], erratum=slip["erratum"] or "", **own)
        checks.append(claims.Check(**values))
    return claims.Outcome(name, 0.0, claims.Finding(checks))


def section(name: str, found: Record) -> str:
    """One claim."""
    claim = claims.get(name)
    rows = {row.id: row.item for row in catalog()}
    parts = [
        f"## `{name}`",
        f"**{text(claim.title.rstrip('.'))}.** {text(claim.statement)}",
        f"$$ {claim.formula} $$",
    ]
    if found["figure"]:
        parts.append(f"![{text(claim.title)}](../images/claims/{name}.svg)")
    parts.append(numbers(found["checks"]))
    parts += [slip_of(erratum) for erratum in claim.errata]
    sources = "; ".join(f"{source} {text(rows[source])}" for source in claim.sources)
    parts.append(
        f"Run it: `ansatz verify {name}`. Catalog: {sources}. Reference: "
        f"{reference(claim.reference)}"
    )
    return "\n\n".join(parts)


def numbers(checks: list[Record]) -> str:
    """The checks as a table, each with the wrong prediction below it."""
    lines = ["| | measured | predicted | |", "|---|---:|---:|---|"]
    for check in checks:
        verdict = "holds" if check["holds"] else "**does not hold**"
        what = f"{text(check['what'])}<br>*tolerance: {text(check['because'])}*"
        lines.append(row(what, shown(check["measured"]), aim(check), verdict))
        if "wrong" in check:
            wrong = check["wrong"]
            what = f"wrong{', ' + wrong['erratum'] if wrong['erratum'] else ''}: "
            verdict = "refuted" if wrong["refuted"] else "**passes**"
            measured, predicted = (
                "" if wrong[key] == check[key] else shown(wrong[key])
                for key in ("measured", "predicted")
            )
            lines.append(row(what + text(wrong["name"]), measured, predicted, verdict))
    return "\n".join(lines)


def aim(check: Record) -> str:
    """What is predicted, and how far from it a measurement may be."""
    sign = {"=": "", "<=": "≤ ", ">=": "≥ "}[check["relation"]]
    side = {"=": "±", "<=": "+", ">=": "-"}[check["relation"]]
    tolerance = check["tolerance"]
    within = f" {side} {tolerance:.2g}" if isinstance(tolerance, float) and tolerance else ""
    return f"{sign}{shown(check['predicted'])}{within}"


def slip_of(erratum: claims.Erratum) -> str:
    """A common slip, and the right formula."""
    return f"Common slip {erratum.id}: {text(erratum.printed)}. Correct: {text(erratum.correct)}."


def reference(words: str) -> str:
    """A reference whose addresses are links."""
    parts = re.split(r"(https?://\S*[^\s.,;)])", words)
    return "".join(f"<{part}>" if k % 2 else text(part) for k, part in enumerate(parts))


def row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def shown(value: float | str | None) -> str:
    """A number: four digits, no exponent where none is needed."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("<", "&lt;")


def text(words: str) -> str:
    """Words in which Markdown is to see no markup."""
    words = re.sub(r"\s+", " ", words).replace("\\", "\\\\")
    for sign in "|*_`$[]":
        words = words.replace(sign, f"\\{sign}")
    return words.replace("<", "&lt;").replace(">", "&gt;")


def about(area: str) -> str:
    """The line that says what an area is about."""
    return (importlib.import_module(f"ansatz.claims.{area}").__doc__ or "").strip()


if __name__ == "__main__":
    main()
