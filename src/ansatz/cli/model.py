"""What predict, evaluate, certify and inspect open: a model, and data that fit it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.terminal import remark
from ansatz.errors import ModelError

if TYPE_CHECKING:
    from ansatz.fitting.read_again import ReadAgain


def open_model(folder: Path) -> Any:
    """The estimator in a folder that ``ansatz fit`` wrote; nothing in it is ever executed.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.cli.model import open_model
        >>> open_model(Path("no-such-model"))
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: no-such-model: no such folder. A model is what ansatz fit wrote.
    """
    try:
        there = folder.is_dir()
    except (OSError, ValueError):  # too long, a NUL
        there = False
    if not there:
        what = "not a folder" if folder.is_file() else "no such folder"
        raise ModelError(f"{folder}: {what}. A model is what ansatz fit wrote.")
    import ansatz

    return ansatz.load(folder)


def open_data(
    estimator: Any, data: str, given: Mapping[str, Any], *, outcomes: bool = False
) -> "ReadAgain":
    """Reads data for a model as those of its fit were; options of other data are refused.

    Args:
        estimator: the model.
        data: a file, a folder, or a data set's name.
        given: options of :class:`~ansatz.fitting.options.tables.ReadingOutcomes`.
        outcomes: whether they are evaluated.

    Example:
        >>> from ansatz import Regressor
        >>> from ansatz.cli.model import open_data
        >>> model = Regressor(network="linear").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.1])
        >>> open_data(model, "new.csv", {"pages": "images"})
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: 'pages' is an option of images, and these are tables: leave ...
    """
    from ansatz.fitting.options.tables import ReadingOutcomes, refuse_foreign
    from ansatz.fitting.request import validated

    model = estimator.model_
    refuse_foreign(given, model.structure.name, fitted=True)
    options = validated(given, ReadingOutcomes, "ansatz")
    found: ReadAgain = model.structure.read_again(
        model, data, outcomes=outcomes, options=options, tell=lambda note: remark(f"note: {note}")
    )
    return found
