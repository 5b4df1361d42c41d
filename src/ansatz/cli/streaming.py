"""Tables larger than memory in predict and evaluate: one block after the other."""

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ansatz.cli.model import Opened, prepare, reading_of
from ansatz.cli.terminal import remark
from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = re.compile(r"(?<= )\d+(?= (?:rows|cells) )")


def frames_of(
    estimator: Any, data: str, reading: Mapping[str, Any], why: str
) -> "Iterator[pd.DataFrame]":
    """The rows of a file as the model expects them, block by block; what is odd is said once.

    Example:
        >>> import inspect
        >>> from ansatz.cli.streaming import frames_of
        >>> list(inspect.signature(frames_of).parameters)
        ['estimator', 'data', 'reading', 'why']
    """
    from ansatz.data.streams import read_blocks

    if not hasattr(estimator, "feature_names_in_"):
        raise UsageError("a model of columns without names reads tables at once: --no-stream")
    notes: list[str] = []
    options = {**reading_of(estimator), **reading}
    for number, frame in enumerate(read_blocks(data, options, notes=notes)):
        yield prepare(estimator, Opened(frame, data), quiet=number > 0)
    remark(f"note: {why}")
    for note in notes:
        remark(f"note: {note}")


def predict_blocks(
    estimator: Any,
    frames: "Iterator[pd.DataFrame]",
    *,
    interval: float | None,
    options: Mapping[str, Any],
    counts: list[int],
) -> "Iterator[pd.DataFrame]":
    """Predictions of one block of rows after the other, made while they are written.

    Args:
        estimator: the model.
        frames: rows, whose index becomes the first column.
        interval: the level of the bounds.
        options: of ``predict_frame``.
        counts: takes the number of rows of each block.

    Example:
        >>> import inspect
        >>> from ansatz.cli.streaming import predict_blocks
        >>> list(inspect.signature(predict_blocks).parameters)[:2]
        ['estimator', 'frames']
    """
    said: set[str] = set()
    for frame in frames:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = estimator.predict_frame(frame, interval=interval, **options)
        say_once([str(warning.message) for warning in caught], said)
        counts.append(len(found))
        yield found


def say_once(sentences: list[str], said: set[str]) -> None:
    """Prints sentences that were not yet said of another block, whatever the counts in them.

    Example:
        >>> from ansatz.cli.streaming import say_once
        >>> said = {"column 'a': some rows are missing."}
        >>> say_once(["column 'a': 3 rows are missing."], said)
    """
    for sentence in sentences:
        key = _NUMBER.sub("some", sentence)
        if key not in said and len(said) < 20:
            said.add(key)
            remark(f"note: {key}")
