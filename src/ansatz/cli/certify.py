"""ansatz certify: by how much a saved model breaks symmetries."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.names import complete
from ansatz.cli.output import number, print_document, print_line, print_table
from ansatz.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from ansatz.fitting.contracts.rows import Rows
    from ansatz.fitting.model import Model
    from ansatz.symmetry import Certificate, Group

MOST = 256  # examples that are moved


def certify(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[str, typer.Argument(help="Examples to move: a folder, a file, a data set.")],
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="A group (ansatz list groups). May be repeated. Default: those of such examples.",
            metavar="NAME",
            autocompletion=complete("groups"),
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Random elements of each group.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Of the elements.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how far a model's answers change when its examples are shifted or rotated.

    For each group of motions: the largest change of any raw output over random elements, alone
    and relative to the scale of the outputs among the examples (1: as much as another example
    would change it). Masks should move with their images; other answers should not move at all.

    Example:
        ansatz certify digits-model digits/
        ansatz certify cells-model slides/ --group rotation90 --group flip
    """
    from ansatz.cli.opening import naming, open_data, open_model

    estimator = open_model(model)
    fitted = estimator.model_
    structure = fitted.structure
    structure.groups(fitted.encoder.spec)  # where there are none, nothing is read
    with naming(data):
        rows = open_data(estimator, data, {}).rows(estimator, MOST)
    if not len(rows):
        raise DataError(f"{data}: no examples.")
    spec = rows.spec or fitted.encoder.spec
    named = [structure.group(spec, name) for name in group or ()]
    groups = named or structure.groups(spec)
    found = [_certified(fitted, rows, each, samples, seed) for each in groups]
    if as_json:
        print_document([_record(each) for each in found])
        return
    kind = "move with their examples" if found[0].kind == "equivariant" else "do not change"
    print_line(f"{len(rows)} examples; answers that {kind} would have violation 0")
    cells = [
        [each.group, number(each.largest), number(each.relative), str(each.samples), _word(each)]
        for each in found
    ]
    print_table(["group", "largest", "relative", "elements", ""], cells, numbers=range(1, 4))


def _certified(
    model: "Model", rows: "Rows", group: "Group", samples: int, seed: int
) -> "Certificate":
    from ansatz.seeds import generator
    from ansatz.symmetry import certify

    moving = model.structure.moving(model.encoder.inputs(rows))
    dense = model.axis != "row"

    def answer(*moved: Any) -> "Tensor":
        raw = model.posterior.answer(moving.inputs(*moved))
        return raw.movedim(-1, 1) if dense else raw

    return certify(
        answer,
        moving.parts,
        group,
        samples=samples,
        generator=generator(seed, "certificate", group.name),
        kind="equivariant" if dense or moving.each else "invariant",
    )


def _word(certificate: "Certificate") -> str:
    return "" if certificate.exact else "acts approximately"


def _record(certificate: "Certificate") -> dict[str, Any]:
    record = certificate._asdict()
    return {**record, "worst_element": str(record["worst_element"])}
