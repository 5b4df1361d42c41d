"""What predict and evaluate do with images, signals and volumes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.document import print_document
from ansatz.cli.terminal import remark, say
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from ansatz.cli.mask_folder import Value
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


def open_grids(
    estimator: Any, data: str, options: Mapping[str, Any], *, outcomes: bool = False
) -> "GridTable":
    """The examples of a folder or file, brought to the size that the model was fitted to.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import open_grids
        >>> list(inspect.signature(open_grids).parameters)
        ['estimator', 'data', 'options', 'outcomes']
    """
    from ansatz.fitting.posing import read_like

    table = read_like(estimator, data, outcomes=outcomes, **options)
    for note in table.notes:
        remark(f"note: {note}")
    _say_if_at_once(table, data, options)
    return table


def _say_if_at_once(table: "GridTable", data: str, options: Mapping[str, Any]) -> None:
    limit = options.get("memory_limit")
    if limit is not None and table.grids.is_in_memory and table.grids.nbytes > limit:
        remark(f"note: {data} was read at once; --stream and --memory-limit are for files.")


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


def write_masks(
    estimator: Any,
    data: str,
    options: Mapping[str, Any],
    out: Path,
    *,
    overwrite: bool,
    as_json: bool = False,
) -> None:
    """The predicted masks as images of the classes' numbers or colours, whole or not at all.

    A folder gets a PNG file for each image and a TIFF file for each stack of pages and each
    volume; a TIFF file gets all masks as its pages.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import write_masks
        >>> list(inspect.signature(write_masks).parameters)[:4]
        ['estimator', 'data', 'options', 'out']
    """
    from ansatz.cli.mask_folder import encode_mask, mask_values, pixels_of, write_mask_files

    if len(estimator.model_.preprocessor.shape) < 3:
        raise UsageError("masks of signals are arrays: use predict in Python.")
    values = mask_values(estimator.classes_.tolist())
    stacks: dict[str, list[bytes]] = {}
    count = 0
    for count, (name, stack, labels) in enumerate(_labelled(estimator, data, options), 1):
        known = str(count - 1) if name is None else name
        pages = pixels_of(labels if labels.ndim == 3 else labels[None], values)
        stacks.setdefault(stack or known, []).extend(map(encode_mask, pages))
    write_mask_files(out, stacks, overwrite=overwrite)
    if as_json:
        print_document({"masks": count, "out": out, "values": values})
    else:
        say(f"{count} masks: {out} ({_meaning(values)})")


def _meaning(values: "Mapping[Any, Value]") -> str:
    """What the pixels of mask files say."""
    if not all(isinstance(value, int) for value in values.values()):
        return f"colours: {', '.join(values)}"
    told = (str(v) if str(v) == str(name) else f"{v} {name}" for name, v in values.items())
    return f"values: {', '.join(told)}"


def predict_shares(estimator: Any, data: str, options: Mapping[str, Any]) -> "pd.DataFrame":
    """The share of each class among the cells of every example.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import predict_shares
        >>> list(inspect.signature(predict_shares).parameters)
        ['estimator', 'data', 'options']
    """
    import pandas as pd

    rows = []
    for name, _, labels in _labelled(estimator, data, options):
        row = {} if name is None else {"image": name}
        shares = {f"share_{each}": (labels == each).mean() for each in estimator.classes_}
        rows.append({**row, **shares})
    return pd.DataFrame(rows)


def _labelled(
    estimator: Any, data: str, options: Mapping[str, Any]
) -> "Iterator[tuple[str | None, str | None, NDArray[Any]]]":
    """Each example's name, its stack's, and its cells' classes, at the size that its image has."""
    import numpy as np

    from ansatz.cli.mask_folder import restored
    from ansatz.fitting.posing import read_each_like

    notes: list[str] = []
    for table, size, stack in read_each_like(estimator, data, notes=notes, **options):
        for number in range(len(table)):
            (labels,) = estimator.predict(table.grids[np.arange(number, number + 1)])
            name = None if table.grids.names is None else table.grids.names[number]
            yield name, stack, labels if size is None else restored(labels, size)
        _say_if_at_once(table, data, options if size is None and len(table) > 1 else {})
    for note in notes:
        remark(f"note: {note}")


def judge_grids(estimator: Any, table: "GridTable") -> dict[str, float | None]:
    """Metrics on examples with their outcomes, and a warning of copies of those learned from.

    Example:
        >>> import inspect
        >>> from ansatz.cli.grids import judge_grids
        >>> list(inspect.signature(judge_grids).parameters)
        ['estimator', 'table']
    """
    import numpy as np

    from ansatz.fitting.duplicates import warn_of_copies
    from ansatz.fitting.outcome_checks import locate

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
