"""What predict and evaluate do with images, signals and volumes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.terminal import remark, say
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.data.grids import GridTable


def is_grid_model(estimator: Any) -> bool:
    """Whether a model was fitted to signals, images or volumes.

    Example:
        >>> from types import SimpleNamespace
        >>> from ansatz.cli.grids import is_grid_model
        >>> from ansatz.spec import InputSpec
        >>> preprocessor = SimpleNamespace(spec=InputSpec.of(3))
        >>> is_grid_model(SimpleNamespace(model_=SimpleNamespace(preprocessor=preprocessor)))
        False
    """
    return bool(estimator.model_.preprocessor.spec.structure == "grid")


def open_grids(estimator: Any, data: str, reading: Mapping[str, Any]) -> "GridTable":
    """The examples of a folder or file, brought to the size that the model was fitted to.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import open_grids
        >>> list(inspect.signature(open_grids).parameters)
        ['estimator', 'data', 'reading']
    """
    from ansatz.estimators.posing import read_like

    if reading:
        raise UsageError(f"'{next(iter(reading))}' is an option of tables; this model takes grids.")
    table = read_like(estimator, data)
    for note in table.notes:
        remark(f"note: {note}")
    return table


def predict_grids(estimator: Any, table: "GridTable", **options: Any) -> "pd.DataFrame":
    """Predictions as a table, the examples' names first where they have some.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import predict_grids
        >>> list(inspect.signature(predict_grids).parameters)
        ['estimator', 'table', 'options']
    """
    given = table if getattr(estimator, "uses_", None) is not None else table.grids
    found: pd.DataFrame = estimator.predict_frame(given, **options)
    names = table.grids.names
    if names is not None:
        found.insert(0, "image", list(names))
    return found


def write_masks(estimator: Any, table: "GridTable", out: Path, *, overwrite: bool) -> None:
    """The predicted masks as PNG files of the classes' numbers, whole or not at all.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import write_masks
        >>> list(inspect.signature(write_masks).parameters)[:3]
        ['estimator', 'table', 'out']
    """
    import numpy as np

    from ansatz.cli.mask_folder import encode_mask, file_names, mask_values, write_mask_folder

    if len(table.grids.shape) != 3:
        raise UsageError("masks of volumes and signals are arrays: use predict in Python.")
    names = file_names(table.grids.names or [str(number) for number in range(len(table))])
    value = mask_values(estimator.classes_.tolist())
    files: dict[str, bytes] = {}
    for number, name in enumerate(names):
        (labels,) = estimator.predict(table.grids[np.arange(number, number + 1)])
        files[name] = encode_mask(np.vectorize(value.__getitem__, otypes=[np.uint8])(labels))
    write_mask_folder(out, files, overwrite=overwrite)
    told = ", ".join(str(v) if str(v) == str(name) else f"{v} {name}" for name, v in value.items())
    say(f"{len(files)} masks: {out} (values: {told})")


def judge_grids(estimator: Any, table: "GridTable") -> dict[str, float | None]:
    """Metrics on examples with their outcomes, and a warning of copies of those learned from.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import judge_grids
        >>> list(inspect.signature(judge_grids).parameters)
        ['estimator', 'table']
    """
    import numpy as np

    from ansatz.estimators.copies import warn_of_copies
    from ansatz.estimators.outcomes import locate

    uses = getattr(estimator, "uses_", None)
    if uses is None:
        raise UsageError("this model was made in Python: use its evaluate(X, y).")
    if uses.target != ["mask"]:
        _require_columns(uses, table)
        known = uses.known(table.frame)
        if not known.any():
            raise DataError(f"{table.origin}: no example has a value of '{uses.outcome_name}'.")
        if not known.all():
            remark(f"note: examples without the target, left out: {int((~known).sum())}.")
        table = table.rows(np.flatnonzero(known))
        try:
            estimator._encode(uses.outcomes(table.frame), reset=False)
        except DataError as error:
            raise locate(error, table.origin, table.frame, uses) from None
    metrics: dict[str, float | None] = estimator.evaluate(table)
    mask = estimator.copies(table)
    honest = None
    if mask.any() and not mask.all():
        honest = estimator.evaluate(table.rows(np.flatnonzero(~mask)))
    for warning in warn_of_copies(mask, honest):
        remark(f"warning: {warning}")
    return metrics


def _require_columns(uses: Any, table: "GridTable") -> None:
    absent = [name for name in uses.outcome_columns if name not in table.frame.columns]
    if absent:
        there = ", ".join(map(str, table.frame.columns)) or "none"
        raise DataError(
            f"{table.origin}: no '{absent[0]}' to judge by, which the model predicts. Columns: "
            f"{there}. To predict without it: ansatz predict."
        )
