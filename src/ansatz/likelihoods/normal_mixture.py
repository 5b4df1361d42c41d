"""The normal mixture: outcomes with several peaks, or any shape at all."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    unit_and_floor,
    weighted_sd,
)
from ansatz.likelihoods.normal_mixture_distribution import NormalMixtureDistribution
from ansatz.likelihoods.normal_mixture_fit import MixtureFit, fit_mixture
from ansatz.likelihoods.support import refuse_outside
from ansatz.spec import TargetSpec


class NormalMixture(Likelihood):
    r"""Real outcomes whose density given x may be skewed or have several peaks.

    .. math:: -\log p(y) = -\log \sum_{k=1}^M \pi_k\, N(y; \mu_k, \sigma_k^2)

    by logsumexp, with raw holding, for M components, the :math:`\mu_k` (identity link), then r_k
    with :math:`\sigma_k` = unit * softplus(r_k) + floor, then the log odds of components 2..M
    against the first, whose logit is 0: :math:`\pi` = softmax. The unit is sd(y); the floor is
    max(1e-3 sd(y), resolution of y / sqrt(12)), without which rounded outcomes would reward spikes.

    The constant model is found by EM and Newton's method from means at the quantiles of y (equal
    means are a saddle that no gradient leaves). It is a local maximum: a mixture's likelihood has
    many, and one component is the only case with a single one.

    ``predict`` gives the mean, which may lie where the density is low: ``distribution(raw)`` has
    ``is_multimodal`` and ``mode``.

    Args:
        components: M; with 1 it is the normal distribution.

    Shapes:
        - raw: ``(..., 3 M - 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalMixture
        >>> NormalMixture(components=2).outputs(None)
        5

    References:
        Bishop (1994), Mixture density networks. https://publications.aston.ac.uk/id/eprint/373/
        Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM
        algorithm. https://doi.org/10.1111/j.2517-6161.1977.tb01600.x
    """

    name = "normal_mixture"

    def __init__(self, *, components: int = 3) -> None:
        super().__init__()
        if isinstance(components, bool) or not isinstance(components, int) or components < 1:
            raise ValueError(f"components must be a whole number >= 1, got {components!r}.")
        self.components = components
        self.dispersion = PositiveHead("predicted")

    def outputs(self, target: TargetSpec | None = None) -> int:
        """M means, M spreads and M - 1 log odds."""
        return 3 * self.components - 1

    def check(self, y: Tensor) -> None:
        """Any finite number."""
        refuse_outside(~y.isfinite(), y, "Outcomes of a normal mixture must be finite numbers")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the spreads."""
        self.dispersion.observe(*unit_and_floor(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """A local maximum of the constant model's likelihood, from means at the quantiles of y."""
        columns = y.reshape(len(y), -1)
        weights = expand_weight(weight, y).reshape(columns.shape)
        unit, floor = (b.to(y).reshape(-1) for b in (self.dispersion.unit, self.dispersion.floor))
        fits = [
            fit_mixture(column[w > 0], w[w > 0], self.components, u, f)
            for column, w, u, f in zip(columns.T, weights.T, unit, floor, strict=True)
        ]
        fit = MixtureFit(*(torch.stack(t).to(y) for t in zip(*fits, strict=True)))
        odds = (fit.logits - fit.logits[:, :1])[:, 1:]
        shift = torch.cat([fit.means, fit.raw_sds, odds], -1)
        sd = weighted_sd(y, weight).reshape(-1, 1)
        size = torch.where(sd > 0, sd, 1.0).expand_as(fit.means)
        scale = torch.cat([size, torch.ones_like(shift[:, self.components :])], -1)
        shape = (*y.shape[1:], self.outputs())
        return shift.reshape(shape), scale.reshape(shape)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y)

    def distribution(self, raw: Tensor) -> NormalMixtureDistribution:
        """The mixture."""
        means, r, odds = raw.split([self.components, self.components, self.components - 1], -1)
        # Units are one per target: the components go first while the head is applied.
        sds = self.dispersion(r.movedim(-1, 0).unsqueeze(-1)).movedim(0, -1)
        return NormalMixtureDistribution(pad(odds, (1, 0)), means, sds)
