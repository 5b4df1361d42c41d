"""The estimation error of a linear model's raw numbers at each row.

Legend: N rows, Q columns with the intercept, P raw numbers that depend on x, K targets, T estimated
coefficients.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.likelihoods.marginal import is_marginal
from ansatz.likelihoods.registry import varies
from ansatz.linear.linear_fit import LinearFit

MOST_COEFFICIENTS = 2_000  # whose covariance is kept: 32 MB


class EstimationError(nn.Module):
    r"""The lower triangular root of the covariance of a row's estimated raw numbers.

    .. math:: V(x) = A(x)\, \mathrm{Cov}(\hat\beta)\, A(x)^\top = L L^\top, \qquad
              \hat r = A(x) \hat\beta

    Args:
        root: ``(K, Q, P, T)``, the root of the covariance of the coefficients by target, column
            and raw number.
        df: n - p, the degrees of freedom of a dispersion.
        inflation: n / (n - p).
        several: whether there are K targets, or one without an axis.

    Shapes:
        - x: ``(N, Q - 1)``; returns ``(N, P (P + 1) / 2)``, the rows of L one after another, or
          ``(N, K, P (P + 1) / 2)`` for several targets.
    """

    root: Tensor
    df: Tensor
    inflation: Tensor
    several: Tensor

    def __init__(self, root: Tensor, df: Tensor, inflation: Tensor, several: Tensor) -> None:
        super().__init__()
        for name, value in (("root", root), ("df", df), ("inflation", inflation)):
            self.register_buffer(name, value)
        self.register_buffer("several", several)
        self.has_axis = bool(several)

    @classmethod
    def of(cls, fits: Sequence[LinearFit], several: bool) -> "EstimationError | None":
        """Of one fit for each target; None where the covariance of the estimates is not known.

        That is so for losses, likelihoods that couple rows, rows that are not more than the
        coefficients, and likelihoods without a maximum (separated classes).
        """
        first, size = fits[0], len(fits[0].entries)
        if not is_marginal(first.likelihood, len(first.outputs)) or size > MOST_COEFFICIENTS:
            return None
        if not all(_is_known(fit) for fit in fits):
            return None
        root = torch.stack([_root(fit, max(len(f.entries) for f in fits)) for fit in fits])
        # A censored row says little of a dispersion: the others give its degrees of freedom.
        known = min(fit.measures.get("observed", fit.observations) for fit in fits)
        df = max(known - max(fit.observations - fit.df_residual for fit in fits), 1.0)
        inflation = known / df
        numbers = (torch.tensor(float(n), dtype=torch.float64) for n in (df, inflation, several))
        return cls(root, *numbers)

    @property
    def varying(self) -> int:
        """P."""
        return self.root.shape[2]

    def forward(self, x: Tensor) -> Tensor:
        kind, root = x.dtype, self.root.to(x.dtype)
        ones = torch.ones_like(x[:, :1]) if x.shape[1] else x.new_ones(x.shape[0], 1)
        design = torch.cat([ones, x], 1)  # (N, Q)
        found = [self._triangle(design, target) for target in root.unbind(0)]
        return (torch.stack(found, 1) if self.has_axis else found[0]).to(kind)

    def _triangle(self, design: Tensor, root: Tensor) -> Tensor:
        """Gram-Schmidt on the P vectors of each row, whose products are the covariances."""
        vectors = [design @ part for part in root.unbind(1)]  # (N, T) each
        entries, basis = [], list[Tensor]()
        for vector in vectors:
            for unit in basis:
                along = (vector * unit).sum(1)
                entries.append(along)
                vector = vector - along.unsqueeze(1) * unit
            length = (vector * vector).sum(1).sqrt()
            entries.append(length)
            basis.append(vector / length.clamp(min=1e-150).unsqueeze(1))
        return torch.stack(entries, 1)


def _is_known(fit: LinearFit) -> bool:
    known = fit.converged and fit.df_residual >= 1 and bool(torch.isfinite(fit.covariance).all())
    return known and math.isfinite(fit.observations)


def _root(fit: LinearFit, width: int) -> Tensor:
    """The root of the covariance, ``(Q, P, T)``; zero where nothing was estimated.

    A dispersion of two raw numbers that is the same for all rows is left out.
    """
    scale = fit.covariance.diagonal().clamp(min=1e-300).sqrt()
    values, vectors = torch.linalg.eigh(fit.covariance / scale.unsqueeze(1) / scale)
    root = scale.unsqueeze(1) * vectors * values.clamp(min=0).sqrt()  # (T, T)
    found = torch.zeros(*fit.coefficients.shape, width, dtype=torch.float64)
    for k, (row, column) in enumerate(fit.entries):
        found[row, column, : root.shape[1]] = root[k]
    once = len(fit.outputs) == 2 and all(row == 0 for row, column in fit.entries if column == 1)
    return found[:, :1] if once and varies(fit.likelihood) else found
