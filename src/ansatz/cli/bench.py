"""ansatz bench: the claims about speed, memory and quality, measured here and now."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.bench.suites import SUITES, choose, run
from ansatz.cli.output import number, print_document, print_line, print_note, print_table
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from ansatz.bench.finding import Bound, Finding

RESULTS = Path("benchmarks") / "results"


def bench(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            help=", ".join(name for name, suite in SUITES.items() if suite.is_quick)
            + " (these by default), "
            + ", ".join(name for name, suite in SUITES.items() if not suite.is_quick)
            + ", all."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each contestant is measured.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep the results, and each finished split, in --out.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder of --record.")] = RESULTS,
    splits: Annotated[
        str | None, typer.Option(help="Splits or seeds of the quality suites: 0-4 or 0,2,5.")
    ] = None,
    inference: Annotated[
        str, typer.Option(help="Of the quality suites of tables: ensemble or point.")
    ] = "ensemble",
    only: Annotated[
        str | None,
        typer.Option(help="Cases or data sets of a suite: mnist,cifar10."),
    ] = None,
    examples: Annotated[
        int | None, typer.Option(min=1, help="Images of speed-images, for a quick look.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of speed-images; torch's number by default.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do finished splits of an earlier --record again.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of data, weights and order.")] = 0,
) -> None:
    """Measure speed, memory and quality beside those of other libraries.

    Contestants take turns on the same threads; the median over rounds of the ratio decides. A peer
    that is not installed is reported as missing. Exit status 1 when a bar is not met.

    Example:
        ansatz bench speed-tiny start
        ansatz bench quality-uci --splits 0-4 --record
        ansatz bench coverage --only normal-100-5,gamma-200-30 --splits 0-9 --record
        ansatz bench quality-images --only mnist --splits 0 --record
        ansatz bench all --json
    """
    chosen_splits = parse_splits(splits)
    from ansatz.inference.registry import names

    if inference not in names():
        known = " or ".join(sorted(names()))
        raise UsageError(f"--inference must be {known}, got '{inference}'.")
    from ansatz.bench.finding import BenchOptions

    options = BenchOptions(
        rounds=rounds,
        seed=seed,
        splits=chosen_splits,
        inference=inference,
        only=None if only is None else tuple(name.strip() for name in only.split(",")),
        examples=examples,
        threads=threads,
        folder=out if record else None,
        fresh=fresh,
        notify=print_note,
    )
    findings: list[Finding] = []
    for name, found in run(choose(suites or []), options):
        findings += found
        if record:
            _record(out, name, found, options)
    if as_json:
        print_document([finding.to_dict() for finding in findings])
    else:
        _print(findings)
    if not all(finding.holds for finding in findings):
        raise typer.Exit(1)


def parse_splits(text: str | None) -> tuple[int, ...] | None:
    """Numbers from a list of numbers and ranges."""
    if text is None:
        return None
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.strip().isdecimal() or not (last or first).strip().isdecimal():
            raise UsageError(f"--splits takes numbers and ranges like 0-4 or 0,2,5, got '{text}'.")
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def _record(out: Path, name: str, found: "list[Finding]", options: Any) -> None:
    from ansatz.bench.record import among_earlier, circumstances, write_record

    results = [finding.to_dict() for finding in found]
    if options.only is not None:
        results = among_earlier(out / f"bench-{name}.json", results, circumstances())
    command = f"ansatz bench {name} --record"
    path = write_record(
        f"bench-{name}", command=command, seed=options.seed, results=results, folder=out
    )
    print_note(f"{path}")


def _print(findings: "list[Finding]") -> None:
    rows = [row for finding in findings for row in _rows(finding)]
    header = ["case", "ours", "peer", "theirs", "ratio", "quartiles", "limit", "verdict"]
    print_table(header, rows, numbers=[1, 3, 4])
    print_line()
    for unit in dict.fromkeys(finding.unit for finding in findings):
        cases = ", ".join(f.name for f in findings if f.unit == unit)
        print_line(f"{cases}: {unit}")
    print_line("ratio: their number over ours under a limit >=, ours over theirs under <=")
    missing = sorted({peer for finding in findings for peer in finding.missing})
    if missing:
        print_line(f"missing: {', '.join(missing)}. To measure these too: make bench")


def _rows(finding: "Finding") -> list[list[str]]:
    rows = []
    ours = number(finding.ours)
    if "ours" in finding.limit or not finding.peers:
        bar = finding.limit.get("ours")
        rows.append([finding.name, ours, "", "", "", "", *_verdict(finding, "ours", bar)])
    for peer, theirs in finding.peers.items():
        ratio = finding.ratio.get(peer)
        shown = [f"{ratio.median:.2f}", f"{ratio.lower:.2f} to {ratio.upper:.2f}"] if ratio else []
        cells = [finding.name, ours, peer, number(theirs), *(shown or ["", ""])]
        rows.append([*cells, *_verdict(finding, peer, finding.limit.get(peer))])
    rows += [[finding.name, ours, peer, "", "", "", "", "missing"] for peer in finding.missing]
    return rows


def _verdict(finding: "Finding", name: str, bar: "Bound | None") -> list[str]:
    if bar is None:
        return ["", ""]
    return [str(bar), "met" if finding.met[name] else "NOT MET"]
