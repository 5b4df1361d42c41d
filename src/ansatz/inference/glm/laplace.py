"""The normal approximation to the posterior of a linear model, and its mode."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import NumericalError, UsageError
from ansatz.fitting.contracts.inference import Fitted
from ansatz.fitting.job import Job
from ansatz.fitting.task import TrainingPlan
from ansatz.inference.glm.groups import TermLevels
from ansatz.inference.glm.marginal_normal import MarginalNormal
from ansatz.inference.glm.sampled import frame_of, linear_rows, posterior_of, target_of
from ansatz.inference.glm.target import LinearTarget
from ansatz.likelihoods import Likelihood
from ansatz.linear.terms import read_terms
from ansatz.seeds import derive

Array = NDArray[np.float64]
DRAWS = 4000  # independent, unless another number is asked for
STEPS = 100


def is_linear(plan: TrainingPlan) -> bool:
    """Whether a linear model is fitted whose coefficients have names."""
    return plan.network == "linear" and plan.structure.solves


class Mode(NamedTuple):
    """The mode of a density and the inverse Hessian of its negative logarithm there."""

    place: Array  # (D,)
    covariance: Array  # (D, D)
    log_density: float
    gradient: float  # the largest entry, in units of the posterior's deviations


def fit_linear_laplace(
    name: str, plan: TrainingPlan, job: Job, likelihood: Likelihood, *, sampled: bool
) -> Fitted:
    r"""The normal approximation at the mode of the posterior of a linear model.

    .. math:: \theta \mid y \approx N(\hat\theta, H^{-1}), \qquad
        H = -\nabla^2 \log p(\hat\theta \mid y)

    The mode is that of the density of the parameters: under flat priors it is the maximum
    likelihood, of a model with groups that of the marginal likelihood, as lme4 has it.

    Args:
        name: of the inference.
        plan: of the fit.
        job: the rows.
        likelihood: of the outcomes.
        sampled: whether draws are taken; else the mode stands alone.
    """
    design = linear_rows(plan, job, likelihood)
    terms = [TermLevels.of(each, frame_of(job)) for each in read_terms(plan.options.get("random"))]
    target = target_of(plan, job, likelihood, design, terms, jacobian=False)
    if terms and not isinstance(target.density, MarginalNormal):
        raise UsageError(
            f"inference {name} takes terms that vary between groups under the normal likelihood "
            f"alone, where they are integrated out; take nuts for {likelihood.name}."
        )
    mode = find_mode(target)
    theta = mode.place[None, None]
    if sampled:
        count = int(plan.options.get("samples") or DRAWS)
        noise = np.random.default_rng(derive(plan.seed, "laplace") % 2**63)
        root = np.linalg.cholesky(mode.covariance)
        theta = (mode.place + noise.standard_normal((count, len(root))) @ root.T)[None]
    numbers = target.numbers(mode.place[None])[0]
    state: dict[str, Any] = {
        "mode": dict(zip(target.names, numbers.tolist(), strict=True)),
        "log_density": mode.log_density,
        "gradient": mode.gradient,
    }
    return posterior_of(name, plan, design, terms, target, theta, state)


def find_mode(target: LinearTarget) -> Mode:
    """The mode by Newton's steps, with central differences of the written gradient.

    A step goes along the absolute values of the curvatures, and moves no scale by more than e.
    """

    def function(x: Array) -> tuple[float, Array]:
        value, slope = target.density(torch.from_numpy(x)[None])
        found = -float(value)
        return (found, -slope[0].numpy()) if np.isfinite(found) else (1e300, np.zeros_like(x))

    place, hessian = target.start.numpy(), np.zeros((0, 0))
    logs = [k for k, each in enumerate(target.coordinates) if each.range.kind != "real"]
    for _ in range(STEPS):
        hessian = _hessian(target, place)
        value, slope = function(place)
        step = _newton(hessian, slope)
        length = min(1.0, 1.0 / max(1e-300, float(np.abs(step[logs]).max(initial=0.0))))
        slack = 1e-12 * (1 + abs(value))  # what sums of rows cannot tell
        while function(place + length * step)[0] > value + slack and length > 1e-6:
            length /= 2
        if length <= 1e-6:
            break
        place = place + length * step
        if np.abs(step / np.maximum(1.0, np.abs(place))).max() < 1e-9:
            break
    hessian = _hessian(target, place)
    values, vectors = np.linalg.eigh(hessian)
    if not values[0] > 1e-10 * values[-1]:
        worst = int(np.abs(vectors[:, 0]).argmax())
        raise NumericalError(
            f"the posterior has no mode with a normal shape: it is flat along "
            f"{target.coordinates[worst].name}, as where a standard deviation between groups is 0. "
            "Take --inference nuts."
        )
    covariance = (vectors / values) @ vectors.T
    value, slope = function(place)
    scaled = np.abs(slope) * np.sqrt(np.diagonal(covariance))
    return Mode(place, covariance, -value, float(scaled.max()))


def _newton(hessian: Array, slope: Array) -> Array:
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    found: Array = -(vectors / values) @ (vectors.T @ slope)
    return found


def _hessian(target: LinearTarget, place: Array) -> Array:
    """Minus the Hessian of the log density, by differences four apart of its gradient."""
    h = 1e-4 * np.maximum(np.abs(place), 1.0)
    step = np.diag(h)
    points = np.concatenate([place + step, place - step, place + 2 * step, place - 2 * step])
    slopes = [
        target.density(torch.from_numpy(part))[1].numpy()
        for part in np.array_split(points, max(1, len(points) // 64))
    ]
    one, minus, two, minus_two = np.split(np.concatenate(slopes), 4)
    rows = -(8 * (one - minus) - (two - minus_two)) / (12 * h[:, None])
    found: Array = (rows + rows.T) / 2
    return found
