"""ansatz certify: by how much a saved model breaks symmetries."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.completion import complete
from ansatz.cli.document import print_document
from ansatz.cli.terminal import number, print_table, say
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
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
    """Measure how far the answers of a model change when its examples are moved.

    For each group of motions: the largest change of any raw output over random elements, alone
    and relative to the spread of the outputs among the examples (1: as much as another example
    would change it). Masks should move with their images; other answers should not move at all.

    Example:
        ansatz certify digits-model digits/
        ansatz certify cells-model slides/ --group rotation90 --group flip
    """
    from ansatz.cli.grids import is_grid_model, open_grids
    from ansatz.cli.model import open_model

    estimator = open_model(model)
    if not is_grid_model(estimator):
        raise UsageError(
            "the columns of a table have no symmetry to certify; in Python ansatz.certify takes "
            "any network and any group."
        )
    grids = open_grids(estimator, data, {}).grids[slice(0, MOST)]
    if not len(grids):
        raise DataError(f"{data}: no examples.")
    groups = _groups(group, grids.shape[1:])
    found = [_certified(estimator, grids, each, samples, seed) for each in groups]
    if as_json:
        print_document([_record(each) for each in found])
        return
    kind = "move with their examples" if found[0].kind == "equivariant" else "do not change"
    say(f"{len(grids)} examples; answers that {kind} would have violation 0")
    rows = [
        [each.group, number(each.largest), number(each.relative), str(each.samples), _word(each)]
        for each in found
    ]
    print_table(["group", "largest", "relative", "elements", ""], rows, numbers=range(1, 4))


def _groups(names: list[str] | None, size: tuple[int, ...]) -> "list[Group]":
    """Those that were named, and without names those that suit such examples."""
    from ansatz.symmetry import create, suitable_groups
    from ansatz.symmetry.suitable import OF_GRIDS, OF_IMAGES

    suitable = suitable_groups(size)
    if not names:
        return suitable
    known = {each.name: each for each in suitable}
    acting = OF_IMAGES if len(size) == 2 else OF_GRIDS
    for name in set(names) - set(acting):
        create(name)  # says so if there is none
        raise UsageError(f"{name} does not act on such grids. Take one of: {', '.join(acting)}.")
    return [known[name] if name in known else create(name) for name in names]


def _certified(
    estimator: Any, grids: Any, group: "Group", samples: int, seed: int
) -> "Certificate":
    from ansatz.seeds import generator
    from ansatz.symmetry import certify

    model = estimator.model_
    reader = getattr(model, "members", [model])[0]  # an ensemble's members read alike
    reader.preprocessor.check(grids, any_size=estimator.labels_cells)
    (x,) = reader.prepare(grids)
    dense = estimator.labels_cells

    def answer(inputs: Any) -> Any:
        raw = model.raw_of((inputs,))
        return raw.movedim(-1, 1) if dense else raw

    return certify(
        answer,
        x.contiguous(),
        group,
        samples=samples,
        generator=generator(seed, "certificate", group.name),
        kind="equivariant" if dense else "invariant",
    )


def _word(certificate: "Certificate") -> str:
    return "" if certificate.exact else "acts approximately"


def _record(certificate: "Certificate") -> dict[str, Any]:
    record = certificate._asdict()
    return {**record, "worst_element": str(record["worst_element"])}
