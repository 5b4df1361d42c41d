"""The estimates of a linear model with their covariance: what intervals and tests are made of."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from scipy import stats
from torch import Tensor

from ansatz.errors import ModelError, UsageError

if TYPE_CHECKING:
    from ansatz.linear.linear_fit import LinearFit


class Estimates(NamedTuple):
    """Coefficients, their covariance and the reference distribution of their statistics.

    Args:
        names: D + 1 names, ``"(Intercept)"`` first.
        outputs: names of the P raw numbers.
        coefficients: ``(D + 1, P)``; nan where a column was dropped.
        covariance: ``(T, T)`` of the estimated ones, in the order of ``entries``.
        entries: ``(T, 2)`` rows and columns of ``coefficients``.
        df: degrees of freedom of t statistics; None for the normal distribution.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import Estimates, fit_linear
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> fit = fit_linear(Poisson(), x, y)
        >>> Estimates.of(fit).names
        ('(Intercept)', 'x1')
    """

    names: tuple[str, ...]
    outputs: tuple[str, ...]
    coefficients: Tensor
    covariance: Tensor
    entries: Tensor
    df: float | None

    @classmethod
    def of(cls, fit: "LinearFit") -> "Estimates":
        """The estimates of a fit."""
        df = fit.df_residual if fit.df_statistics is None else fit.df_statistics
        if fit.pooled is not None:  # one number for all: the least is on the safe side
            df = float(fit.pooled.df.nan_to_num(torch.inf).min())
        entries = torch.tensor(fit.entries, dtype=torch.int64).reshape(-1, 2)
        uses_t = fit.uses_t and df > 0
        return cls(
            *(fit.names, fit.outputs, fit.coefficients, fit.covariance, entries),
            df if uses_t else None,
        )

    @property
    def reference(self) -> Any:
        """Student's t, or the normal distribution."""
        return stats.norm() if self.df is None else stats.t(self.df)

    @property
    def values(self) -> Tensor:
        """The estimated coefficients, ``(T,)``."""
        return self.coefficients[self.entries[:, 0], self.entries[:, 1]]

    def gradient(self, x: Tensor, slope: Tensor) -> Tensor:
        """Derivatives by the estimates, ``(N, T)``, of what has derivatives ``slope`` by raw.

        Args:
            x: ``(N, D)`` columns.
            slope: ``(N, P)``.
        """
        full = torch.cat([torch.ones(len(x), 1, dtype=torch.float64), x.double()], 1)
        rows, columns = self.entries.unbind(1)
        return full[:, rows] * slope[:, columns]

    def places(self, names: Sequence[str]) -> list[int]:
        """The estimates that belong to columns by name, in all raw numbers."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            known = ", ".join(self.names[:20])
            raise UsageError(f"no coefficient '{unknown[0]}'. Coefficients: {known}.")
        rows = {self.names.index(name) for name in names}
        return [t for t, row in enumerate(self.entries[:, 0].tolist()) if row in rows]

    def tensors(self) -> dict[str, Tensor]:
        """The numbers, as they are saved."""
        df = torch.tensor(torch.nan if self.df is None else self.df, dtype=torch.float64)
        return {
            "coefficients": self.coefficients.contiguous(),
            "covariance": self.covariance.contiguous(),
            "entries": self.entries.contiguous(),
            "df": df,
        }

    @classmethod
    def load(cls, record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "Estimates":
        """The estimates that were saved."""
        try:
            names, outputs = (tuple(map(str, record[key])) for key in ("names", "outputs"))
            table, covariance, entries, df = (
                tensors[key] for key in ("coefficients", "covariance", "entries", "df")
            )
        except (KeyError, TypeError) as error:
            raise ModelError(f"damaged estimates of the linear model: {error}.") from None
        count = len(entries)
        shapes = [tuple(each.shape) for each in (table, covariance, entries)]
        expected = [(len(names), len(outputs)), (count, count), (count, 2)]
        inside = not count or (
            bool((entries >= 0).all()) and bool((entries < torch.tensor(expected[0])).all())
        )
        if shapes != expected or not inside or entries.dtype != torch.int64:
            raise ModelError(f"damaged estimates of the linear model: shapes {shapes}.")
        value = float(df)
        return cls(names, outputs, table, covariance, entries, value if value == value else None)
