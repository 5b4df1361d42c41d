"""Focal loss: cross-entropy that turns away from what is already known."""

import math
from collections.abc import Sequence
from numbers import Real

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.likelihoods.categorical import class_counts, half_weight
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, require_same_shape
from ansatz.likelihoods.support import check_codes
from ansatz.spec import TargetSpec


class Focal(Likelihood):
    r"""Cross-entropy with less weight on rows that are already well predicted.

    .. math:: \ell = -a_y (1 - q_y)^\gamma \log q_y, \qquad q = \text{softmax}(\eta)

    with :math:`\eta` = raw, K logits, or one for two classes (:math:`q_1 = \sigma(\eta)`), and a
    weight :math:`a_k` per class. :math:`\gamma` = 0 is weighted cross-entropy. It is a loss and not
    a likelihood: its q is less sure than P(y | x). Where it is smallest, :math:`a_k P(k | x)
    |f'(q_k)|` is the same for all classes, :math:`f(q) = -(1 - q)^\gamma \log q`; ``unweighted``
    and ``probs`` undo that,

    .. math:: P(k | x) \propto \frac{1}{a_k |f'(q_k)|}, \qquad
              |f'(q)| = (1 - q)^{\gamma - 1} \left(\frac{1 - q}{q} - \gamma \log q\right)

    exactly for the best network, and only nearly for a real one: recalibrate out of fold.

    Args:
        gamma: :math:`\gamma` >= 0; 2 in the paper.
        alpha: one weight :math:`a_k` per class, or None for 1. (The paper's binary alpha is
            ``[1 - alpha, alpha]``.)

    Shapes:
        - raw: ``(..., K)``, or ``(..., 1)`` for two classes.
        - y: ``(...)`` class codes.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Focal
        >>> Focal(gamma=2.0).loss(torch.zeros(1, 2), torch.tensor([1]))  # log(2) / 4
        tensor([0.1733])

    References:
        Lin et al. (2017), Focal loss for dense object detection, eq. 5.
        https://arxiv.org/abs/1708.02002
        Charoenphakdee et al. (2021), On focal loss for class-posterior probability estimation.
        https://arxiv.org/abs/2011.09172
    """

    name = "focal"
    has_distribution = False
    link_name = "logit"
    log_weights: Tensor

    def __init__(self, *, gamma: float = 2.0, alpha: Sequence[float] | None = None) -> None:
        super().__init__()
        if not isinstance(gamma, (int, float, Real)) or not 0 <= gamma < math.inf:
            raise ValueError(f"gamma of Focal must be >= 0 and finite, got {gamma!r}.")
        given = torch.ones(1, dtype=torch.float64) if alpha is None else _class_weights(alpha)
        self.gamma, self.classes = gamma, 0
        self.register_buffer("log_weights", given.log())

    def outputs(self, target: TargetSpec) -> int:
        """1 for two classes, else K."""
        if target.classes < 2:
            raise ValueError(
                f"{self.name} needs the number of classes, at least 2, got {target.classes}."
            )
        if len(self.log_weights) not in (1, target.classes):
            raise ValueError(
                f"alpha has {len(self.log_weights)} entries, but y has {target.classes} classes."
            )
        self.classes = target.classes
        return 1 if target.classes == 2 else target.classes

    def check(self, y: Tensor) -> None:
        """Whole numbers from 0, below K where K is known."""
        check_codes(y, self.classes)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The constant that minimises the loss; a class without a row is given half a row."""
        counts = class_counts(y, weight, self.classes).double()
        half = half_weight(expand_weight(weight, y).double()).unsqueeze(-1)
        mass = torch.where(counts > 0, counts, half) * self.log_weights.double().exp()
        log_q = _best_shares(mass / mass.sum(-1, keepdim=True), self.gamma)
        shift = log_q[..., 1:] - log_q[..., :1] if self.classes == 2 else log_q
        shift = shift.to(weight.dtype)
        return shift, torch.ones_like(shift)

    def logits(self, raw: Tensor) -> Tensor:
        """``(..., K)``: raw, or (0, raw) for two classes."""
        return pad(raw, (1, 0)) if raw.shape[-1] == 1 else raw

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """-a_y (1 - q_y)^gamma log q_y."""
        require_same_shape(self.name, raw, y)
        log_q, log_rest = _log_shares(self.logits(raw))
        code = y.long().unsqueeze(-1)
        hit, miss = (v.gather(-1, code).squeeze(-1) for v in (log_q, log_rest))
        log_a = self.log_weights.to(raw.dtype).expand(log_q.shape).gather(-1, code).squeeze(-1)
        return -(log_a + self.gamma * miss).exp() * hit

    def unweighted(self, raw: Tensor) -> Tensor:
        """``(..., K)`` logits of P(y | x): the weights and the exponent undone."""
        log_q, log_rest = _log_shares(self.logits(raw))
        return -self.log_weights.to(raw.dtype) - _log_slope(log_q, log_rest, self.gamma)

    def probs(self, raw: Tensor) -> Tensor:
        """``(..., K)``: estimates of P(y | x)."""
        return torch.softmax(self.unweighted(raw), -1)

    def point(self, raw: Tensor) -> Tensor:
        """The class with the largest raw number: class weights are meant to move the decision."""
        return self.logits(raw).argmax(-1)


def _class_weights(alpha: Sequence[float]) -> Tensor:
    try:
        given = torch.tensor([float(a) for a in alpha], dtype=torch.float64)
    except (TypeError, ValueError):
        given = torch.zeros(1)
    if not len(given) or not bool(((given > 0) & given.isfinite()).all()):
        raise ValueError(
            f"alpha of Focal must hold positive numbers, one per class as in [1, 3], got {alpha!r}."
        )
    return given


def _log_shares(logits: Tensor) -> tuple[Tensor, Tensor]:
    """log q and log(1 - q), ``(..., K)`` each, both with all their digits."""
    log_q = torch.log_softmax(logits, -1)
    # 1 - q_k is the share of the others: from q where that is small, else from their sum.
    small = log_q < -math.log(2)
    direct = torch.log1p(-torch.where(small, log_q, -1.0).exp())
    top = logits.argmax(-1, keepdim=True)  # only the largest logit can have q > 1/2
    others = logits.scatter(-1, top, -math.inf)
    rest = torch.logsumexp(others, -1, keepdim=True) - torch.logsumexp(logits, -1, keepdim=True)
    return log_q, torch.where(small, direct, rest)


def _log_slope(log_q: Tensor, log_rest: Tensor, gamma: float) -> Tensor:
    """log |f'(q)| for f(q) = -(1 - q)^gamma log q."""
    value = log_rest - log_q
    if gamma:
        surprise = (-log_q).clamp(min=torch.finfo(log_q.dtype).tiny).log()
        value = torch.logaddexp(value, math.log(gamma) + surprise)
    return (gamma - 1) * log_rest + value


def _best_shares(mass: Tensor, gamma: float) -> Tensor:
    """log q that minimises the sum of mass_k f(q_k) over shares q, ``(..., K)``.

    f is convex, so mass_k |f'(q_k)| = lambda has one root q_k for each lambda, and the q_k add up
    to 1 at one lambda: bisection for both, in the log odds of q and in log lambda.
    """
    log_mass = mass.log()
    if gamma == 0:
        return torch.log_softmax(log_mass, -1)

    def odds(log_lambda: Tensor) -> Tensor:
        low, high = torch.full_like(mass, -60.0), torch.full_like(mass, 60.0)
        for _ in range(64):
            middle = (low + high) / 2
            log_q, log_rest = (torch.nn.functional.logsigmoid(s * middle) for s in (1, -1))
            above = log_mass + _log_slope(log_q, log_rest, gamma) > log_lambda  # q too small
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        return (low + high) / 2

    low = torch.full_like(mass[..., :1], -200.0)
    high = torch.full_like(low, 200.0)
    for _ in range(64):
        middle = (low + high) / 2
        much = torch.sigmoid(odds(middle)).sum(-1, keepdim=True) > 1  # lambda too small
        low, high = torch.where(much, middle, low), torch.where(much, high, middle)
    return torch.log_softmax(torch.nn.functional.logsigmoid(odds((low + high) / 2)), -1)
