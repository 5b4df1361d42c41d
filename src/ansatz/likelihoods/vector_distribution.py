"""What a likelihood of vectors predicts: one joint distribution per row."""

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution


class VectorDistribution(Distribution):
    """Distributions of vectors of K numbers, one per element of ``batch_shape``.

    A distribution defines ``mean``, ``variance`` (of each number), ``log_prob``, ``sample`` and
    ``marginal``, the K univariate distributions of the single numbers. There is no order of
    vectors, hence no cdf and no quantile of the whole: ask the marginals.

    Shapes:
        - y: ``(..., K)``; ``log_prob(y)`` and ``energy_score(y)``: ``(...)``.
        - mean, variance, mode: ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MultivariateNormal
        >>> d = MultivariateNormal(covariance="diagonal").distribution(torch.zeros(5, 4))
        >>> d.batch_shape, d.event_shape, d.marginal.batch_shape
        (torch.Size([5]), torch.Size([2]), torch.Size([5, 2]))
    """

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch; a sample has the event shape behind it."""
        return self.mean.shape[:-1]

    @property
    def event_shape(self) -> torch.Size:
        """(K,), the shape of one outcome."""
        return self.mean.shape[-1:]

    @property
    def marginal(self) -> Distribution:
        """The distribution of each of the K numbers by itself, with batch shape ``(..., K)``."""
        raise TypeError(f"{type(self).__name__} defines no marginals.")

    @property
    def median(self) -> Tensor:
        """The medians of the marginals, ``(..., K)``."""
        return self.marginal.median

    def cdf(self, y: Tensor) -> Tensor:
        """Undefined: vectors have no order."""
        raise TypeError(f"{type(self).__name__} is a distribution of vectors: use marginal.cdf.")

    def icdf(self, q: Tensor) -> Tensor:
        """Undefined: vectors have no order."""
        raise TypeError(f"{type(self).__name__} is a distribution of vectors: use marginal.icdf.")

    def crps(self, y: Tensor) -> Tensor:
        """Undefined for vectors, whose score is the energy score."""
        raise TypeError(
            f"{type(self).__name__} is a distribution of vectors: use energy_score, or "
            "marginal.crps for each number."
        )

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """The equal-tailed interval of each number, ``(..., K)`` each.

        Every one holds ``level`` of the probability by itself; all K together hold less.
        """
        return self.marginal.interval(level)

    def energy_score(
        self, y: Tensor, draws: int = 1000, generator: torch.Generator | None = None
    ) -> Tensor:
        r"""The energy score of each outcome, by Monte Carlo: smaller is better.

        .. math:: E\|Y - y\| - \tfrac12 E\|Y - Y'\|

        with the Euclidean norm; for K = 1 it is the CRPS. Neighbouring draws stand for the
        independent pair Y, Y', which needs no double sum and has no bias. Without a generator a
        fixed one is used, so that the same distribution and outcome have the same score.

        Args:
            y: ``(..., K)``.
            draws: the error falls with its square root.
            generator: whose numbers are used.

        References:
            Gneiting and Raftery (2007), Strictly proper scoring rules, section 4.3.
            https://doi.org/10.1198/016214506000001437
        """
        if draws < 2:
            raise ValueError(f"energy_score needs at least 2 draws, got {draws}.")
        if generator is None:
            generator = torch.Generator(self.mean.device).manual_seed(0)
        block = max(1, 2**20 // max(1, self.mean.numel()))
        near, apart = torch.zeros_like(y[..., 0]), torch.zeros_like(y[..., 0])
        with torch.no_grad():
            first = last = None
            for done in range(0, draws, block):
                x = self.sample((min(block, draws - done),), generator)
                near = near + (x - y).norm(dim=-1).sum(0)
                chain = x if last is None else torch.cat([last, x])
                apart = apart + chain.diff(dim=0).norm(dim=-1).sum(0)
                first, last = x[:1] if first is None else first, x[-1:]
            if first is not None and last is not None:  # close the ring: every draw is used twice
                apart = apart + (last - first).squeeze(0).norm(dim=-1)
            return near / draws - 0.5 * apart / draws
