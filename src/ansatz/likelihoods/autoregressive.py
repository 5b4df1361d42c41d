"""The probability of a text, which the network computes token by token."""

import torch
from torch import Tensor

from ansatz.likelihoods.likelihood import Likelihood
from ansatz.spec import TargetSpec


class Autoregressive(Likelihood):
    r"""The log-probability of a sequence, each step given those before it, per step.

    .. math:: \ell = -\frac{1}{T} \sum_{t=1}^T \log p(y_t \mid x, y_{<t})

    The network has read y itself (teacher forcing) and gives
    :math:`(\sum_t \log p(y_t), \sum_t \frac{1}{K} \sum_k \log p_{tk}, T)`. Rows are weighted by T,
    so that means are over steps. Training smooths the labels: of the probability of each step,
    :math:`\epsilon` is shared by all K tokens.

    Args:
        label_smoothing: :math:`\epsilon` in [0, 1), in training only.

    Shapes:
        - raw: ``(..., 3)``.
        - y: ``(...)``, a number for each sequence that is not looked at.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Autoregressive
        >>> Autoregressive().loss(torch.tensor([[-6.0, -20.0, 3.0]]), torch.zeros(1))
        tensor([2.])

    References:
        Szegedy et al. (2016), Rethinking the Inception architecture, section 7.
        https://arxiv.org/abs/1512.00567
    """

    name = "autoregressive"
    has_distribution = False  # of a number: its probabilities are those of ``loss``
    least_loss = 0.0

    def __init__(self, *, label_smoothing: float = 0.1) -> None:
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing}.")
        self.label_smoothing = label_smoothing

    def outputs(self, target: TargetSpec) -> int:
        """3: the log-probability, its smoothed partner, the number of steps."""
        return 3

    def check(self, y: Tensor) -> None:
        """Any number will do."""

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The network's own numbers."""
        return torch.zeros(3, dtype=weight.dtype), torch.ones(3, dtype=weight.dtype)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Nats per step."""
        return -raw[..., 0] / raw[..., 2]

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Nats per step of smoothed labels."""
        e = self.label_smoothing
        return -((1 - e) * raw[..., 0] + e * raw[..., 1]) / raw[..., 2]

    def point(self, raw: Tensor) -> Tensor:
        """The log-probability of the sequence."""
        return raw[..., 0]
