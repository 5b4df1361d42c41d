"""The Dirichlet distribution: compositions, parts of a whole."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.errors import DataError
from ansatz.likelihoods.dirichlet_distribution import DirichletDistribution
from ansatz.likelihoods.dirichlet_fit import fit_dirichlet, fit_dirichlet_mean
from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.likelihood import (
    Likelihood,
    refuse_where,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.log_link import soft_clamp
from ansatz.spec import TargetSpec


class Dirichlet(Likelihood):
    r"""Compositions: K positive parts that add up to 1.

    .. math:: p(y) = \Gamma(\phi) \prod_k \frac{y_k^{\mu_k\phi - 1}}{\Gamma(\mu_k\phi)}

    with the means :math:`\mu` = softmax of K logits (soft-clamped at +-50) and the dispersion
    :math:`1/\phi` = unit * softplus of the last raw number + floor: a small dispersion is a sharp
    likelihood, the variance of part k being :math:`\mu_k(1-\mu_k)/(1+\phi)`. K = 2 is the beta
    distribution. The unit is the maximum-likelihood :math:`1/\phi` of the constant model; the floor
    is the dispersion at which the sd of some part falls to the normal distribution's floor, at most
    half the unit.

    A constant added to all K logits changes nothing; a linear model needs coefficients that are
    identified: with ``reference=True`` raw holds K - 1 logits, the log ratios of the means of parts
    1..K-1 to that of part 0, whose logit is 0.

    Args:
        dispersion: 1/phi ``"predicted"`` from x, ``"constant"``, or known (0.1 means phi = 10).
        reference: the first part's logit is 0 and not part of raw.
        normalize: divide each composition by its sum, which must be within 2 % of 1: for parts
            that were rounded. Otherwise sums must be 1 within 1e-6.

    Shapes:
        - raw: ``(..., K + 1)``; one less with a reference, one less unless the dispersion is
          predicted.
        - y: ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Dirichlet
        >>> y = torch.tensor([[0.2, 0.3, 0.5]])
        >>> Dirichlet(dispersion=1 / 3).loss(torch.zeros(1, 3), y)  # uniform: -log 2
        tensor([-0.6931])

    References:
        Maier (2014), DirichletReg: Dirichlet regression for compositional data in R.
        https://doi.org/10.57938/ad3142d3-2fcd-4c37-aec6-8e0bd7d077e1
    """

    name = "dirichlet"
    link_name = "logit"
    event_ndim = 1

    def __init__(
        self,
        *,
        dispersion: Dispersion = "predicted",
        reference: bool = False,
        normalize: bool = False,
    ) -> None:
        super().__init__()
        self.dispersion = PositiveHead(dispersion)
        self.reference, self.normalize = reference, normalize

    def outputs(self, target: TargetSpec) -> int:
        """K logits, one less with a reference, and the dispersion if predicted."""
        if len(target.event) != 1 or target.event[0] < 2:
            raise ValueError(
                f"{self.name} needs compositions of K >= 2 parts, TargetSpec(event=(K,)), "
                f"got {target}."
            )
        return target.event[0] - int(self.reference) + self.dispersion.outputs

    def check(self, y: Tensor) -> None:
        """Positive parts that add up to 1."""
        _require_parts(self.name, y)
        refuse_where(
            ~(y.isfinite() & (y > 0)),
            y,
            "Parts of a composition must be > 0",
            "A zero that is a part too small to be seen can be replaced by, say, half the smallest "
            "part that can; parts that are absent need another likelihood.",
        )
        total = y.sum(-1)
        slack = 0.02 if self.normalize else max(1e-6, 4 * torch.finfo(y.dtype).eps * y.shape[-1])
        bad = (total - 1).abs() > slack
        if bool(bad.any()):
            row = int(bad.reshape(-1).nonzero()[0])
            sums, more = total.reshape(-1), int(bad.sum()) - 1
            advice = (
                "Divide each row by its sum if the parts are a whole."
                if self.normalize
                else "Divide percentages by 100; for parts that were rounded normalize=True (--set "
                "normalize=true) divides by sums within 2 % of 1."
            )
            raise DataError(
                f"Compositions must add up to 1, got a sum of {sums[row].item():.6g} at y[{row}]"
                f"{f' (and {more} more)' if more else ''}. {advice}"
            )

    def _whole(self, y: Tensor) -> Tensor:
        return y / y.sum(-1, keepdim=True) if self.normalize else y

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion."""
        _, floor = unit_and_floor(y, weight)  # of y as it was rounded
        y = self._whole(y)
        mean = weighted_mean(y, weight)
        least = (floor**2 / (mean * (1 - mean))).max()
        _, unit = fit_dirichlet(y, weight)
        unit = torch.where(unit > 0, unit, torch.maximum(2 * least, torch.full_like(unit, 1e-6)))
        self.dispersion.observe(unit, torch.minimum(least, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood means and dispersion; the scale is the sd of y in logits."""
        y = self._whole(y)
        logits, dispersion = fit_dirichlet(y, weight)
        if self.dispersion.kind == "known":
            logits = fit_dirichlet_mean(y, weight, self.dispersion.known)
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        scale = torch.where(sd > 0, (sd / (mean * (1 - mean))).clamp(max=1), 1.0)
        if self.reference:
            logits, scale = (logits - logits[:1])[1:], scale[1:]
        r = self.dispersion.start(dispersion)
        if not self.dispersion.outputs:
            return logits, scale
        return torch.cat([logits, r.reshape(1)]), torch.cat([scale, torch.ones_like(scale[:1])])

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        distribution = self.distribution(raw)
        require_same_shape(self.name, raw, y, event=tuple(distribution.event_shape))
        return -distribution.log_prob(self._whole(y))

    def given(self, raw: Tensor, y: Tensor) -> tuple[DirichletDistribution, Tensor]:
        """The distribution of each composition, and the composition, normalized where asked for."""
        return self.distribution(raw), self._whole(y)

    def distribution(self, raw: Tensor) -> DirichletDistribution:
        """Dirichlet with means softmax(logits)."""
        logits = soft_clamp(raw[..., : raw.shape[-1] - self.dispersion.outputs])
        logits = pad(logits, (1, 0)) if self.reference else logits
        return DirichletDistribution(logits, self.dispersion(raw))


def _require_parts(name: str, y: Tensor) -> None:
    if y.ndim < 2 or y.shape[-1] < 2:
        raise ValueError(
            f"{name} needs compositions, y of shape (B, K) with K >= 2, got {tuple(y.shape)}."
        )
