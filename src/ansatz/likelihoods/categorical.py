"""The categorical distribution: one of K classes without an order."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, require_same_shape
from ansatz.likelihoods.support import check_codes
from ansatz.spec import TargetSpec


class CategoricalDistribution(Distribution):
    """Class k with probability softmax(logits)_k.

    Classes have no order: there is a mode and an entropy, but no mean, cdf or quantile.

    Args:
        logits: ``(..., K)``, up to a constant per row.

    Example:
        >>> import torch
        >>> CategoricalDistribution(torch.zeros(1, 4)).probs
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    discrete = True
    lower = 0.0

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of one sample."""
        return self.logits.shape[:-1]

    @property
    def probs(self) -> Tensor:
        """``(..., K)``, adding up to 1."""
        return torch.softmax(self.logits, -1)

    @property
    def _centre(self) -> Tensor:
        return self.probs

    @property
    def _scatter(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        """The code of the most probable class."""
        return self.logits.argmax(-1)

    @property
    def entropy(self) -> Tensor:
        """-sum of p_k log p_k."""
        log_p = torch.log_softmax(self.logits, -1)
        # A logit of -inf is a class of probability 0, which adds 0 and not 0 * inf.
        return -(log_p.exp() * log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(-1)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability of the class code; a code outside 0..K-1 has probability 0."""
        code = y.long()
        known = (code == y) & (code >= 0) & (code < self.logits.shape[-1])
        safe = torch.where(known, code, 0).expand(torch.broadcast_shapes(y.shape, self.batch_shape))
        return torch.where(known, _log_softmax_at(self.logits, safe), -math.inf)

    def crps(self, y: Tensor) -> Tensor:
        """Undefined: it measures distances, and classes have none."""
        raise TypeError("CategoricalDistribution has no crps: classes have no order. Use brier.")

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent class codes."""
        with torch.no_grad():
            rows = self.probs.reshape(-1, self.logits.shape[-1])
            count = math.prod(shape)
            draws = torch.multinomial(rows, count, replacement=True, generator=generator)
            return draws.T.reshape(*shape, *self.batch_shape)


class Categorical(Likelihood):
    r"""One of K classes, coded 0..K-1.

    .. math:: -\log p(y) = \log \sum_k e^{\eta_k} - \eta_y

    with :math:`\eta` = raw, K logits: multi-class cross-entropy. Adding a constant to all K logits
    changes nothing, which a network does not mind; a linear model needs coefficients that are
    identified, so with ``reference=True`` raw holds K - 1 numbers, the log odds of classes
    1..K-1 against class 0, whose logit is 0. K = 2 is then the Bernoulli distribution.

    Args:
        reference: the first class's logit is 0 and not part of raw.

    Shapes:
        - raw: ``(..., K)``, or ``(..., K - 1)`` with a reference.
        - y: ``(...)`` class codes.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Categorical
        >>> Categorical().loss(torch.zeros(1, 4), torch.tensor([2]))  # log 4
        tensor([1.3863])

    References:
        Agresti (2013), Categorical Data Analysis, section 8.1.
    """

    name = "categorical"
    least_loss = 0.0
    link_name = "logit"

    def __init__(self, *, reference: bool = False) -> None:
        super().__init__()
        self.reference, self.classes = reference, 0

    def outputs(self, target: TargetSpec) -> int:
        """K, or K - 1 with a reference; remembers K, which a sample of y may not show."""
        if target.classes < 1:
            raise ValueError(f"{self.name} needs the number of classes, got {target.classes}.")
        self.classes = target.classes
        return target.classes - int(self.reference)

    def check(self, y: Tensor) -> None:
        """Whole numbers from 0, below K where K is known."""
        check_codes(y, self.classes)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the class frequencies.

        A class without a row has no finite maximum-likelihood logit: it is given half a row.
        """
        counts = class_counts(y, weight, self.classes)
        logits = torch.where(counts > 0, counts, 0.5).log()
        if self.reference:
            shift = (logits - logits[..., :1])[..., 1:]
        else:
            shift = torch.log_softmax(logits, -1)
        return shift, torch.ones_like(shift)

    def logits(self, raw: Tensor) -> Tensor:
        """``(..., K)``: raw, after the reference's 0 where there is one."""
        return pad(raw, (1, 0)) if self.reference else raw

    def probs(self, raw: Tensor) -> Tensor:
        """``(..., K)``, adding up to 1."""
        return torch.softmax(self.logits(raw), -1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -_log_softmax_at(self.logits(raw), y.long())

    def distribution(self, raw: Tensor) -> CategoricalDistribution:
        """Categorical with these logits."""
        return CategoricalDistribution(self.logits(raw))

    def point(self, raw: Tensor) -> Tensor:
        """The code of the most probable class."""
        return self.distribution(raw).mode


def class_counts(y: Tensor, weight: Tensor, classes: int = 0) -> Tensor:
    """The summed weight of each class, ``(..., K)`` for codes ``(B, ...)``."""
    observed = expand_weight(weight, y)
    codes = torch.where(observed > 0, y, 0).long()
    classes = classes or int(codes.max()) + 1
    counts = observed.new_zeros((classes, *y.shape[1:]))
    return counts.scatter_add_(0, codes, observed).movedim(0, -1)


def _log_softmax_at(logits: Tensor, code: Tensor) -> Tensor:
    log_p = torch.log_softmax(logits, -1).expand(*code.shape, -1)
    return log_p.gather(-1, code.unsqueeze(-1)).squeeze(-1)


def half_weight(weight: Tensor, over: tuple[int, ...] = (0,)) -> Tensor:
    """Half of the mean weight of what is observed: what a class without a row is given."""
    count = (weight > 0).sum(over)
    return torch.where(count > 0, weight.sum(over) / (2 * count.clamp(min=1)), 0.5)
