"""Outcomes and predictions of single rows in a few letters, for captions of pictures."""

import numpy as np

from ansatz.figures.number import number
from ansatz.figures.printable import printable
from ansatz.figures.section import Cell
from ansatz.report.evidence import Evidence
from ansatz.report.survival_rows import survival_rows
from ansatz.report.worst_rows import shown_outcome, shown_prediction


def outcome_words(evidence: Evidence, row: int, limit: int = 18) -> str:
    """The outcome of a test row; a time that is censored as ``> 3.5``.

    Args:
        evidence: of a model on its test rows.
        row: its number among them, from 0.
        limit: letters; the middle of more is left out.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.outcome_words import outcome_words
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> y = np.stack([x[:, 0], x[:, 0] / 3], 1)
        >>> outcome_words(gather(Regressor("normal", network="linear").fit(x, y), x, y), 2)
        '2, 0.667'
    """
    times = survival_rows(evidence) if evidence.is_survival else None
    if times is not None:
        sign = "" if times.cause[row] > 0 else "> "
        return printable(sign + number(float(times.time[row]), 3), limit)
    value = evidence.value[row].numpy()
    is_plain = evidence.classes is None and not hasattr(evidence.model, "items_")
    if is_plain and np.isfinite(value).all():
        words = ", ".join(number(float(part), 3) for part in np.atleast_1d(value).ravel())
        return printable(words, limit)
    return _short(shown_outcome(evidence, row), limit)


def prediction_words(evidence: Evidence, row: int, limit: int = 18) -> str:
    """The prediction of a test row.

    Args:
        evidence: of a model on its test rows.
        row: its number among them, from 0.
        limit: letters; the middle of more is left out.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.outcome_words import prediction_words
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0])
        >>> prediction_words(gather(model, x, x[:, 0]), 2)
        '2'
    """
    return _short(shown_prediction(evidence, row), limit)


def _short(value: Cell, limit: int) -> str:
    return printable(value if isinstance(value, str) else number(value, 3), limit)
