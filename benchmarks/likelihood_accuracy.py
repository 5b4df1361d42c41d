"""How far the tails and quantiles of a likelihood are from forty digits of mpmath."""

import math

import numpy as np
import torch
from likelihood_cases import Case, Support
from mpmath import mp, mpf
from torch import Tensor

TINY = 1e-290  # a logarithm closer to 0 than this may be 0
REGIONS = ("bulk", "lower", "upper")


def accuracy(case: Case, points: int, seed: int) -> dict[str, object]:
    """The largest relative errors of log_cdf and log_survival, ours and scipy's, and of icdf."""
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, object] = {}
    for region in REGIONS:
        parameters = case.draw(generator, points)
        likelihood = case.likelihood(*parameters)
        with torch.no_grad():
            y = case.outcomes(parameters, generator)
            if region != "bulk":
                u = torch.rand(points, generator=generator, dtype=torch.float64)
                target = -(math.log(7) + u * math.log(5000 / 7)).exp()
                y = far_out(case, parameters, region, target)
            ours = likelihood.log_cdf(y), likelihood.log_survival(y)
            cdf = likelihood.cdf(y)
        rows = zip(y.tolist(), *(p.tolist() for p in parameters), strict=True)
        truth = [logs(*case.exact(*row)) for row in rows]
        errors = [largest(v, [t[i] for t in truth]) for i, v in enumerate(ours)]
        found[region] = {"log_cdf": errors[0], "log_survival": errors[1]}
        found[region]["cdf"] = largest(cdf, [mp.exp(t[0]) for t in truth])
        peer = case.scipy(*(p.numpy() for p in parameters))
        if hasattr(peer, "logsf"):
            value = torch.as_tensor(np.asarray(peer.logsf(y.numpy()), dtype=float))
            found[region]["scipy_logsf"] = largest(value, [t[1] for t in truth])
    found["icdf"] = quantiles(case, points, generator)
    return found


def logs(low: mpf, high: mpf) -> tuple[mpf, mpf]:
    """The logarithms of both, that of the larger from the smaller, which has all its digits."""
    if low <= high:
        return (mp.log(low) if low > 0 else -mp.inf), mp.log1p(-low)
    return mp.log1p(-high), (mp.log(high) if high > 0 else -mp.inf)


def largest(values: Tensor, truth: list[mpf]) -> float | str:
    worst = 0.0
    for value, exact in zip(values.tolist(), truth, strict=True):
        if exact == -mp.inf or abs(exact) < TINY:
            wrong = value != -math.inf if exact == -mp.inf else abs(value) > TINY
            error = math.inf if wrong else 0.0
        elif not math.isfinite(value):
            error = math.inf
        else:
            error = float(abs((value - exact) / exact))
        worst = max(worst, error)
    return short(worst)


def short(value: float) -> float | str:
    return float(f"{value:.1e}") if math.isfinite(value) else "infinite"


def quantiles(case: Case, points: int, generator: torch.Generator) -> dict[str, object]:
    """The mixed error of icdf: the e by which changing q and y by e each makes F(y) = q hold.

    For counts, how many quantiles are not the smallest y with F(y) >= q, q give or take 1e-13 of
    itself, or 1e-15 in the upper half.
    """
    found: dict[str, object] = {}
    for region in REGIONS:
        parameters = case.draw(generator, points)
        likelihood = case.likelihood(*parameters)
        q = torch.rand(points, generator=generator, dtype=torch.float64)
        if region != "bulk":
            level = 10 ** -(3 + q * (297 if region == "lower" else 12))
            q = level if region == "lower" else 1 - level
        with torch.no_grad():
            y = likelihood.icdf(q)
            density = likelihood.log_prob(y).exp()
        columns = (column.tolist() for column in (y, q, density, *parameters))
        errors = [one_quantile(case, *row) for row in zip(*columns, strict=True)]
        found[region] = sum(errors) if likelihood.discrete else short(max(errors))
    return found


def one_quantile(case: Case, y: float, q: float, density: float, *parameters) -> float:
    if case.support in ("counts", "few"):
        low, _ = case.exact(y, *parameters)
        less = case.exact(y - 1, *parameters)[0] if y > 0 else mpf(0)
        slack = mpf(1e-13) * q if q < 0.5 else mpf(1e-15)
        return int(not (less < q + slack and q - slack <= low))
    if (case.support == "unit" and y in (0.0, 1.0)) or 0 <= y < 1e-300 or math.isinf(y):
        return 0.0  # an atom, or a quantile that no double can hold
    low, high = case.exact(y, *parameters)
    miss, level = (low - q, q) if q < 0.5 else (high - (1 - mpf(q)), 1 - mpf(q))
    return float(abs(miss) / (level + abs(mpf(y)) * density))


def far_out(case: Case, parameters: list[Tensor], side: str, target: Tensor) -> Tensor:
    """Outcomes where the log of the tail is about ``target``, by bisection along the support."""
    likelihood = case.likelihood(*parameters)
    centre = likelihood.median
    low, high = torch.zeros_like(target), torch.ones_like(target)
    upper = getattr(likelihood, "trials", None)
    # Next to the end of a generalized Pareto likelihood the outcome itself has too few digits.
    bound = (
        0.999 * likelihood.end if hasattr(likelihood, "end") else torch.full_like(target, math.inf)
    )
    for _ in range(60):
        middle = (low + high) / 2
        y = along(case.support, centre, side, middle, upper).minimum(bound)
        value = likelihood.log_survival(y) if side == "upper" else likelihood.log_cdf(y)
        beyond = value < target
        low, high = torch.where(beyond, low, middle), torch.where(beyond, middle, high)
    return along(case.support, centre, side, low, upper).minimum(bound)


def along(support: Support, centre: Tensor, side: str, t: Tensor, end: Tensor | None) -> Tensor:
    """From the centre of a likelihood (t = 0) to the end of its support (t = 1)."""
    if support == "real":
        distance = (690 * t - 5).exp()
        return centre + distance if side == "upper" else centre - distance
    if support == "circle":
        # Next to the cut the angle itself has too few digits.
        return centre + 0.999 * math.pi * (t if side == "upper" else -t)
    if support in ("counts", "few"):
        if side == "lower":
            return (centre * (1 - t)).floor()
        y = (centre + torch.expm1(30 * t)).floor()
        last = end - 1 if end is not None else 1.0 if support == "few" else math.inf
        return y.minimum(torch.as_tensor(last, dtype=y.dtype)).clamp(min=0)
    if side == "lower":
        return (centre * (-680 * t).exp()).clamp(min=1e-300)  # subnormal numbers have few digits
    if support == "unit":
        return (1 - (1 - centre) * (-36 * t).exp()).clamp(max=1 - 2**-53)
    return centre.clamp(min=1e-12) * (640 * t).exp()
