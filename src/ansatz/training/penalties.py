"""Penalties on weights, by name: what regularisation adds to the loss."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ansatz.errors import UsageError
from ansatz.registry import Registry

penalties = Registry(
    "penalty",
    {
        "l1": "ansatz.training.penalties:L1",
        "l2": "ansatz.training.penalties:L2",
        "elastic_net": "ansatz.training.penalties:ElasticNet",
        "group": "ansatz.training.penalties:Group",
        "orthogonality": "ansatz.training.penalties:Orthogonality",
        "spectral": "ansatz.training.penalties:Spectral",
    },
)

ALIASES = {"lasso": "l1", "ridge": "l2", "group_lasso": "group"}

On = Literal["matrices", "all"]


class Penalty(NamedTuple):
    """A penalty as the option ``penalty`` asks for it: its name, and its strength if one is given.

    Args:
        name: as the registry of penalties spells it.
        strength: lambda; None leaves it to the fit, as a linear model chooses it out of fold.

    Example:
        >>> from ansatz.training import Penalty
        >>> Penalty.read("lasso=0.01")
        Penalty(name='l1', strength=0.01)
        >>> str(Penalty.read("ridge"))
        'l2'
    """

    name: str
    strength: float | None = None

    @classmethod
    def read(cls, given: "str | Penalty") -> "Penalty":
        """Reads ``NAME`` or ``NAME=STRENGTH``; lasso, ridge and group_lasso are l1, l2 and group.

        Raises:
            UsageError: the name is unknown, or the strength is not a number from 0 on.
        """
        if isinstance(given, Penalty):
            return given
        if not isinstance(given, str):
            raise UsageError(f"penalty is a text like 'l2' or 'l1=0.01', got {given!r}.")
        name, equals, text = (part.strip() for part in given.partition("="))
        name = ALIASES.get(name.lower(), name.lower())
        penalties.get(name)  # an unknown name suggests the nearest
        if not equals:
            return cls(name)
        try:
            strength = float(text)
        except ValueError:
            strength = math.nan
        if not 0 <= strength < math.inf:
            raise UsageError(f"penalty={given}: the strength must be a number in [0, inf).")
        return cls(name, strength)

    def create(self) -> Any:
        """Makes the penalty of a network's weights.

        Raises:
            UsageError: there is no strength.
        """
        if self.strength is None:
            raise UsageError(
                f"penalty={self.name}: a network needs its strength, like {self.name}=0.001 "
                "(network='linear' chooses it by cross-validation)."
            )
        return penalties.create(self.name, self.strength)

    def __str__(self) -> str:
        return self.name if self.strength is None else f"{self.name}={self.strength:g}"


class _Penalty(ABC):
    """A number of a network's weights, times a strength."""

    def __init__(self, strength: float = 1.0, *, on: On = "matrices") -> None:
        if isinstance(strength, bool) or not 0 <= strength < float("inf"):
            raise UsageError(f"strength of a penalty must be in [0, inf), got {strength!r}.")
        if on not in ("matrices", "all"):
            raise UsageError(f"on must be 'matrices' or 'all' (biases too), got {on!r}.")
        self.strength, self.on = strength, on

    def __call__(self, network: nn.Module) -> Tensor:
        """The penalty, a scalar that can be differentiated."""
        terms = [self.term(W) for W in weights(network, on=self.on)]
        return self.strength * torch.stack(terms).sum() if terms else torch.zeros(())

    @abstractmethod
    def term(self, W: Tensor) -> Tensor:
        """Computes the penalty of one tensor of weights, before the strength."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(strength={self.strength}, on={self.on!r})"


class L1(_Penalty):
    r"""The lasso: pulls weights to zero and leaves few.

    .. math:: \lambda \sum_{ij} |W_{ij}|

    The negative log-density of independent Laplace priors. With an orthonormal design and squared
    loss the minimiser is the soft threshold of the unpenalised one.

    Args:
        strength: :math:`\lambda`.
        on: ``"matrices"`` leaves biases and norm gains alone; ``"all"`` does not.

    References:
        Tibshirani (1996), Regression shrinkage and selection via the lasso.
    """

    def term(self, W: Tensor) -> Tensor:
        """Sum of absolute values."""
        return W.abs().sum()


class L2(_Penalty):
    r"""Ridge: shrinks weights.

    .. math:: \frac{\lambda}{2} \sum_{ij} W_{ij}^2

    The negative log-density of independent N(0, 1/lambda) priors. With plain gradient descent it
    is weight decay :math:`\theta \leftarrow (1 - \eta \lambda) \theta - \eta \nabla \ell`; with
    Adam it is not (use ``adamw``).

    Args:
        strength: :math:`\lambda`.
        on: ``"matrices"`` leaves biases and norm gains alone; ``"all"`` does not.

    References:
        Hoerl & Kennard (1970), Ridge regression.
    """

    def term(self, W: Tensor) -> Tensor:
        """Half the sum of squares."""
        return 0.5 * W.square().sum()


class ElasticNet(_Penalty):
    r"""Between lasso and ridge: few weights, and correlated ones together.

    .. math:: \lambda \sum_{ij} \Big( \rho |W_{ij}| + \frac{1 - \rho}{2} W_{ij}^2 \Big)

    as scikit-learn spells it (alpha and l1_ratio).

    Args:
        strength: :math:`\lambda`.
        l1_ratio: :math:`\rho`; 1 is the lasso, 0 is ridge.
        on: ``"matrices"`` leaves biases and norm gains alone; ``"all"`` does not.

    References:
        Zou & Hastie (2005), Regularization and variable selection via the elastic net.
    """

    def __init__(
        self, strength: float = 1.0, *, l1_ratio: float = 0.5, on: On = "matrices"
    ) -> None:
        super().__init__(strength, on=on)
        if not 0 <= l1_ratio <= 1:
            raise UsageError(f"l1_ratio of ElasticNet must be in [0, 1], got {l1_ratio!r}.")
        self.l1_ratio = l1_ratio

    def term(self, W: Tensor) -> Tensor:
        """The mixture of the two."""
        return self.l1_ratio * W.abs().sum() + (1 - self.l1_ratio) / 2 * W.square().sum()


class Group(_Penalty):
    r"""The group lasso: all weights that leave an input or a hidden unit vanish together, or stay.

    .. math:: \lambda \sum_j \sqrt{p} \, \| W_{\cdot j} \|_2

    A group is a column of a matrix :math:`W` of p rows, or the weights of one input channel of a
    convolution: a unit whose group is 0 can be removed.

    Args:
        strength: :math:`\lambda`.

    References:
        Yuan & Lin (2006), Model selection and estimation in regression with grouped variables.
        Scardapane et al. (2017), Group sparse regularization for deep neural networks, section 3.
        https://arxiv.org/abs/1607.00485
    """

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__(strength)

    def term(self, W: Tensor) -> Tensor:
        """The norms of the columns, times the root of their length."""
        columns = W.movedim(1, 0).flatten(1)  # (D, p)
        # The norm has no gradient at 0; its subgradient 0 keeps a group that vanished there.
        return math.sqrt(columns.shape[1]) * torch.linalg.vector_norm(columns, dim=1).sum()


class Orthogonality(_Penalty):
    r"""Asks for orthonormal rows (or columns, whichever are fewer), which keep norms.

    .. math:: \lambda \|W W^T - I\|_F^2

    Args:
        strength: :math:`\lambda`.

    References:
        Brock et al. (2017), Neural photo editing with introspective adversarial networks, eq. 4.
        https://arxiv.org/abs/1609.07093
    """

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__(strength)

    def term(self, W: Tensor) -> Tensor:
        """Squared distance of the smaller Gram matrix from the identity."""
        W = W.flatten(1)
        gram = W @ W.T if W.shape[0] <= W.shape[1] else W.T @ W
        return (gram - torch.eye(len(gram), dtype=W.dtype, device=W.device)).square().sum()


class Spectral(_Penalty):
    r"""Shrinks the largest singular value of each matrix, and so the Lipschitz constant.

    .. math:: \frac{\lambda}{2} \sum_W \sigma_{\max}(W)^2

    Args:
        strength: :math:`\lambda`.

    References:
        Yoshida & Miyato (2017), Spectral norm regularization. https://arxiv.org/abs/1705.10941
    """

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__(strength)

    def term(self, W: Tensor) -> Tensor:
        """Half the squared spectral norm."""
        return 0.5 * torch.linalg.matrix_norm(W.flatten(1), ord=2).square()


def weights(network: nn.Module, *, on: On = "matrices") -> Iterator[Tensor]:
    """The trained weights of a network, each once: those of two or more axes, or all.

    A weight that is computed from others (weight normalisation) is given as what it is computed
    to be, which is what acts on the data.
    """
    seen: set[int] = set()
    for module in network.modules():
        if isinstance(module, parametrize.ParametrizationList):
            continue
        found = dict(module.named_parameters(recurse=False))
        if parametrize.is_parametrized(module):
            found |= {name: getattr(module, name) for name in module.parametrizations}  # type: ignore[union-attr]
        for W in found.values():
            if W.requires_grad and id(W) not in seen and (on == "all" or W.ndim >= 2):
                seen.add(id(W))
                yield W
