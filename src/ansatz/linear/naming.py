"""The names of the raw numbers, scales and shapes of a fitted likelihood."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.heads import CLASSES
from ansatz.spec import TargetSpec

_PHI = ("gamma", "inverse_gaussian", "tweedie")
_PRECISIONS = ("beta", "beta_binomial", "dirichlet", "zero_one_inflated_beta")  # 1 / dispersion
_SYMBOLS = {  # likelihood, name of its positive head -> symbol
    **{(name, "dispersion"): "phi" for name in (*_PHI, *_PRECISIONS)},
    **{(n, "dispersion"): "sigma" for n in ("normal", "student_t", "weibull", "log_normal")},
    ("negative_binomial", "dispersion"): "alpha",
    ("zero_inflated_negative_binomial", "dispersion"): "alpha",
    ("hurdle_negative_binomial", "dispersion"): "alpha",
    ("laplace", "dispersion"): "b",
    ("barron", "dispersion"): "c",
    ("student_t", "freedom"): "nu",
    ("generalized_pareto", "excess"): "xi",
}
_PARTS = {  # likelihood -> names of its raw numbers that are not dispersions
    "zero_inflated_poisson": ("counts", "extra zeros"),
    "zero_inflated_negative_binomial": ("counts", "extra zeros"),
    "hurdle_poisson": ("positive counts", "being positive"),
    "hurdle_negative_binomial": ("positive counts", "being positive"),
    "von_mises": ("cosine", "sine"),
    "zero_one_inflated_beta": ("location", "zeros", "ones"),
}


def inner(likelihood: Likelihood) -> Likelihood:
    """The likelihood inside a censored or truncated one, else the likelihood itself."""
    base = getattr(likelihood, "likelihood", likelihood)
    return base if isinstance(base, Likelihood) else likelihood


def output_names(
    likelihood: Likelihood,
    outputs: int,
    dispersions: Sequence[int],
    target: TargetSpec,
    class_names: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Names the P raw numbers; a likelihood may do so itself by ``output_names(target)``."""
    base = inner(likelihood)
    hook: Callable[[TargetSpec], Sequence[str]] | None = getattr(base, "output_names", None)
    if callable(hook):
        return tuple(str(name) for name in hook(target))
    if base.name in CLASSES or base.name == "plackett_luce":
        known = (
            class_names or getattr(base, "item_names", ()) or range(max(target.classes, outputs))
        )
        return tuple(str(name) for name in known)[-outputs:]
    if base.name == "normal_mixture":
        count = (outputs + 1) // 3
        each = [f"{noun} {k + 1}" for noun in ("mean", "dispersion") for k in range(count)]
        return (*each, *(f"log odds {k + 1}" for k in range(1, count)))
    if base.name == "discrete_hazard":
        return _intervals(base, outputs)
    if base.name in ("dirichlet", "multivariate_normal"):
        return _vector(base, outputs, target.event[0], class_names)
    if base.name == "quantiles":
        return _levels(base)
    location = outputs - len(dispersions)
    parts = _PARTS.get(base.name, ("location",) if location == 1 else ())
    if len(parts) != location:
        parts = tuple(f"raw {j}" for j in range(outputs) if j not in dispersions)
    noun = "dispersion" if len(dispersions) == 1 else "dispersion {}"
    names, given = [], iter(parts)
    for j in range(outputs):
        names.append(noun.format(j) if j in dispersions else next(given))
    return tuple(names)


def _intervals(likelihood: Likelihood, outputs: int) -> tuple[str, ...]:
    cuts: list[float] = likelihood.cuts.tolist()  # type: ignore[operator]
    causes = int(likelihood.causes)  # type: ignore[arg-type]
    names = [f"hazard in ({low:g}, {high:g}]" for low, high in pairwise([0.0, *cuts])]
    names += ["unused"] * (outputs // causes - len(names))
    if causes == 1:
        return tuple(names)
    return tuple(f"{name}, cause {k + 1}" for name in names for k in range(causes))


def _vector(
    likelihood: Likelihood, outputs: int, size: int, given: Sequence[str] | None
) -> tuple[str, ...]:
    """Parts of a composition, or numbers of a vector and what makes up their covariance."""
    noun = "part" if likelihood.name == "dirichlet" else "number"
    each = [str(name) for name in given or [f"{noun} {k + 1}" for k in range(size)]]
    if likelihood.name == "dirichlet":
        location = size - int(bool(likelihood.reference))
        return (*each[-location:], *["dispersion"] * (outputs - location))
    names = [*each, *(f"dispersion of {name}" for name in each)]
    names += [f"{each[i]} on {each[j]}" for i in range(size) for j in range(i)]
    return tuple(names[:outputs])


def _levels(likelihood: Likelihood) -> tuple[str, ...]:
    levels, middle = list(likelihood.levels), int(likelihood.middle)  # type: ignore[arg-type]
    up = [f"{low:g} to {high:g}" for low, high in pairwise(levels[middle:])]
    down = [f"{high:g} to {low:g}" for high, low in pairwise(levels[middle::-1])]
    return ("median", *up, *down)


def scales_of(
    likelihood: Likelihood, raw: Tensor, predicted: bool, class_names: Sequence[str] | None = None
) -> dict[str, float]:
    """Every scale and shape of the likelihood that does not depend on x, by its symbol."""
    base = inner(likelihood)
    if base.name == "multivariate_normal":
        return {} if predicted else _covariance(base, raw)
    scales: dict[str, float] = {}
    for path, head in base.named_modules():
        if not isinstance(head, PositiveHead) or (head.outputs and predicted):
            continue
        name = path.rpartition(".")[2]
        with torch.no_grad():
            value = _head_value(base, head, raw)
        scales |= _numbered(symbol(base, name), as_usual(base, value))
    with torch.no_grad():
        power = getattr(base, "power", None)
        if base.name == "tweedie" and power is not None:
            scales["p"] = float(power.value(torch.float64))
        if base.name == "barron":
            scales["alpha"] = float(base.alpha(raw)[0])  # type: ignore[operator]
        if base.name == "ordinal":
            thresholds: Tensor = base.thresholds  # type: ignore[assignment]
            names = class_names or range(len(thresholds) + 1)
            between = [f"threshold {low}|{high}" for low, high in pairwise(names)]
            scales |= dict(zip(between, thresholds.tolist(), strict=True))
    return scales


def direction_of(raw: Tensor) -> dict[str, float]:
    """Mean direction and concentration of a von Mises model without x."""
    cosine, sine = raw[0].unbind()
    return {"mean direction": float(torch.atan2(sine, cosine)), "kappa": float(cosine.hypot(sine))}


def _covariance(likelihood: Likelihood, raw: Tensor) -> dict[str, float]:
    """Standard deviations and correlations."""
    with torch.no_grad():
        matrix: Tensor = likelihood.distribution(raw).covariance[0]  # type: ignore[attr-defined]
    sd = matrix.diagonal().sqrt()
    scales = _numbered("sd", sd)
    for i in range(len(sd)):
        for j in range(i):
            scales[f"correlation {j + 1},{i + 1}"] = float(matrix[i, j] / sd[i] / sd[j])
    return scales


def _head_value(likelihood: Likelihood, head: PositiveHead, raw: Tensor) -> Tensor:
    if head.kind != "predicted":
        return head.value(raw.dtype)
    values: list[Tensor] = []
    hook = head.register_forward_hook(lambda _m, _i, value: values.append(value))
    try:
        likelihood.distribution(raw)
    finally:
        hook.remove()
    return values[0] if values else head(raw)


def symbol(likelihood: Likelihood, head: str) -> str:
    """The symbol of a positive number of a likelihood: sigma, phi, nu, ..."""
    return _SYMBOLS.get((inner(likelihood).name, head), head)


def as_usual(likelihood: Likelihood, value: Tensor) -> Tensor:
    """As the textbooks have it: a precision is one over our dispersion."""
    if likelihood.name == "generalized_pareto":
        return value + float(likelihood.least)  # type: ignore[arg-type]
    return 1 / value if likelihood.name in _PRECISIONS else value


def _numbered(name: str, value: Tensor) -> dict[str, float]:
    numbers = value.reshape(-1).tolist()
    if len(numbers) == 1:
        return {name: numbers[0]}
    return {f"{name} {k + 1}": number for k, number in enumerate(numbers)}
