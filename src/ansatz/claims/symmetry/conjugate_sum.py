"""With a conjugate prior, the probability of a set is a function of a sum; and a base measure."""

import math

import torch
from scipy.integrate import quad
from scipy.special import betaln, gammaln

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, elements: int = 6) -> Finding:
    """Bernoulli with a beta prior and Poisson with a gamma prior, beside integrals."""
    coins = (torch.rand(elements, generator=generator) < 0.4).long().tolist()
    counts = torch.poisson(torch.full((elements,), 3.0), generator=generator).long().tolist()
    a, b = 2.0, 3.0
    beta = beta_bernoulli(sum(coins), elements, a, b)
    beta_true, beta_off = integral(
        lambda t: t ** (sum(coins) + a - 1) * (1 - t) ** (elements - sum(coins) + b - 1), 0, 1
    )
    beta_true = math.log(beta_true) - betaln(a, b)
    gamma = gamma_poisson(sum(counts), elements, a, b)
    base = -sum(gammaln(k + 1) for k in counts)
    gamma_true, gamma_off = integral(
        lambda t: (
            math.exp(
                sum(k * math.log(t) - t - gammaln(k + 1) for k in counts)
                + a * math.log(b)
                - gammaln(a)
                + (a - 1) * math.log(t)
                - b * t
                + 40.0
            )
            if t > 0
            else 0.0
        ),
        0,
        40,
    )
    gamma_true = math.log(gamma_true) - 40.0
    checks = [
        Check(
            "log probability of coins: h(α + Σx, M₀ + M) - h(α, M₀)",
            beta,
            beta_true,
            1e-8 + beta_off,
            "the error that the quadrature states",
            wrong=Wrong("without the prior's h(α, M₀)", predicted=beta_true + betaln(a, b)),
        ),
        Check(
            "log probability of counts with their base measure Π 1/x!",
            gamma + base,
            gamma_true,
            1e-8 + gamma_off,
            "the error that the quadrature states",
            wrong=Wrong("as it is often printed, without it", measured=gamma),
        ),
    ]
    scale = range(0, 10 * elements)
    data = {"sum": list(scale), "log": [gamma_poisson(s, elements, a, b) for s in scale]}
    return Finding(checks, data=data)


def beta_bernoulli(total: int, count: int, a: float, b: float) -> float:
    """The difference of log normalisers of beta distributions."""
    return float(betaln(a + total, b + count - total) - betaln(a, b))


def gamma_poisson(total: int, count: int, a: float, b: float) -> float:
    """The difference of log normalisers of gamma distributions."""
    new = gammaln(a + total) - (a + total) * math.log(b + count)
    return float(new - gammaln(a) + a * math.log(b))


def integral(function: object, low: float, high: float) -> tuple[float, float]:
    """An integral and the relative error of it that the rule states."""
    value, error = quad(function, low, high, limit=200, epsabs=0.0, epsrel=1e-11)
    return float(value), float(error / value)


def draw(paper: Figure, finding: Finding) -> None:
    """What the sum says about a set."""
    from ansatz.figures.style import MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["sum"], data["log"], color=MODEL)
    axes.set(xlabel="Σ x, all that the set says", ylabel="log probability, but for Π 1/x!")
    axes.set_title("a conjugate prior makes the probability of a set a function of a sum")


claim = Claim(
    id="conjugate-sum",
    title="Conjugate priors give functions of sums",
    statement=(
        "For an exponential family with its conjugate prior the probability of a set is a function "
        "of the sum of sufficient statistics, times the base measures of the elements, which are "
        "often left out."
    ),
    formula=(
        r"p(X) = \exp\Big(h\big(\alpha + \textstyle\sum \varphi(x), M_0 + M\big) - h(\alpha, M_0)"
        r"\Big) \prod_{x \in X} b(x)"
    ),
    sources=("M285",),
    measure=measure,
    reference="Zaheer et al. (2017), Deep sets, section 2.2. https://arxiv.org/abs/1703.06114",
    full={"elements": 12},
    draw=draw,
)
