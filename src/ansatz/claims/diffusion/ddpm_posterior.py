"""One step back in a diffusion, given where it began, by Bayes' rule."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.diffusion._chain import Schedule, backward, draw_errors, posterior_mean, schedule


def measure(generator: torch.Generator, *, steps: int = 20, start: float = 1.5) -> Finding:
    """Mean and variance of x_{t-1} given x_t and x_0 for each t, by quadrature."""
    noising = schedule(steps)
    noise = torch.randn(steps, generator=generator, dtype=torch.float64).numpy()
    x = np.sqrt(noising.total) * start + np.sqrt(1 - noising.total) * noise
    exact = [
        backward(
            np.sqrt(noising.before[t]) * start,
            1 - noising.before[t],
            noising.beta[t],
            x[t],
        )
        for t in range(1, steps)
    ]
    mean = np.array([each.mean for each in exact])
    variance = np.array([each.variance for each in exact])
    right, wrong = (
        posterior_mean(noising, start, x)[1:],
        printed_mean(noising, start, x)[1:],
    )
    rounding = 4_001 * 2.0**-52 * float(np.abs(mean).max() + 1)
    checks = [
        Check(
            "largest error of the mean over t",
            float(np.abs(right - mean).max()),
            0.0,
            rounding,
            "rounding of sums over 4001 grid points",
            wrong=Wrong(
                "β̃ and √(1-β̃) in place of β and √α",
                measured=float(np.abs(wrong - mean).max()),
                erratum="E8",
            ),
        ),
        Check(
            "largest error of the variance β̃ over t",
            float(np.abs(noising.posterior_variance[1:] - variance).max()),
            0.0,
            rounding,
            "rounding of sums over 4001 grid points",
            wrong=Wrong("β itself", measured=float(np.abs(noising.beta[1:] - variance).max())),
        ),
    ]
    t = np.arange(2, steps + 1)
    table = Table(["t", "x_t", "Bayes' rule", "right", "printed"], [
        [int(t[i]), x[i + 1], mean[i], right[i], wrong[i]] for i in range(steps - 1)
    ])  # fmt: skip
    return Finding(checks, table, {"t": t, "exact": mean, "right": right, "printed": wrong})


def printed_mean(noising: Schedule, x0: float, x: np.ndarray) -> np.ndarray:
    """As printed: the posterior's variance in the place of the step's."""
    small = noising.posterior_variance
    return (
        np.sqrt(noising.before) * small * x0 + np.sqrt(1 - small) * (1 - noising.before) * x
    ) / (1 - noising.total)


def draw(paper: Figure, finding: Finding) -> None:
    """The mean over t."""
    axes = draw_errors(paper, finding, printed="printed, with β̃ and √(1-β̃)", right="with β and √α")
    axes.set_title("the step back is Bayes' rule; the printed mean misses it where noise is small")
    axes.legend(loc="lower right")


claim = Claim(
    id="ddpm-posterior",
    title="The backward step of a diffusion given its start",
    statement=(
        "Given x_t and x_0 the step before is normal; its mean mixes x_0 and x_t with β_t and "
        "√α_t, and its variance is β̃_t, as Bayes' rule on a grid confirms. A common slip has β̃_t "
        "and √(1-β̃_t) in the mean."
    ),
    formula=(
        r"\tilde\mu_t = \frac{\sqrt{\bar\alpha_{t-1}}\, \beta_t}{1 - \bar\alpha_t} x_0 + "
        r"\frac{\sqrt{\alpha_t} (1 - \bar\alpha_{t-1})}{1 - \bar\alpha_t} x_t, \qquad "
        r"\tilde\beta_t = \frac{1 - \bar\alpha_{t-1}}{1 - \bar\alpha_t} \beta_t"
    ),
    sources=("E8", "M384"),
    measure=measure,
    reference=(
        "Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, eqs. 6 and 7. "
        "https://arxiv.org/abs/2006.11239"
    ),
    full={"steps": 40},
    errata=(
        Erratum(
            "E8",
            "(√ᾱ' β̃ x₀ + √(1-β̃)(1-ᾱ') x_t) / (1-ᾱ)",
            "(√ᾱ' β x₀ + √α (1-ᾱ') x_t) / (1-ᾱ), ᾱ' of the step before",
        ),
    ),
    draw=draw,
)
