"""Averages of weights over the steps, for any module and any loop."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError


class WeightAverage:
    r"""The running mean of a network's weights, kept beside it.

    .. math::
        \text{swa: } a_n = \frac{1}{n} \sum_{k=1}^n \theta_k, \qquad
        \text{ema: } a_n = d\, a_{n-1} + (1 - d)\, \theta_n, \quad a_1 = \theta_1

    Late weights of SGD wander about a minimum; their mean lies nearer to its centre. The trainer's
    ``average="swa" | "ema"`` does this within a run; this is the tool for a loop of one's own.
    Running statistics (floating-point buffers) are averaged too; after averaging far-apart weights
    recompute them with ``torch.optim.swa_utils.update_bn``.

    Args:
        kind: ``"swa"`` or ``"ema"``.
        decay: :math:`d` of ema.

    Example:
        >>> import torch
        >>> from ansatz.optim import WeightAverage
        >>> network, average = torch.nn.Linear(1, 1), WeightAverage("swa")
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = network.weight.data.fill_(value)
        ...     average.update(network)
        >>> average.copy_to(network)
        >>> network.weight.item()
        3.0

    References:
        Izmailov et al. (2018), Averaging weights leads to wider optima and better generalization.
        https://arxiv.org/abs/1803.05407
    """

    def __init__(self, kind: Literal["swa", "ema"] = "swa", decay: float = 0.999) -> None:
        if kind not in ("swa", "ema"):
            raise UsageError(f"average must be 'swa' or 'ema', got {kind!r}.")
        if not 0 <= decay < 1:
            raise UsageError(f"decay of an average must be in [0, 1), got {decay}.")
        self.kind, self.decay, self.count = kind, decay, 0
        self._mean: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Takes the present weights into the mean."""
        now = _floating(network)
        if not self.count:
            self._mean = {name: tensor.clone() for name, tensor in now.items()}
        else:
            share = 1 / (self.count + 1) if self.kind == "swa" else 1 - self.decay
            means = [self._mean[name] for name in now]
            torch._foreach_lerp_(means, list(now.values()), share)
        self.count += 1

    @torch.no_grad()
    def copy_to(self, network: nn.Module) -> None:
        """Gives the network the mean; before the first update it is left as it is."""
        for name, tensor in _floating(network).items() if self.count else ():
            tensor.copy_(self._mean[name])

    @torch.no_grad()
    def swap(self, network: nn.Module) -> None:
        """Exchanges the network's weights and the mean; a second call exchanges them back."""
        for name, tensor in _floating(network).items() if self.count else ():
            kept = tensor.clone()
            tensor.copy_(self._mean[name])
            self._mean[name].copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """The mean and how many weights are in it."""
        return {"count": self.count, "mean": {n: t.clone() for n, t in self._mean.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.count = int(state["count"])
        self._mean = {name: tensor.clone() for name, tensor in state["mean"].items()}


def _floating(network: nn.Module) -> dict[str, Tensor]:
    return {n: t.detach() for n, t in network.state_dict().items() if t.is_floating_point()}
