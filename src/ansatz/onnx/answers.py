"""What a service wants to know of a row, computed from the raw numbers of its law."""

import math
from typing import Any

import torch
from torch import Tensor

from ansatz.likelihoods import CurveDistribution, DiscreteHazard, Distribution, Likelihood


def law_parameters(law: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    """The parameters of the predictive law under the names that its distribution gives them.

    Args:
        law: the likelihood.
        raw: ``(N, ..., P)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.onnx.answers import law_parameters
        >>> list(law_parameters(Normal(dispersion=2.0), torch.zeros(1, 1)))
        ['law_mean', 'law_sd']
    """
    if not law.is_law:
        return {}
    distribution = law.distribution(raw)
    if isinstance(distribution, CurveDistribution):  # its survival curve says it all
        return {}
    found = _tensors(distribution, "law")
    return {k: v if v.ndim else v.expand(raw.shape[:-1]) for k, v in found.items()}


def _tensors(distribution: Distribution, prefix: str) -> dict[str, Tensor]:
    """The tensors that a distribution was made of; one inside another adds its name."""
    found: dict[str, Tensor] = {}
    for name, value in vars(distribution).items():
        words = f"{prefix}_{name.lstrip('_')}"
        if isinstance(value, Tensor):
            found[words] = value
        elif isinstance(value, Distribution):
            found |= _tensors(value, prefix if name == "base" else words)  # base: stretched
        elif isinstance(value, list) and value and isinstance(value[0], Distribution):
            parts = [_tensors(part, prefix) for part in value]  # members: an axis behind the rows
            found |= {key: torch.stack([part[key] for part in parts], 1) for key in parts[0]}
    return found


def predictions(estimator: Any, law: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    """What ``predict`` and ``predict_proba`` answer; classes and items as codes.

    Args:
        estimator: the fitted one.
        law: its likelihood, in the precision of ``raw``.
        raw: ``(N, ..., P)``.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from ansatz import Regressor
        >>> from ansatz.onnx.answers import predictions
        >>> model = Regressor(network="linear").fit(np.arange(3.0).reshape(-1, 1), [1.0, 2.0, 4.0])
        >>> law = model.model_.objective.likelihood
        >>> predictions(model, law, torch.ones(1, 1))
        {'prediction': tensor([1.])}
    """
    if estimator.labels_cells:
        cells: Tensor = estimator._probabilities(raw)
        return {"prediction": cells.argmax(-1), "probabilities": cells}
    if hasattr(estimator, "classes_"):
        probs = estimator._log_probabilities(law, estimator._served_raw(raw)).exp()
        own = estimator._log_probabilities(law, raw).argmax(-1) if law.is_law else law.point(raw)
        return {"prediction": own, "probabilities": probs.to(raw.dtype)}
    if hasattr(estimator, "items_"):
        rankings: Any = law.distribution(raw)
        # Not its mode: ONNX sorts by the k largest, equal ones in their order.
        order = torch.topk(rankings.scores, rankings.scores.shape[-1]).indices
        return {"prediction": order, "probabilities": rankings.probs}
    if hasattr(estimator, "followed_"):
        return _survival(law, raw)
    point = law.point(raw)
    column = getattr(estimator, "_y_is_column", False)
    return {"prediction": point.unsqueeze(1) if column else point}


def curve_times(law: Likelihood) -> list[float]:
    """The times of the survival curves that a law without a formula gives; empty for others.

    Example:
        >>> from ansatz.likelihoods import Weibull
        >>> from ansatz.onnx.answers import curve_times
        >>> curve_times(Weibull())
        []
    """
    times = getattr(law, "baseline_times", getattr(law, "cuts", None))
    return [] if times is None else times.tolist()


def _survival(law: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    distribution = law.distribution(raw)
    if not isinstance(distribution, CurveDistribution):
        return {"prediction": distribution.median}
    found = {"survival": distribution.survival}
    if isinstance(law, DiscreteHazard) and law.causes > 1:
        by_cause = [law.incidence(raw, law.cuts, cause) for cause in range(1, law.causes + 1)]
        return {**found, "incidence": torch.stack(by_cause, 1)}  # (N, causes, T)
    return {"prediction": curve_median(distribution), **found}


def curve_median(curve: CurveDistribution) -> Tensor:
    """The first time at which survival is one half, without a search in a sorted list.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import CurveDistribution
        >>> from ansatz.onnx.answers import curve_median
        >>> curve_median(CurveDistribution(torch.tensor([1.0, 3.0]), torch.tensor([[0.8, 0.4]])))
        tensor([3.])
    """
    hazard, knots, slope = curve.hazard, curve.knots, curve.slope  # (N, T + 1), (T + 1,)
    half = torch.tensor(math.log(2), dtype=hazard.dtype)
    place = (hazard < half).sum(-1)  # of the first knot with H >= log 2
    if curve.interpolation == "step":
        return torch.cat([knots, knots.new_full((1,), math.inf)])[place]
    before = (place - 1).clamp(min=0)
    at = before.unsqueeze(-1)
    level, rise = hazard.gather(-1, at).squeeze(-1), slope.gather(-1, at).squeeze(-1)
    return knots[before] + (half - level).clamp(min=0) / rise
