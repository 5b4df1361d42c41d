"""Energies and forces of molecules: two normal distributions with one derivative between them."""

import math

import torch
from torch import Tensor, nn

from ansatz.errors import DataError
from ansatz.likelihoods.distribution import VectorDistribution
from ansatz.likelihoods.likelihood import Likelihood, weighted_mean
from ansatz.likelihoods.normal import NormalDistribution
from ansatz.spec import TargetSpec

LEAST = 1e-6  # of a scale: errors of exact data do not divide by zero
LEAD = 11  # numbers of raw before the forces: energy, number of atoms, virial
RATE = 5.0  # how much faster the logarithms of both scales are learned than weights


class EnergyForcesDistribution(VectorDistribution):
    """Independent normal numbers: an energy, then forces; nan in an outcome is not observed.

    Args:
        location: ``(B, 1 + 3 A)``.
        scale: of the same shape.
    """

    symmetric = True

    def __init__(self, location: Tensor, scale: Tensor) -> None:
        self._normal = NormalDistribution(location, scale)

    @property
    def marginal(self) -> NormalDistribution:
        """The normal distribution of each number."""
        return self._normal

    @property
    def mean(self) -> Tensor:
        """Energy and forces."""
        return self.marginal.mean

    @property
    def mode(self) -> Tensor:
        """The mean."""
        return self.marginal.mean

    @property
    def variance(self) -> Tensor:
        """Of each number."""
        return self.marginal.variance

    def log_prob(self, y: Tensor) -> Tensor:
        """The log density of what was observed, ``(B,)``."""
        seen = y.isfinite()
        terms = self.marginal.log_prob(torch.where(seen, y, self.mean))
        return torch.where(seen, terms, 0).sum(-1)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws, ``(*shape, B, 1 + 3 A)``."""
        return self.marginal.sample(shape, generator)

    def rsample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """The draws of ``sample``, differentiable in locations and scales."""
        return self.marginal.rsample(shape, generator)


class EnergyForces(Likelihood):
    r"""The energy and the forces of n atoms, both normal, with two learned scales.

    .. math:: y_E \sim N(E,\; n \sigma_E^2), \qquad y_F \sim N(F,\; \sigma_F^2)

    for each of the 3 n numbers of the forces. Which of both the network fits more closely follows
    from their scales, with no weights to choose: a force counts :math:`1 / \sigma_F^2`.
    The logarithms of both are learned five times as fast as weights.

    Shapes:
        - raw: ``(B, 11 + 3 A)``: E, n, nine numbers of the virial, F, 0 behind the last atom.
        - y: ``(B, 1 + 3 A)``, nan where something is unknown or no atom is. A may be larger
          than that of raw where there are only nan.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import EnergyForces
        >>> raw = torch.zeros(1, 17)
        >>> raw[0, 1] = 2  # atoms
        >>> y = torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, -1.0]])
        >>> round(EnergyForces().loss(raw, y).item(), 4)  # (1 / 2 + log 2) / 2 + 1 + 7/2 log 2 pi
        8.0291
    """

    name = "energy_forces"
    event_ndim = 1
    numbers: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Parameter(torch.zeros(()))
        self.force = nn.Parameter(torch.zeros(()))
        self.register_buffer("numbers", torch.tensor(1.0))

    def outputs(self, target: TargetSpec) -> int:
        """1: the energy, of which forces are derivatives."""
        return 1

    @property
    def energy_scale(self) -> Tensor:
        r""":math:`\sigma_E`, of the energy of one atom."""
        return (RATE * self.energy).exp() + LEAST

    @property
    def force_scale(self) -> Tensor:
        r""":math:`\sigma_F`."""
        return (RATE * self.force).exp() + LEAST

    def set_scales(self, energy: float | Tensor, force: float | Tensor) -> None:
        """Sets both scales; numbers that are not positive leave what was."""
        with torch.no_grad():
            for parameter, value in ((self.energy, energy), (self.force, force)):
                if float(value) > 0:
                    above = max(float(value) - LEAST, LEAST)
                    parameter.fill_(math.log(above) / RATE)

    def check(self, y: Tensor) -> None:
        """Rejects energies and forces that are infinite, and frames of which nothing is known."""
        bad = (y.isinf().any(1) | y.isnan().all(1)).nonzero()
        if len(bad):
            raise DataError(f"energies and forces must be finite numbers, see y[{int(bad[0])}].")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Starts at the scale of the forces; the loss of training is one per number."""
        self.numbers = weighted_mean(y.isfinite().sum(1).to(weight), weight)
        forces, known = y[:, 1:], y[:, 1:].isfinite()
        if known.any():
            size = forces[known].double().square().mean().sqrt()
            self.set_scales(size / 10, size)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """No shift and no scale: the network has constants of elements and a unit of its own."""
        return y.new_zeros(1), y.new_ones(1)

    def distribution(self, raw: Tensor) -> EnergyForcesDistribution:
        """Energy and forces of each frame, ``(B, 1 + 3 A)``."""
        location = torch.cat([raw[..., :1], raw[..., LEAD:]], -1)
        energy = self.energy_scale.to(raw) * raw[..., 1:2].clamp(min=1).sqrt()
        force = self.force_scale.to(raw).expand(raw[..., LEAD:].shape)
        return EnergyForcesDistribution(location, torch.cat([energy, force], -1))

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        return -self.distribution(raw).log_prob(beside(y, raw))

    def given(self, raw: Tensor, y: Tensor) -> tuple[EnergyForcesDistribution, Tensor]:
        """The distribution, and outcomes of the same number of atoms."""
        return self.distribution(raw), beside(y, raw)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The mean over the numbers of a frame of usual size."""
        return self.loss(raw, y) / self.numbers

    def point(self, raw: Tensor) -> Tensor:
        """Energy and forces."""
        return torch.cat([raw[..., :1], raw[..., LEAD:]], -1)


def beside(y: Tensor, raw: Tensor) -> Tensor:
    """Outcomes with the number of atoms of raw: others are nan."""
    width = raw.shape[-1] - LEAD + 1
    if y.shape[-1] < width:
        return nn.functional.pad(y, (0, width - y.shape[-1]), value=math.nan)
    return y[..., :width]
