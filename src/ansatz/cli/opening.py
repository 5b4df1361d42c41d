"""Opens a model, and data that fit it, for the commands that use a saved model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.output import print_note
from ansatz.errors import DataError, ModelError

if TYPE_CHECKING:
    from ansatz.fitting.read_again import ReadAgain


def open_model(folder: Path, *, allow_unconverged: bool = True) -> Any:
    """The estimator in a folder that ``ansatz fit`` wrote; nothing in it is ever executed.

    Without ``allow_unconverged`` it refuses to answer where its draws have failed to converge.
    """
    try:
        there = folder.is_dir()
    except (OSError, ValueError):  # too long, a NUL
        there = False
    if not there:
        what = "not a folder" if folder.is_file() else "no such folder"
        raise ModelError(f"{folder}: {what}. A model is what ansatz fit wrote.")
    import ansatz

    return ansatz.load(folder, allow_unconverged=allow_unconverged)


@contextmanager
def naming(data: str) -> Iterator[None]:
    """Puts the name of the data before an error in them that does not have it."""
    try:
        yield
    except DataError as error:
        if Path(data).name in str(error):
            raise
        raise DataError(f"{data}: {error}") from None


def open_data(
    estimator: Any, data: str, given: Mapping[str, Any], *, outcomes: bool = False
) -> "ReadAgain":
    """Reads data for a model as those of its fit were; options of other data are refused."""
    from ansatz.fitting.options.commands import ReadingOutcomes
    from ansatz.fitting.request import refuse_foreign, validated

    model = estimator.model_
    refuse_foreign(given, model.structure.name, fitted=True)
    options = validated(given, ReadingOutcomes, "ansatz")
    found: ReadAgain = model.structure.read_again(
        model,
        data,
        outcomes=outcomes,
        options=options,
        notify=lambda note: print_note(f"note: {note}"),
    )
    return found
