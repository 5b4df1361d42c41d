"""Diffusion of what is missing: a network that also sees the known part, and its objective."""

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.generative.diffusion.denoising import Denoising, Predict
from ansatz.generative.diffusion.process import Process, Weight
from ansatz.training.objectives import Loss, weighted

_UNCONDITIONAL = 0.5  # share of rows that are trained with nothing known


class KnowingNetwork(nn.Module):
    """A denoiser of x whose inputs are x, the known part and where it is known.

    Args:
        network: with three times as many input features (channels) as x has.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.known: Tensor | None = None  # x where known, nan elsewhere; None for nothing known

    def forward(
        self, x: Tensor, t: Tensor, given: Tensor | None = None, known: Tensor | None = None
    ) -> Tensor:
        known = self.known if known is None else known
        if known is None:
            sees = [torch.zeros_like(x), torch.zeros_like(x)]
        else:
            known = known.repeat(len(x) // len(known), *[1] * (x.ndim - 1))  # guidance has two
            sees = [known.nan_to_num(0.0), (~known.isnan()).to(x)]
        inputs = torch.cat([x, *sees], 1)
        found: Tensor = self.network(inputs, t) if given is None else self.network(inputs, t, given)
        return found


class DiffusionObjective(Denoising):
    """Denoising of codes: scaled, with an indicator beside the condition, with random masks.

    Args:
        process: the noising.
        predict: what the network predicts.
        weight: of the errors.
        scale: the numbers are ``scale * codes + shift``.
        shift: see there.
        owner: ``(D,)`` the column of each number, for masks of whole columns; None for no masks.
        drop: share of conditions hidden in training.
        seed: of evaluation.
    """

    def __init__(
        self,
        process: Process,
        predict: Predict,
        weight: Weight,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
        owner: Tensor | None = None,
        masked: bool = False,
        drop: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(process, predict, weight, drop=drop, seed=seed)
        self.scale, self.shift, self.owner, self.masked = scale, shift, owner, masked

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss at one random time per row."""
        codes, *given = batch.inputs
        x = codes.float() * self.scale + self.shift
        missing = x.isnan()
        given = [with_indicator(each) for each in given]
        if self.training:
            t, noise = self._times(torch.rand(()), len(x), x), torch.randn_like(x)
            draws = torch.rand(3, len(x), x[0].numel())
            if given and self.drop:
                hidden = torch.rand(len(x), 1) < self.drop
                given = [torch.where(hidden, torch.zeros_like(given[0]), given[0])]
        else:
            t, noise = self._fixed(batch.index, x)
            draws = torch.full((3, len(x), x[0].numel()), 1.0)
        if not self.masked:
            return weighted(self.errors(network, x, noise, t, *given), batch.weight)
        # A missing number stands for a draw of noise: no error is counted there.
        filled = torch.where(missing, noise.roll(1, 0), x)
        known = self._known(x, missing, draws)
        counted = known.isnan() & ~missing
        some = given or [None]
        errors = self.errors(network, filled, noise, t, some[0], known, counted=counted)
        return weighted(errors, batch.weight * counted.flatten(1).any(1))

    def _known(self, x: Tensor, missing: Tensor, draws: Tensor) -> Tensor:
        """The part that the network is shown: nothing for half of the rows."""
        unit = draws[0]
        if self.owner is not None:  # all numbers of a column alike
            unit = unit[:, self.owner]
        share = draws[1][:, :1]
        shown = (unit < share) & (draws[2][:, :1] > _UNCONDITIONAL) & (draws[2][:, :1] < 1)
        shown = shown.reshape(x.shape) & ~missing
        return torch.where(shown, x, torch.nan)


def with_indicator(given: Tensor) -> Tensor:
    """Conditions with a 1 beside them, so that none of them is all zeros."""
    return torch.cat([given.float(), torch.ones(len(given), 1)], 1)
