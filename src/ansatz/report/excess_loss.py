"""Computes how much larger the loss of each row is than its own prediction expects."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.likelihoods import Distribution
from ansatz.likelihoods.mixture import Mixture
from ansatz.report.evidence import Evidence
from ansatz.report.transform import targets

DRAWS = 200  # of each row, where the entropy has no closed form


class ExcessLoss(NamedTuple):
    """The excess loss of each row, with mean 0 if the predictions are calibrated."""

    value: Tensor  # ``(N,)``
    name: str  # for the head of a table
    meaning: str  # in a sentence


def excess_losses(evidence: Evidence) -> ExcessLoss | None:
    r"""Subtracts from the loss of each row what its own predicted distribution expects.

    .. math:: e_i = -\log p_i(y_i) - H(p_i), \qquad H(p) = E_{Y \sim p}[-\log p(Y)]

    If row i has the distribution :math:`p_i`, then :math:`E[e_i] = 0`, whatever its scale: outcomes
    that are larger, and predicted to vary more, are not predicted worse. Where the loss is not a
    log density of the row alone (censored outcomes), :math:`(z_i^2 - 1) / 2` with the normal score
    z of the probability integral transform takes its place; for a normal distribution the two are
    equal. None for a loss without a distribution.
    """
    return evidence.once("excess", lambda: _excess(evidence))


def _excess(evidence: Evidence) -> ExcessLoss | None:
    distribution = evidence.distribution
    if distribution is None:
        return None
    losses = evidence.row_losses()
    try:
        with torch.no_grad():
            own = _by_row(-distribution.log_prob(evidence.value).double())
            if torch.allclose(own, losses, rtol=1e-6, atol=1e-9):
                expected = _by_row(_entropy(distribution, evidence.seed).double())
                return ExcessLoss(
                    losses - expected,
                    f"{evidence.loss_name} - entropy",
                    f"The {evidence.loss_name} of a row minus the entropy of its predicted "
                    "distribution is 0 on average if predictions are calibrated, whatever the "
                    "scale of the outcomes.",
                )
    except (TypeError, ValueError, RuntimeError):  # no density of single outcomes, no samples
        pass
    found = targets(evidence)
    if not found:
        return None
    generator = np.random.default_rng(evidence.seed)
    scores = [(each.transform.draw(generator)[1] ** 2 - 1) / 2 for each in found]
    return ExcessLoss(
        torch.from_numpy(np.mean(scores, axis=0)),
        "(z² - 1) / 2",
        "The normal score z of an outcome on the scale of its own predicted distribution has "
        "variance 1 if predictions are calibrated, whatever the scale of the outcomes.",
    )


def _by_row(values: Tensor) -> Tensor:
    return values.flatten(1).mean(1) if values.ndim > 1 else values


def _entropy(distribution: Distribution, seed: int) -> Tensor:
    """The closed form, or the mean over draws."""
    if not isinstance(distribution, Mixture):  # its entropy is a quadrature over many quantiles
        try:
            return distribution.entropy
        except TypeError:
            pass
    generator = torch.Generator().manual_seed(seed)
    draws = distribution.sample((DRAWS,), generator)
    return -distribution.log_prob(draws).mean(0)
