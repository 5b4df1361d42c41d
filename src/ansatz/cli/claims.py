"""Claims on a terminal: the finding of one, a summary of many, common slips, coverage."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ansatz.cli.claim_page import wrapped
from ansatz.cli.document import print_document
from ansatz.cli.formula import plain_formula
from ansatz.cli.terminal import number, print_table, say

if TYPE_CHECKING:
    from ansatz.claims import Check, Outcome
    from ansatz.claims.catalog import Section
    from ansatz.claims.errata import Correction

_ROWS = 40  # of a table, at most
_SIGNS = {"<=": "≤", ">=": "≥", "=": "="}


def print_finding(outcome: "Outcome", scale: str, seed: int, parameters: dict[str, Any]) -> None:
    """Prints one claim: statement, checks with tolerance and wrong prediction, table."""
    from ansatz.claims import get

    if outcome.finding is None:
        say(f"{outcome.id}: {outcome.verdict}")
        return
    claim = get(outcome.id)
    say(f"{claim.id}: {claim.title}")
    say()
    for line in wrapped(claim.statement).splitlines():
        say(line)
    say()
    for line in plain_formula(claim.formula).splitlines():
        say(f"    {line}")
    for check in outcome.finding.checks:
        say()
        _print_check(check)
    _print_numbers(outcome.finding.table)
    say()
    values = claim.parameters("full" if scale == "full" else "quick") | parameters
    settings = ", ".join(f"{name}={value}" for name, value in values.items())
    with_ = f"; {settings}" if settings else ""
    say(f"{outcome.verdict}, {outcome.seconds:.2f} s ({scale}, seed {seed}{with_})")


def _print_check(check: "Check") -> None:
    say(check.what)
    verdict = "holds" if check.holds else "DOES NOT HOLD"
    say(f"  measured   {_exact(check.measured)}")
    say(f"  predicted  {_SIGNS[check.relation]} {_exact(check.predicted)}: {verdict}")
    say(f"  tolerance  {number(float(check.tolerance))} ({check.because})")
    if check.wrong is not None:
        wrong = check.wrong
        row = f"{wrong.erratum}, " if wrong.erratum else ""
        gives = f"predicts {_exact(wrong.predicted)}" if wrong.predicted is not None else ""
        if wrong.measured is not None:
            gives = f"{gives} and " * bool(gives) + f"gives {_exact(wrong.measured)}"
        refuted = "refuted" if check.rejects_wrong else "PASSES, and must not"
        say(f"  wrong      {row}{wrong.name}: {gives}: {refuted}")


def _print_numbers(table: Any) -> None:
    if table is None or not table.rows:
        return
    say()
    rows = [[_cell(value) for value in row] for row in table.rows[:_ROWS]]
    print_table(table.head, rows, numbers=range(len(table.head)), limit=None)
    if len(table.rows) > _ROWS:
        say(f"... {len(table.rows) - _ROWS} more rows")


def print_summary(outcomes: "Sequence[Outcome]", seconds: float, *, slowest: bool = False) -> None:
    """Prints a line per claim, and how many hold."""
    shown = sorted(outcomes, key=lambda each: -each.seconds) if slowest else outcomes
    head = ["claim", "measured", "", "predicted", "tolerance", "verdict", "seconds"]
    print_table(head, [_line(outcome) for outcome in shown], numbers=[1, 3, 4, 6], limit=None)
    say()
    for outcome in outcomes:
        for check in outcome.finding.checks if outcome.finding is not None else ():
            if not (check.holds and check.rejects_wrong):
                say(outcome.id)
                _print_check(check)
                say()
        if outcome.finding is not None and not any(c.wrong for c in outcome.finding.checks):
            say(f"{outcome.id}: no wrong prediction is named")
    held = sum(outcome.holds for outcome in outcomes)
    say(f"{held} of {len(outcomes)} claims hold, {seconds:.1f} s.")


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
            say()
    refuted = {each.row.id for each in corrections if each.refuted}
    rows = {each.row.id for each in corrections}
    say(f"{len(refuted)} of {len(rows)} common slips are refuted.")
    if missing:
        say("Without a claim yet:")
    for row in missing:
        say(f"  {row.id:4} {row.item}")


def _print_correction(each: "Correction") -> None:
    assert each.erratum is not None
    say(f"{each.row.id}  {each.row.item} (claim {each.claim})")
    width = max(len(each.erratum.printed), len(each.erratum.correct))
    check = each.check
    if check is None:
        say(f"  printed    {each.erratum.printed}")
        say(f"  correct    {each.erratum.correct}")
        say("  verdict    BROKEN")
        return
    say(f"  printed    {each.erratum.printed:{width}}  gives {_exact(each.printed_gives)}")
    say(f"  correct    {each.erratum.correct:{width}}  gives {_exact(each.correct_gives)}")
    within = f"within {number(float(check.tolerance))} ({check.because})"
    if each.is_measured_otherwise:
        aim = f"predicted  {_SIGNS[check.relation]} {_exact(check.predicted)}"
    else:
        aim = f"measured   {_exact(check.measured)}"
    say(f"  {aim}: {check.what}, {within}")
    say(f"  verdict    {'refuted' if each.refuted else 'NOT REFUTED'}")


def print_coverage(sections: "Sequence[Section]", as_json: bool) -> None:
    """Prints which statements of the catalog have a claim, and which have none."""
    if as_json:
        print_document([section.to_dict() for section in sections])
        return
    rows: list[tuple[object, ...]] = []
    for section in sections:
        if section.rows:
            done = len(section.rows) - len(section.missing)
            rows.append((section.id, section.title, len(section.rows), done, len(section.missing)))
    total = [sum(int(str(row[column])) for row in rows) for column in (2, 3, 4)]
    rows.append(("", "all", *total))
    print_table(["section", "", "state", "claimed", "missing"], rows, numbers=[2, 3, 4])
    for section in sections:
        if section.missing:
            say()
            say(f"{section.id}: {section.title}: without a claim")
            for row in section.missing:
                say(f"  {row.id:4} {row.kind:10}  {row.item}")


def _exact(value: float | None) -> str:
    return "-" if value is None else f"{float(value) + 0.0:.6g}"  # no -0


def _cell(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.4g}" if isinstance(value, float) else str(value)
