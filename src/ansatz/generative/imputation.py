"""Multiple imputation: several draws of what is missing, given what is known."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError, UsageError
from ansatz.seeds import generator

if TYPE_CHECKING:
    from ansatz.generative.posterior import GenerativePosterior


class Imputations(NamedTuple):
    """Tables whose missing values were drawn, and which values these are.

    Example:
        >>> import numpy as np
        >>> from ansatz.generative.imputation import Imputations
        >>> made = Imputations([np.zeros((1, 1)), np.ones((1, 1))], np.ones((1, 1), bool))
        >>> made.mean().tolist()
        [[0.5]]
    """

    tables: list[Any]
    missing: NDArray[np.bool_]

    def mean(self) -> Any:
        """The mean of the draws of numbers; of other columns the most frequent draw.

        A value that was not missing stays as it is.
        """
        first = self.tables[0]
        if not hasattr(first, "columns"):
            draws = np.stack([np.asarray(each, float) for each in self.tables])
            return np.where((draws == draws[0]).all(0), draws[0], draws.mean(0))
        import pandas as pd

        found = first.copy()
        for name in first.columns:
            own = pd.concat([each[name] for each in self.tables], axis=1)
            known = own.eq(own.iloc[:, 0], axis=0).all(axis=1)  # or drawn alike
            if known.all():
                continue
            if pd.api.types.is_numeric_dtype(first[name].dtype):
                value = first[name].astype(float)
                found[name] = value.where(known, own.astype(float).mean(axis=1))
            else:
                found[name] = own.mode(axis=1)[0]
        return found

    def interval(self, name: str, level: float = 0.9) -> NDArray[np.float64]:
        """Bounds of the draws of a column of numbers, ``(N, 2)``."""
        draws = np.stack([np.asarray(each[name], float) for each in self.tables])
        tail = (1 - level) / 2
        found: NDArray[np.float64] = np.quantile(draws, [tail, 1 - tail], axis=0).T
        return found


def impute_codes(
    posterior: "GenerativePosterior",
    codes: Tensor,
    given: Tensor | None,
    *,
    draws: int,
    seed: int,
) -> list[Tensor]:
    """Codes without gaps, once for each draw."""
    if draws < 1:
        raise UsageError(f"draws must be 1 or more, got {draws}.")
    gone = codes.isnan()
    hidden = gone.reshape(len(codes), -1).all(1)
    if len(codes) and hidden.all():
        raise DataError("every value of every row is missing: to draw new rows, sample.")
    if not gone.any():
        return [codes] * draws
    return [
        posterior.model.impute(codes, given, generator(seed, "impute", k)) for k in range(draws)
    ]
