"""ansatz bound: a bound on the error of a random classifier."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.output import print_document, print_line


def bound(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="The table of the fit, if it is no longer where it was.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Probability that the bound fails.")] = 0.05,
    prior_share: Annotated[
        float | None,
        typer.Option(help="Share of the training rows that the prior is learned on: 0.5."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Bound the error of a random classifier, by PAC-Bayes and on the test rows.

    A prior is learned on half of the training rows, and a bound that holds for all posteriors at
    once is minimised on the others: no test row is needed. The bound is about the share of wrong
    classes of weights drawn anew for every row. Beside it stands what the test rows say. A model
    that is not of inference pac_bayes is fitted again as one.

    Example:
        ansatz bound digits-model
        ansatz bound digits-model --level 0.01
    """
    from ansatz.cli.opening import open_model
    from ansatz.inference.certificate import bound as compute

    open_model(model)  # raises what is wrong with it before its rows are read
    found = compute(model, data, level=level, prior_share=prior_share)
    if as_json:
        print_document({**found._asdict(), "bound": found.bound, "test_bound": found.test_bound})
        return
    print_line(found.sentence())
    if found.test_bound is not None:
        print_line(
            f"test rows: {found.test_errors:,} of {found.test_rows:,} wrong; at most "
            f"{found.test_bound:.2%} with the same probability (Clopper and Pearson)."
        )
