"""The variance of a predictive: within its components, and between them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import UsageError
from ansatz.fitting.intervals import distribution_of
from ansatz.fitting.model import Given, Model

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


def components_of(model: Model, rows: Given) -> dict[str, Array]:
    r"""The standard deviation of each row's prediction and its parts.

    .. math:: \mathrm{sd}^2 = \sum_s w_s \sigma_s^2 + \sum_s w_s (\mu_s - \mu)^2

    within the components of the posterior, which more rows do not remove, and between them, which
    they do. Of classes they are entropies in nats, whose part between is the mutual information of
    the label and the weights.

    Args:
        model: a fitted model.
        rows: to predict.
    """
    parts = model.posterior.components(rows.rows, rows.offset)
    if model.outcome.labels is not None:
        return _entropies(model, parts)
    if model.likelihood.event_ndim or model.several:
        raise UsageError("components are of one number or label for each row.")
    laws = [(weight, distribution_of(part, rows.trials)) for weight, part in parts]
    weight = torch.tensor([w for w, _ in laws], dtype=torch.float64)[:, None]
    mean = torch.stack([law.mean.double() for _, law in laws])
    variance = torch.stack([law.variance.double() for _, law in laws])
    within = (weight * variance).sum(0)
    between = (weight * (mean - (weight * mean).sum(0)).square()).sum(0)
    found = {"sd": within + between, "sd_within": within, "sd_between": between}
    return {name: value.sqrt().numpy() for name, value in found.items()}


def _entropies(model: Model, parts: Any) -> dict[str, Array]:
    weight = np.array([w for w, _ in parts])[:, None]
    each = np.stack([model.of_classes.probabilities(part).numpy() for _, part in parts])
    whole = _entropy((weight[..., None] * each).sum(0))
    within = (weight * _entropy(each)).sum(0)
    between = np.maximum(whole - within, 0.0)
    return {"entropy": whole, "entropy_within": within, "entropy_between": between}


def _entropy(p: Array) -> Array:
    found: Array = -(p * np.log(np.maximum(p, 1e-300))).sum(-1)
    return found


def suggestions(frames: "Sequence[pd.DataFrame]", count: int, by: str | None) -> "pd.DataFrame":
    r"""The rows to label next, best first, with their scores.

    ``bald`` and ``variance`` take the part of the variance that more rows would remove; ``ei`` is

    .. math:: E[(f - f^*)_+] = s\,(t \Phi(t) + \phi(t)), \qquad t = (\mu - f^*) / s

    with the standard deviation s between components and the largest prediction :math:`f^*`.

    Args:
        frames: of predictions with their components, in the order of the rows.
        count: rows.
        by: ``"bald"``, ``"variance"``, ``"ei"``; None takes what goes with the outcome.

    References:
        Houlsby et al. (2011), Bayesian active learning for classification and preference learning.
    """
    import pandas as pd
    from scipy.stats import norm

    table = pd.concat(frames, ignore_index=True)
    of_classes = "entropy_between" in table
    by = by or ("bald" if of_classes else "variance")
    if (by == "bald") != of_classes:
        raise UsageError(f"'{by}' is for {'numbers' if of_classes else 'classes'}; take another.")
    between = table["entropy_between" if of_classes else "sd_between"].to_numpy()
    if not (between > 0).any():
        raise UsageError(
            "nothing varies between the components of this model: fit with a posterior, such as "
            "an ensemble."
        )
    score = between if of_classes else between**2
    if by == "ei":
        mean = table["prediction"].to_numpy(dtype=float)
        s = np.maximum(between, 1e-300)
        t = (mean - mean.max()) / s
        score = s * (t * norm.cdf(t) + norm.pdf(t))
    best = np.argsort(-score, kind="stable")[:count]
    return pd.DataFrame({"prediction": table["prediction"], by: score}).iloc[best]
