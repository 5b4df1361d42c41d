"""AlexNet's colour noise is centred and follows the principal colours."""

import torch
from scipy import stats
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.data.augmentation import PcaColor


def measure(generator: torch.Generator, *, draws: int = 20_000, deviation: float = 0.1) -> Finding:
    """Mean and covariance of many shifts, beside those of the formula, in standard errors."""
    mix = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    pixels = torch.randn(2_000, 3, generator=generator, dtype=torch.float64) @ mix
    covariance = pixels.T.cov()  # Σ of the three channels
    augment = PcaColor.fit(pixels.unsqueeze(2), scale=deviation)
    black = torch.zeros(draws, 3, 1, dtype=torch.float64)  # what is added to it is the shift
    shifts = augment(black, None, generator).squeeze(2)  # Σ_i α_i λ_i p_i for each image
    values = torch.tensor(augment.values, dtype=torch.float64)
    vectors = torch.tensor(augment.vectors, dtype=torch.float64)  # a principal colour per row
    predicted = deviation**2 * covariance @ covariance
    limit = float(stats.norm.isf(1e-6 / 18))  # nine comparisons, two-sided
    because = "normal quantile at 1e-6, shared by nine comparisons (Bonferroni)"
    positive = (shifts @ vectors.T).abs() @ vectors  # the same α, all of one sign
    checks = [
        Check(
            "largest gap of the shifts' covariance to s²Σ², in standard errors",
            covariance_gap(shifts, predicted),
            0.0,
            limit,
            because,
            wrong=Wrong(
                "s²Σ, the noise of the pixels themselves",
                measured=covariance_gap(shifts, deviation**2 * covariance),
            ),
        ),
        Check(
            "largest mean of a channel's shift, in standard errors",
            mean_gap(shifts),
            0.0,
            limit,
            because,
            wrong=Wrong("weights of one sign", measured=mean_gap(positive)),
        ),
    ]
    found = (shifts @ vectors.T).var(0)
    rows = [
        [float(v), float(f), deviation**2 * float(v) ** 2]
        for v, f in zip(values, found, strict=True)
    ]
    data = {"values": values, "found": found, "deviation": deviation, "draws": draws}
    return Finding(checks, Table(["λ", "variance of the shift", "s²λ²"], rows), data)


def covariance_gap(shifts: Tensor, predicted: Tensor) -> float:
    """max |S - P| over the standard error of a normal sample's covariance."""
    diagonal = predicted.diag()
    error = ((diagonal[:, None] * diagonal + predicted**2) / (len(shifts) - 1)).sqrt()
    return float(((shifts.T.cov() - predicted) / error).abs().max())


def mean_gap(shifts: Tensor) -> float:
    """max |mean| over its standard error."""
    return float((shifts.mean(0) / (shifts.std(0) / len(shifts) ** 0.5)).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The variance of the shift along each principal colour."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    values, found = finding.data["values"], finding.data["found"]
    deviation, draws = finding.data["deviation"], finding.data["draws"]
    axes = paper.subplots()
    line = torch.logspace(float(values[0].log10()) - 0.3, float(values[-1].log10()) + 0.3, 40)
    axes.plot(line, deviation**2 * line**2, color=INK, label="s²λ²")
    axes.plot(line, deviation**2 * line, "--", color=LINEAR, linewidth=0.9, label="s²λ: wrong")
    error = 2 * found * (2 / draws) ** 0.5
    axes.errorbar(values, found, error, fmt="o", color=MODEL, label="shifts, ± 2 standard errors")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_xlabel("eigenvalue λ of the colours' covariance")
    axes.set_ylabel("variance along its colour")
    axes.set_title("colour noise goes where colours differ most")
    axes.legend(loc="upper left")


claim = Claim(
    id="color-augmentation",
    title="Colour noise along the principal colours",
    statement=(
        "AlexNet shifts the colour of each image by Σ αᵢ λᵢ pᵢ, with the eigenvalues λ and "
        "eigenvectors p of the channels' covariance Σ and normal weights α of standard deviation "
        "s. The shift has mean 0 and covariance s²Σ²: the square of the covariance of the pixels."
    ),
    formula=(
        r"\delta = \sum_i \alpha_i \lambda_i p_i, \quad \alpha_i \sim N(0, s^2) \;\Rightarrow\; "
        r"E\, \delta = 0, \quad \mathrm{Cov}(\delta) = s^2 \Sigma^2"
    ),
    sources=("M170",),
    measure=measure,
    reference=(
        "Krizhevsky, Sutskever and Hinton (2012), ImageNet classification with deep convolutional "
        "neural networks, section 4.1."
    ),
    full={"draws": 1_000_000},
    draw=draw,
)
