"""The prior of the weights of a network."""

import difflib
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from ansatz.errors import UsageError
from ansatz.inference.priors import Prior
from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.networks import MLP, Linear
from ansatz.training import Supervised

LAYERS, COLUMNS = "log_normal(0.4, 1)", "log_normal(0, 0.5)"
NAMES = ("weights", "layers", "columns", "sigma")
OTHERS = 5.0  # standard deviation of parameters of the likelihood that are not dispersions
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


class WeightPrior(nn.Module):
    r"""Normal weights whose scale is one number for each layer, and one for each column of x.

    .. math:: W^\ell_{jk} \sim N\Big(0, \frac{s_\ell^2 c_k^2}{n_\ell}\Big), \quad
        b^\ell_j \sim N(0, s_\ell^2), \quad
        \log s_\ell \sim N(0.4, 1), \quad \log c_k \sim N(0, 0.5^2)

    with :math:`n_\ell` inputs of layer l; :math:`c_k` is 1 but for the columns of a table, in the
    first layer. The scales are written as :math:`s_\ell = e^{0.4 + u_\ell}` with u standard normal:
    ``layers`` and ``columns`` hold u, which is 0 at the median of the prior. A constant dispersion
    :math:`\sigma` is exponential with the mean sd(y).

    Args:
        network: whose weights it is about.
        objective: whose likelihood may have parameters.
        priors: distributions of ``layers``, ``columns`` and ``sigma``, in place of these; or
            ``weights``, a normal distribution of every weight as it is.

    Example:
        >>> import torch
        >>> from ansatz.inference.weight_prior import WeightPrior
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.networks import MLP
        >>> from ansatz.training import Supervised
        >>> prior = WeightPrior(MLP(3, 1, widths=(4,)), Supervised(Poisson()))
        >>> [round(sd.max().item(), 3) for sd in prior.sds()]
        [0.861, 1.492, 0.746, 1.492]

    References:
        Neal (1996), Bayesian Learning for Neural Networks, section 2.1; MacKay (1992), A practical
        Bayesian framework for backpropagation networks.
    """

    def __init__(
        self, network: nn.Module, objective: Supervised, priors: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        given = _read(priors or {})
        self.given = {name: str(prior) for name, prior in given.items()}
        self.sigma = given.get("sigma")
        self.objective = (objective,)  # in a tuple: it is not a part of this module
        self.base, self.means, layer_of = [], [], []
        weights, layer = given.get("weights"), -1
        norms = {id(part.weight) for part in network.modules() if isinstance(part, _NORMS)}
        embeddings = {id(p.weight) for p in network.modules() if isinstance(p, nn.Embedding)}
        for parameter in network.parameters():
            is_map = parameter.ndim > 1
            layer += int(is_map or layer < 0)
            layer_of.append(layer)
            inputs = parameter[0].numel() if is_map and id(parameter) not in embeddings else 1
            own = inputs**-0.5 if weights is None else weights.parameters[1]
            self.base.append(own)
            self.means.append(1.0 if id(parameter) in norms else 0.0)
        self.layer_of = layer_of
        self.is_fixed = weights is not None
        self.center, self.width = given["layers"].parameters
        _, self.column_width = given["columns"].parameters if "columns" in given else (0.0, 0.0)
        self.first, columns = (None, 0) if self.is_fixed else _first_layer(network)
        like = next(network.parameters())
        layers = 0 if self.is_fixed else layer + 1
        self.layers = nn.Parameter(torch.zeros(layers, dtype=like.dtype))
        self.columns = nn.Parameter(torch.zeros(columns, dtype=like.dtype))

    def sds(self, layers: Tensor | None = None, columns: Tensor | None = None) -> list[Tensor]:
        """The standard deviations, one tensor for each of the network's, which broadcasts to it.

        Args:
            layers: u of the layers; its own by default.
            columns: u of the columns; its own by default.
        """
        layers = self.layers if layers is None else layers
        columns = self.columns if columns is None else columns
        if self.is_fixed:
            return [layers.new_tensor(sd) for sd in self.base]
        scales = (self.center + self.width * layers).exp()
        found = [base * scales[layer] for base, layer in zip(self.base, self.layer_of, strict=True)]
        if self.first is not None:
            factors = (self.column_width * columns).exp()
            extra = self.inputs_of_first - len(factors)
            whole = torch.cat([factors, factors.new_ones(extra)])
            found[self.first] = found[self.first] * whole
        return found

    @property
    def inputs_of_first(self) -> int:
        """Inputs of the first layer: the columns, and vectors of the levels of others."""
        assert self.first is not None
        return round(self.base[self.first] ** -2)

    def log_prob(self, weights: Sequence[Tensor]) -> Tensor:
        """The log density of the network's weights, given the scales."""
        total = self.layers.new_zeros(())
        for weight, mean, sd in zip(weights, self.means, self.sds(), strict=True):
            total = total - 0.5 * ((weight - mean) / sd).square().sum()
            total = total - (sd.log().expand_as(weight)).sum()
        count = sum(weight.numel() for weight in weights)
        return total - 0.5 * count * math.log(2 * math.pi)

    def log_prob_of_scales(self) -> Tensor:
        """The log density of u, standard normal."""
        count = self.layers.numel() + self.columns.numel()
        squares = self.layers.square().sum() + self.columns.square().sum()
        return -0.5 * squares - 0.5 * count * math.log(2 * math.pi)

    def log_prob_of_likelihood(self, values: Mapping[str, Tensor] | None = None) -> Tensor:
        """The log density of the likelihood's parameters, as they are trained.

        Args:
            values: other numbers in their place, by the objective's names.
        """
        total = self.layers.new_zeros(())
        for place, part in self.objective[0].named_modules():
            for name, own in part.named_parameters(recurse=False):
                value = own if values is None else values[f"{place}.{name}"]
                if isinstance(part, PositiveHead) and name == "constant":
                    total = total + self._of_sigma(part, value)
                else:
                    total = total - 0.5 * (value / OTHERS).square().sum()
        return total

    def _of_sigma(self, head: PositiveHead, r: Tensor) -> Tensor:
        """Of sigma = unit * softplus(r), as a density of r."""
        if self.sigma is None:
            return (logsigmoid(r) - softplus(r)).sum()
        value = head.unit.to(r) * softplus(r)
        return (self.sigma.log_prob(value) + logsigmoid(r)).sum()

    def words(self) -> dict[str, str]:
        """The prior in words, by name."""
        found = dict(self.given)
        if not self.columns.numel():
            found.pop("columns", None)
        if self.is_fixed:
            found.pop("layers", None)
        return found


def _read(priors: Mapping[str, str]) -> dict[str, Prior]:
    found = {"layers": Prior.read(LAYERS), "columns": Prior.read(COLUMNS)}
    for name, text in priors.items():
        if name not in NAMES:
            near = difflib.get_close_matches(str(name), NAMES, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise UsageError(
                f"prior '{name}': the priors of a network are {', '.join(NAMES)}.{hint}"
            )
        prior = Prior.read(text, f"prior of {name}")
        if name in ("layers", "columns") and prior.name != "log_normal":
            raise UsageError(f"prior of {name}: scales are log_normal(m, s), got {prior}.")
        if name == "columns" and prior.parameters[0] != 0:
            raise UsageError(f"prior of columns: its median is 1, log_normal(0, s), got {prior}.")
        if name == "weights" and (prior.name != "normal" or prior.parameters[0] != 0):
            raise UsageError(f"prior of weights: expected normal(0, sd), got {prior}.")
        if name == "sigma" and not prior.is_positive:
            raise UsageError(f"prior of sigma: expected one of positive numbers, got {prior}.")
        found[name] = prior
    return found


def _first_layer(network: nn.Module) -> tuple[int | None, int]:
    """The place of the weights that meet the columns of a table, and how many columns there are."""
    if not isinstance(network, MLP | Linear):
        return None, 0
    first = network.hidden[0] if len(network.hidden) else network.output
    if not isinstance(first, nn.Linear):
        return None, 0
    if isinstance(network, MLP) and network.inputs.numeric is not None:
        return None, 0
    places = [k for k, p in enumerate(network.parameters()) if p is first.weight]
    columns = network.inputs.features if isinstance(network, MLP) else network.features
    return (places[0], columns) if places else (None, 0)
