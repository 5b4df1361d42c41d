"""Linear models of several targets as one network."""

import copy
from collections.abc import Sequence

import torch
from torch import nn

from ansatz.errors import UsageError
from ansatz.layers import affine
from ansatz.linear.result import LinearFit
from ansatz.training.objectives import Supervised


def join_targets(fits: Sequence[LinearFit]) -> tuple[nn.Linear, Supervised]:
    """K linear models of the same distribution and columns as one network with its objective.

    Targets do not share coefficients, so K outcomes at once are K fits; this puts them side by
    side, where a network for K targets would be.

    Args:
        fits: one per target, in their order.

    Returns:
        ``nn.Linear(D, K * P)`` in float64 and the objective that turns its output into raw
        ``(N, K, P)`` and evaluates y ``(N, K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import fit_linear, join_targets
        >>> x, y = torch.randn(9, 2), torch.randn(9, 3)
        >>> fits = [fit_linear(Normal(dispersion="constant"), x, y[:, k]) for k in range(3)]
        >>> network, objective = join_targets(fits)
        >>> objective.raw(network, (x.double(),)).shape
        torch.Size([9, 3, 1])
    """
    if not fits:
        raise UsageError("join_targets needs at least one fit.")
    first = fits[0]
    if any(f.names != first.names or f.likelihood.name != first.likelihood.name for f in fits):
        raise UsageError("join_targets needs fits of one likelihood on the same columns.")
    parts = [fit.to_network() for fit in fits]
    outputs = len(first.outputs)
    network = affine(len(first.names) - 1, len(fits) * outputs, init="zeros", bias=0.0).double()
    with torch.no_grad():
        network.weight.copy_(torch.cat([part.weight for part in parts]))
        network.bias.copy_(torch.cat([part.bias for part in parts]))
    likelihood = copy.deepcopy(first.likelihood)
    states = [fit.likelihood.state_dict() for fit in fits]
    # What was measured or learned per target gets an axis for them; a known value stays one number.
    learned = {name for name, _ in likelihood.named_parameters()}
    joined = {
        name: value
        if (value.ndim and name not in learned) or name.endswith("known")
        else torch.stack([state[name] for state in states])
        for name, value in states[0].items()
    }
    likelihood.load_state_dict(joined)
    zeros = torch.zeros(len(fits), outputs, dtype=torch.float64)
    return network, Supervised(likelihood, zeros, zeros + 1)
