"""Distillation: training on a teacher's probabilities, with or without the labels."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, softmax

from ansatz.data.batch import Batch
from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.training.objectives import Loss, Supervised, observed, weighted


def tempered_cross_entropy(raw: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    r"""Cross-entropy of two softmax likelihoods, both softened by a temperature.

    .. math:: \ell = -\sum_k p_k \log q_k, \qquad
        p = \text{softmax}(t / T), \quad q = \text{softmax}(r / T), \qquad
        \frac{\partial \ell}{\partial r} = \frac{q - p}{T}

    Mind the minus: some texts print the sum without it, and the gradient with the other sign. It is
    least when r = t + constant. A single logit is that of a Bernoulli distribution.

    Args:
        raw: r, the student's logits.
        teacher: t, the teacher's logits.
        temperature: T.

    Shapes:
        - raw, teacher: ``(..., K)``, or ``(..., 1)`` for two classes.
        - returns: ``(...)``.
    """
    if raw.shape != teacher.shape:
        raise ValueError(
            f"student and teacher must give the same logits, got {tuple(raw.shape)} and "
            f"{tuple(teacher.shape)}."
        )
    if raw.shape[-1] == 1:  # the other class has logit 0
        raw = torch.cat([torch.zeros_like(raw), raw], -1)
        teacher = torch.cat([torch.zeros_like(teacher), teacher], -1)
    p, log_q = softmax(teacher / temperature, -1), log_softmax(raw / temperature, -1)
    return -(p * log_q).sum(-1)


class Distillation(Supervised):
    r"""The loss of the labels mixed with that of a frozen teacher.

    .. math:: (1 - m)\, \ell_{\text{labels}}(r, y) + m\, \ell_T(r, t)

    with :math:`\ell_T` the tempered cross-entropy. Its gradient shrinks like 1/T^2 for a large T,
    so a high temperature wants a mix close to 1. Validation scores the plain loss of the labels.

    Args:
        likelihood: a class likelihood, for the labels.
        teacher: inputs -> logits; it is frozen and stays in evaluation mode.
        temperature: T > 0.
        mix: m in [0, 1].
        shift: of the student, as in :class:`Supervised`.
        scale: of the student.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.likelihoods import create
        >>> from ansatz.training import Distillation
        >>> teacher, student = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
        >>> objective = Distillation(create("categorical"), teacher, temperature=4.0, mix=0.9)
        >>> loss = objective(student, Batch.of(torch.randn(5, 2), torch.tensor([0, 1, 2, 0, 1])))
        >>> loss.count
        tensor(5.)

    References:
        Hinton, Vinyals and Dean (2015), Distilling the knowledge in a neural network, eq. 1-4.
        https://arxiv.org/abs/1503.02531
    """

    def __init__(
        self,
        likelihood: Likelihood,
        teacher: nn.Module,
        *,
        temperature: float = 2.0,
        mix: float = 0.5,
        shift: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> None:
        super().__init__(likelihood, shift, scale)
        if not temperature > 0:
            raise UsageError(f"temperature of Distillation must be positive, got {temperature}.")
        if not 0 <= mix <= 1:
            raise UsageError(f"mix of Distillation must be in [0, 1], got {mix}.")
        self.teacher = teacher.requires_grad_(False).eval()
        self.temperature, self.mix = temperature, mix

    def train(self, mode: bool = True) -> "Distillation":
        """The teacher stays in evaluation mode."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes what the optimiser minimises."""
        raw = self.raw(network, batch.inputs, batch.offset)
        with torch.no_grad():
            teacher: Any = self.teacher(*batch.inputs)
        labels = self.likelihood.training_loss(raw, observed(batch.target, batch.weight))
        soft = tempered_cross_entropy(raw, teacher.reshape(raw.shape), self.temperature)
        return weighted(torch.lerp(labels, soft, self.mix), batch.weight)


class TeacherObjective(Supervised):
    r"""The loss of the outcomes mixed with that of a teacher's predictions of the same rows.

    Of classes, with the teacher's logits t, it is that of :class:`Distillation`. Of numbers, with
    M quantiles of the teacher's distribution,

    .. math:: (1 - m)\, \ell(r, y) + \frac{m}{M} \sum_{j=1}^M \ell(r, q_j),
        \qquad q_j = F_t^{-1}\Big(\frac{j - 1/2}{M}\Big)

    which is the expected loss of an outcome that the teacher draws: least where the student's
    distribution is nearest to the teacher's in the Kullback-Leibler divergence.

    Args:
        own: the objective of the outcomes, whose likelihood, shift and scale are shared.
        index: ``(N,)`` numbers of the rows, sorted.
        soft: ``(N, K)`` logits of classes, or ``(N, M, ...)`` quantiles of numbers.
        temperature: T, of classes.
        weight: m in [0, 1].

    References:
        Hinton, Vinyals and Dean (2015), Distilling the knowledge in a neural network.
        https://arxiv.org/abs/1503.02531
    """

    index: Tensor
    soft: Tensor

    def __init__(
        self, own: Supervised, index: Tensor, soft: Tensor, *, temperature: float, weight: float
    ) -> None:
        super().__init__(own.likelihood, own.shift, own.scale, axis=own.axis)
        # Not saved with checkpoints or models: they are computed anew from the teacher.
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("soft", soft, persistent=False)
        self.temperature, self.weight = temperature, weight

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes what the optimiser minimises."""
        raw = self.raw(network, batch.inputs, batch.offset)
        target = observed(batch.target, batch.weight)
        labels = self.likelihood.training_loss(raw, target)
        place = torch.searchsorted(self.index, batch.index.to(self.index.device))
        soft = self.soft[place].to(raw.dtype)
        if not target.is_floating_point():
            taught = tempered_cross_entropy(raw, soft.reshape(raw.shape), self.temperature)
        else:
            each = [self.likelihood.training_loss(raw, q) for q in soft.unbind(1)]
            taught = torch.stack(each).mean(0)
        return weighted(torch.lerp(labels, taught, self.weight), batch.weight)

    def plain(self) -> Supervised:
        """Returns the objective without the teacher, as a fitted model keeps it."""
        return Supervised(self.likelihood, self.shift, self.scale, axis=self.axis)
