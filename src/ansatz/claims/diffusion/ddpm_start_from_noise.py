"""The start of a diffusion from its noise: a round trip."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.diffusion._chain import schedule


def measure(generator: torch.Generator, *, steps: int = 20, start: float = 1.5) -> Finding:
    """Walks the chain step by step, gathers the noise of the whole way, and goes back."""
    noising = schedule(steps)
    small = torch.randn(steps, generator=generator, dtype=torch.float64).numpy()
    x, carried = np.empty(steps), np.empty(steps)
    place, noise = start, 0.0  # x_t, and what of it is noise
    for t in range(steps):
        place = np.sqrt(noising.alpha[t]) * place + np.sqrt(noising.beta[t]) * small[t]
        noise = np.sqrt(noising.alpha[t]) * noise + np.sqrt(noising.beta[t]) * small[t]
        x[t], carried[t] = place, noise / np.sqrt(1 - noising.total[t])
    right = noising.process.start_from_noise(
        torch.as_tensor(x), torch.as_tensor(carried), noising.times
    ).numpy()
    printed = x / np.sqrt(noising.total) - np.sqrt(1 - noising.total) / noising.total * carried
    magnified = float((np.maximum(np.abs(x), 1) / np.sqrt(noising.total)).max())
    check = Check(
        "largest error of the recovered start over t",
        float(np.abs(right - start).max()),
        0.0,
        4 * steps * 2.0**-52 * magnified,
        "rounding: 4 eps per step, magnified by 1/√ᾱ on the way back",
        wrong=Wrong(
            "√(1-ᾱ)/ᾱ in place of √(1-ᾱ)/√ᾱ",
            measured=float(np.abs(printed - start).max()),
            erratum="E10",
        ),
    )
    data = {"right": right, "printed": printed, "start": start}
    return Finding([check], data=data)


def draw(paper: Figure, finding: Finding) -> None:
    """The recovered start over t."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    t = np.arange(1, len(data["right"]) + 1)
    axes.plot(t, data["printed"], "x--", color=LINEAR, lw=1, label="printed, √(1-ᾱ)/ᾱ")
    axes.plot(t, data["right"], "o", color=MODEL, label="right, √(1-ᾱ)/√ᾱ")
    axes.axhline(data["start"], color=MODEL, lw=0.8, label="true start")
    axes.set(xlabel="step t of the noising", ylabel="recovered x₀")
    axes.locator_params(axis="x", integer=True)
    axes.set_title("x₀ comes back from x_t and its noise, at every step")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="ddpm-start-from-noise",
    title="The start of a diffusion from x_t and its noise",
    statement=(
        "A diffusion began at x_t/√ᾱ_t - √(1-ᾱ_t)/√ᾱ_t ε, whatever t. A common slip has ᾱ_t "
        "without the root in the second term."
    ),
    formula=(
        r"x_0 = \frac{x_t}{\sqrt{\bar\alpha_t}} - \frac{\sqrt{1 - \bar\alpha_t}}"
        r"{\sqrt{\bar\alpha_t}}\, \varepsilon"
    ),
    sources=("E10", "M385"),
    measure=measure,
    reference=(
        "Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, section 3.2. "
        "https://arxiv.org/abs/2006.11239"
    ),
    full={"steps": 40},
    errata=(Erratum("E10", "x_t/√ᾱ - (√(1-ᾱ)/ᾱ) ε", "x_t/√ᾱ - (√(1-ᾱ)/√ᾱ) ε"),),
    draw=draw,
)
