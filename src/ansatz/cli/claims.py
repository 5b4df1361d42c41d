"""Claims on a terminal: the finding of one, a summary of many, common slips, coverage."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ansatz.cli.formula import plain_formula, plain_text
from ansatz.cli.output import number, print_document, print_line, print_table, printable

if TYPE_CHECKING:
    from ansatz.claims import Check, Claim, Outcome
    from ansatz.claims.catalog import Section
    from ansatz.claims.errata import Correction


_WIDTH = 88


def claim_page(claim: "Claim") -> str:
    """The page of a claim that ``ansatz show`` prints."""
    from ansatz.claims.catalog import catalog

    rows = {row.id: row for row in catalog()}
    sources = [f"{each:5} {rows[each].item}" for each in claim.sources if each in rows]
    parts = [
        f"{claim.id} (claim)",
        wrapped(claim.title),
        wrapped(claim.statement),
        textwrap.indent(plain_formula(claim.formula), "    "),
        titled("Measured", wrapped(plain_text(claim.measure.__doc__ or ""))),
        *(titled(f"Common slip {each.id}", _slip(each)) for each in claim.errata),
        titled("Parameters", "\n".join(_parameters(claim))),
        titled("Catalog", "\n".join(sources)),
        titled("Reference", wrapped(claim.reference)),
        titled("Run", _commands(claim)),
    ]
    text = "\n\n".join(part for part in parts if part.strip())
    return "\n".join(printable(line) for line in text.splitlines())


def claim_document(claim: "Claim") -> dict[str, Any]:
    """The document of a claim that ``ansatz show --json`` prints."""
    return {
        "name": claim.id,
        "kind": "claim",
        "summary": claim.title,
        "statement": claim.statement,
        "formulas": [claim.formula],
        "sources": list(claim.sources),
        "errata": [each._asdict() for each in claim.errata],
        "parameters": {"quick": claim.parameters("quick"), "full": claim.parameters("full")},
        "figure": claim.draw is not None,
        "reference": claim.reference,
        "example": f"ansatz verify {claim.id}",
    }


def _slip(erratum: Any) -> str:
    return f"printed: {erratum.printed}\ncorrect: {erratum.correct}"


def _parameters(claim: "Claim") -> list[str]:
    quick, full = claim.parameters("quick"), claim.parameters("full")
    width = max(map(len, quick), default=0)
    return [
        f"{name:{width}}  {value!r}" + (f"  (full: {full[name]!r})" if full[name] != value else "")
        for name, value in quick.items()
    ]


def _commands(claim: "Claim") -> str:
    lines = [f"ansatz verify {claim.id}"]
    if claim.draw is not None:
        lines[0] += f" --figure {claim.id}.png"
    return "\n".join([*lines, f'ansatz.claims.run("{claim.id}")'])


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines that a page can hold, those after the first indented."""
    plain: Any = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(" ".join(text.split()), _WIDTH, subsequent_indent=indent, **plain)


def titled(title: str, text: str) -> str:
    """A section of a page; nothing where the text is empty."""
    return f"{title}\n{textwrap.indent(text, '  ')}" if text.strip() else ""


_ROWS = 40  # of a table, at most
_SIGNS = {"<=": "≤", ">=": "≥", "=": "="}


def print_finding(outcome: "Outcome", scale: str, seed: int, parameters: dict[str, Any]) -> None:
    """Prints one claim: statement, checks with tolerance and wrong prediction, table."""
    from ansatz.claims import get

    if outcome.finding is None:
        print_line(f"{outcome.id}: {outcome.verdict}")
        return
    claim = get(outcome.id)
    print_line(f"{claim.id}: {claim.title}")
    print_line()
    for line in wrapped(claim.statement).splitlines():
        print_line(line)
    print_line()
    for line in plain_formula(claim.formula).splitlines():
        print_line(f"    {line}")
    for check in outcome.finding.checks:
        print_line()
        _print_check(check)
    _print_numbers(outcome.finding.table)
    print_line()
    values = claim.parameters("full" if scale == "full" else "quick") | parameters
    settings = ", ".join(f"{name}={value}" for name, value in values.items())
    with_ = f"; {settings}" if settings else ""
    print_line(f"{outcome.verdict}, {outcome.seconds:.2f} s ({scale}, seed {seed}{with_})")


def _print_check(check: "Check") -> None:
    print_line(check.what)
    verdict = "holds" if check.holds else "DOES NOT HOLD"
    print_line(f"  measured   {_exact(check.measured)}")
    print_line(f"  predicted  {_SIGNS[check.relation]} {_exact(check.predicted)}: {verdict}")
    print_line(f"  tolerance  {number(float(check.tolerance))} ({check.because})")
    if check.wrong is not None:
        wrong = check.wrong
        row = f"{wrong.erratum}, " if wrong.erratum else ""
        gives = f"predicts {_exact(wrong.predicted)}" if wrong.predicted is not None else ""
        if wrong.measured is not None:
            gives = f"{gives} and " * bool(gives) + f"gives {_exact(wrong.measured)}"
        refuted = "refuted" if check.rejects_wrong else "PASSES, and must not"
        print_line(f"  wrong      {row}{wrong.name}: {gives}: {refuted}")


def _print_numbers(table: Any) -> None:
    if table is None or not table.rows:
        return
    print_line()
    rows = [[_cell(value) for value in row] for row in table.rows[:_ROWS]]
    print_table(table.head, rows, numbers=range(len(table.head)), limit=None)
    if len(table.rows) > _ROWS:
        print_line(f"... {len(table.rows) - _ROWS} more rows")


def print_summary(outcomes: "Sequence[Outcome]", seconds: float, *, slowest: bool = False) -> None:
    """Prints a line per claim, and how many hold."""
    shown = sorted(outcomes, key=lambda each: -each.seconds) if slowest else outcomes
    head = ["claim", "measured", "", "predicted", "tolerance", "verdict", "seconds"]
    print_table(head, [_line(outcome) for outcome in shown], numbers=[1, 3, 4, 6], limit=None)
    print_line()
    for outcome in outcomes:
        for check in outcome.finding.checks if outcome.finding is not None else ():
            if not (check.holds and check.rejects_wrong):
                print_line(outcome.id)
                _print_check(check)
                print_line()
        if outcome.finding is not None and not any(c.wrong for c in outcome.finding.checks):
            print_line(f"{outcome.id}: no wrong prediction is named")
    held = sum(outcome.holds for outcome in outcomes)
    print_line(f"{held} of {len(outcomes)} claims hold, {seconds:.1f} s.")


def _line(outcome: "Outcome") -> list[str]:
    taken = f"{outcome.seconds:.2f}"
    if outcome.finding is None:
        return [outcome.id, "", "", "", "", outcome.verdict, taken]
    head = outcome.finding.checks[0]
    numbers = [number(float(head.measured)), _SIGNS[head.relation], number(float(head.predicted))]
    return [outcome.id, *numbers, number(float(head.tolerance)), outcome.verdict, taken]


def print_errata(corrections: "Sequence[Correction]", as_json: bool) -> None:
    """Prints the common slips, each with the check that refutes it."""
    if as_json:
        print_document([each.to_dict() for each in corrections])
        return
    missing = [each.row for each in corrections if each.claim is None]
    for each in corrections:
        if each.erratum is not None:
            _print_correction(each)
            print_line()
    refuted = {each.row.id for each in corrections if each.refuted}
    rows = {each.row.id for each in corrections}
    print_line(f"{len(refuted)} of {len(rows)} common slips are refuted.")
    if missing:
        print_line("Without a claim yet:")
    for row in missing:
        print_line(f"  {row.id:4} {row.item}")


def _print_correction(each: "Correction") -> None:
    assert each.erratum is not None
    print_line(f"{each.row.id}  {each.row.item} (claim {each.claim})")
    width = max(len(each.erratum.printed), len(each.erratum.correct))
    check = each.check
    if check is None:
        print_line(f"  printed    {each.erratum.printed}")
        print_line(f"  correct    {each.erratum.correct}")
        print_line("  verdict    BROKEN")
        return
    print_line(f"  printed    {each.erratum.printed:{width}}  gives {_exact(each.printed_gives)}")
    print_line(f"  correct    {each.erratum.correct:{width}}  gives {_exact(each.correct_gives)}")
    within = f"within {number(float(check.tolerance))} ({check.because})"
    if each.is_measured_otherwise:
        aim = f"predicted  {_SIGNS[check.relation]} {_exact(check.predicted)}"
    else:
        aim = f"measured   {_exact(check.measured)}"
    print_line(f"  {aim}: {check.what}, {within}")
    print_line(f"  verdict    {'refuted' if each.refuted else 'NOT REFUTED'}")


def print_coverage(sections: "Sequence[Section]", as_json: bool) -> None:
    """Prints which statements of the catalog have a claim, and which things the library has."""
    if as_json:
        print_document([section.to_dict() for section in sections])
        return
    rows: list[tuple[object, ...]] = []
    for section in sections:
        missing, absent = len(section.missing), len(section.absent)
        done, there = len(section.rows) - missing, len(section.things) - absent
        rows.append((section.id, section.title, done, missing, there, absent))
    total = [sum(int(str(row[column])) for row in rows) for column in (2, 3, 4, 5)]
    rows.append(("", "all", *total))
    head = ["section", "", "claimed", "missing", "things there", "absent"]
    print_table(head, rows, numbers=[2, 3, 4, 5])
    for section in sections:
        for what, lacking in (("without a claim", section.missing), ("absent", section.absent)):
            if lacking:
                print_line()
                print_line(f"{section.id}: {section.title}: {what}")
                for row in lacking:
                    print_line(f"  {row.id:4} {row.kind:10}  {row.item}")


def _exact(value: float | None) -> str:
    return "-" if value is None else f"{float(value) + 0.0:.6g}"  # no -0


def _cell(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.4g}" if isinstance(value, float) else str(value)
