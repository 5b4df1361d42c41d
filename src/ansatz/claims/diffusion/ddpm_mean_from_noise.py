"""The backward mean of a diffusion, written with the noise instead of the start."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.diffusion._chain import backward, draw_errors, schedule


def measure(generator: torch.Generator, *, steps: int = 20, start: float = 1.5) -> Finding:
    """The formula beside Bayes' rule for each t."""
    noising = schedule(steps)
    noise = torch.randn(steps, generator=generator, dtype=torch.float64).numpy()
    x = np.sqrt(noising.total) * start + np.sqrt(1 - noising.total) * noise
    exact = np.array(
        [
            backward(
                np.sqrt(noising.before[t]) * start, 1 - noising.before[t], noising.beta[t], x[t]
            ).mean
            for t in range(1, steps)
        ]
    )
    centred = (x - noising.beta / np.sqrt(1 - noising.total) * noise)[1:]
    right = noising.process.mean_from_noise(
        torch.as_tensor(x), torch.as_tensor(noise), noising.times
    ).numpy()[1:]
    printed = centred / np.sqrt(noising.total[1:])
    check = Check(
        "largest error of the mean over t",
        float(np.abs(right - exact).max()),
        0.0,
        4_001 * 2.0**-52 * float(np.abs(exact).max() + 1),
        "rounding of sums over 4001 grid points",
        wrong=Wrong(
            "1/√ᾱ in place of 1/√α", measured=float(np.abs(printed - exact).max()), erratum="E9"
        ),
    )
    t = np.arange(2, steps + 1)
    table = Table(["t", "Bayes' rule", "right", "printed"], [
        [int(t[i]), exact[i], right[i], printed[i]] for i in range(steps - 1)
    ])  # fmt: skip
    return Finding([check], table, {"t": t, "exact": exact, "right": right, "printed": printed})


def draw(paper: Figure, finding: Finding) -> None:
    """Errors of both formulas over t."""
    axes = draw_errors(paper, finding, printed="printed, with 1/√ᾱ", right="with 1/√α")
    axes.set_title("one step back undoes one step; with 1/√ᾱ it undoes them all")
    axes.legend(loc="upper left")


claim = Claim(
    id="ddpm-mean-from-noise",
    title="The backward mean from the noise",
    statement=(
        "With the noise ε that led from x_0 to x_t, the mean of the step before is (x_t - β_t ε / "
        "√(1-ᾱ_t)) / √α_t, equal to the posterior mean. A common slip divides by √ᾱ_t, which makes "
        "the mean grow without bound over the steps."
    ),
    formula=(
        r"\tilde\mu_t = \frac{1}{\sqrt{\alpha_t}} \Bigl( x_t - \frac{\beta_t}"
        r"{\sqrt{1 - \bar\alpha_t}}\, \varepsilon \Bigr)"
    ),
    sources=("E9", "M386"),
    measure=measure,
    reference=(
        "Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, eq. 11. "
        "https://arxiv.org/abs/2006.11239"
    ),
    full={"steps": 40},
    errata=(Erratum("E9", "(x_t - β ε / √(1-ᾱ)) / √ᾱ", "(x_t - β ε / √(1-ᾱ)) / √α"),),
    draw=draw,
)
