"""The multivariate normal distribution of rows of which some numbers are missing."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor


class NormalLaw:
    r"""N(mean, covariance) of rows in which nan marks what is not known.

    .. math:: x_m \mid x_o \sim N(\mu_m + \Sigma_{mo} \Sigma_{oo}^{-1} (x_o - \mu_o),\;
              \Sigma_{mm} - \Sigma_{mo} \Sigma_{oo}^{-1} \Sigma_{om})

    Args:
        mean: ``(D,)``.
        covariance: ``(D, D)``, positive definite.

    Example:
        >>> import torch
        >>> from ansatz.generative import NormalLaw
        >>> law = NormalLaw(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
        >>> law.expected(torch.tensor([[1.0, torch.nan]])).tolist()
        [[1.0, 0.5]]
    """

    def __init__(self, mean: Tensor, covariance: Tensor) -> None:
        self.mean, self.covariance = mean, covariance

    def log_density(self, x: Tensor) -> Tensor:
        """The log density of what is known of each row, ``(N,)``."""
        found: Tensor = x.new_zeros(len(x))
        for rows, known in patterns(x):
            if not known.any():
                continue
            root = torch.linalg.cholesky(self.covariance[known][:, known])
            rest = (x[rows][:, known] - self.mean[known]).T
            white = torch.linalg.solve_triangular(root, rest, upper=False)
            size = int(known.sum())
            found[rows] = (
                -0.5 * white.square().sum(0)
                - root.diagonal().log().sum()
                - 0.5 * size * math.log(2 * math.pi)
            )
        return found

    def expected(self, x: Tensor) -> Tensor:
        """Rows with the conditional mean where nan was."""
        return self._filled(x, None)

    def draw(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Rows with a draw of the conditional distribution where nan was."""
        return self._filled(x, rng)

    def sample(self, count: int, rng: torch.Generator) -> Tensor:
        """Draws rows, ``(count, D)``."""
        root = torch.linalg.cholesky(self.covariance)
        noise = torch.randn(count, len(self.mean), generator=rng, dtype=root.dtype)
        drawn: Tensor = self.mean + noise @ root.T
        return drawn

    def _filled(self, x: Tensor, rng: torch.Generator | None) -> Tensor:
        found = x.clone()
        noise = None
        if rng is not None:
            noise = torch.randn(x.shape, generator=rng, dtype=x.dtype)
        for rows, known in patterns(x):
            gone = ~known
            if not gone.any():
                continue
            own = self.covariance[gone][:, gone]
            mean = self.mean[gone].expand(len(rows), -1)
            if known.any():
                across = self.covariance[gone][:, known]
                gain = torch.linalg.solve(self.covariance[known][:, known], across.T).T
                mean = mean + (x[rows][:, known] - self.mean[known]) @ gain.T
                own = own - gain @ across.T
            if noise is not None:
                own = (own + own.T) / 2 + 1e-10 * torch.eye(len(own), dtype=own.dtype)
                mean = mean + noise[rows][:, gone] @ torch.linalg.cholesky(own).T
            place = gone.nonzero().squeeze(1)
            found[rows.unsqueeze(1), place] = mean
        return found


def log_probability(law: NormalLaw, low: Tensor, high: Tensor, rng: torch.Generator) -> Tensor:
    r"""The logarithm of an unbiased estimate of the density of points times that of a box.

    Where ``low`` equals ``high`` a number is known; the others lie between them. The known ones
    have a normal density; given them, the box has the probability

    .. math:: \prod_k \Big[\Phi\big((b_k - \mu_k) / l_{kk}\big)
              - \Phi\big((a_k - \mu_k) / l_{kk}\big)\Big], \qquad
              \mu_k = \sum_{i<k} l_{ki} e_i

    along draws of :math:`e_i` from normal distributions truncated to the box (the method of
    Geweke, Hajivassiliou and Keane).

    References:
        Geweke (1991), Efficient simulation from the multivariate normal subject to constraints.
    """
    is_point = low == high
    free = torch.isinf(low) & torch.isinf(high)
    found = law.log_density(torch.where(is_point, low, math.nan))
    state = torch.where(is_point, 1, torch.where(free, 0, 2))
    masks, which = torch.unique(state, dim=0, return_inverse=True)
    for number, mask in enumerate(masks):
        rows, points, boxes = (which == number).nonzero().squeeze(1), mask == 1, mask == 2
        if not boxes.any():
            continue
        mean = law.mean[boxes].expand(len(rows), -1)
        own = law.covariance[boxes][:, boxes]
        if points.any():
            across = law.covariance[boxes][:, points]
            gain = torch.linalg.solve(law.covariance[points][:, points], across.T).T
            mean = mean + (low[rows][:, points] - law.mean[points]) @ gain.T
            own = own - gain @ across.T
        own = (own + own.T) / 2 + 1e-10 * torch.eye(len(own), dtype=own.dtype)
        ends = low[rows][:, boxes] - mean, high[rows][:, boxes] - mean
        found[rows] += _along(torch.linalg.cholesky(own), *ends, rng)
    return found


def _along(root: Tensor, low: Tensor, high: Tensor, rng: torch.Generator) -> Tensor:
    """The log probability of each box along one draw, ``(N,)``."""
    uniform = torch.rand(low.shape, generator=rng, dtype=low.dtype)
    noise = torch.zeros_like(low)
    total = low.new_zeros(len(low))
    for k in range(low.shape[1]):
        shift = noise[:, :k] @ root[k, :k]
        a, b = ((end[:, k] - shift) / root[k, k] for end in (low, high))
        flip = a > 0  # the lower tail is the precise one
        a, b = torch.where(flip, -b, a), torch.where(flip, -a, b)
        below, above = torch.special.ndtr(a), torch.special.ndtr(b)
        total += (above - below).clamp(min=1e-300).log()
        place = (below + uniform[:, k] * (above - below)).clamp(1e-300, 1 - 1e-16)
        drawn = torch.special.ndtri(place)
        noise[:, k] = torch.where(flip, -drawn, drawn)
    return total


def patterns(x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields rows that have the same numbers missing, with the mask of what is known."""
    known = ~x.isnan()
    if known.all():
        if len(x):
            yield torch.arange(len(x)), torch.ones(x.shape[1], dtype=torch.bool)
        return
    masks, which = torch.unique(known, dim=0, return_inverse=True)
    for number, mask in enumerate(masks):
        yield (which == number).nonzero().squeeze(1), mask


def covariance_of(z: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance by the pairs of numbers that are known, made positive definite."""
    known = ~z.isnan()
    mass = weight.unsqueeze(1) * known
    mean = torch.where(known, z, 0).mul(mass).sum(0) / mass.sum(0).clamp(min=1e-12)
    centred = torch.where(known, z - mean, 0)
    both = mass.T @ known.to(z.dtype)
    found = (centred * weight.unsqueeze(1)).T @ centred / both.clamp(min=1e-12)
    found = found + 1e-9 * torch.eye(len(found), dtype=z.dtype)
    if not known.all():
        values, vectors = torch.linalg.eigh(found)
        scale = found.diagonal().clamp(min=1e-9).mean()
        found = (vectors * values.clamp(min=1e-6 * float(scale))) @ vectors.T
    return mean, found
