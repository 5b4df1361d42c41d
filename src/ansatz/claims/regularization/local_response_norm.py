"""Local response normalisation divides by the energy of neighbouring channels."""

import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.layers import LocalResponseNorm


def measure(
    generator: torch.Generator, *, channels: int = 10, side: int = 3, size: int = 5
) -> Finding:
    """Both layers, the library's and torch's, against a loop over channels."""
    k, alpha, beta = 2.0, 1.0, 0.75
    layer = torch.nn.LocalResponseNorm(size, alpha=alpha, beta=beta, k=k)
    a = 2 * torch.randn(2, channels, side, side, generator=generator, dtype=torch.float64)
    out = layer(a)
    right = by_loop(a, size, alpha / size, beta, k)
    paper = by_loop(a, size, alpha, beta, k)
    ours = LocalResponseNorm(size, alpha=alpha, beta=beta, k=k)(a)
    rescaled = torch.nn.LocalResponseNorm(size, alpha=alpha * size, beta=beta, k=k)(a)
    rounding = 32 * EPS * size * float(a.abs().max())
    wrong = float((out - paper).abs().max())
    because = "rounding: 32 eps times the window and the size of the inputs"
    checks = [
        Check(
            "largest distance of torch's layer from a (k + α/n Σ a²)^-β",
            float((out - right).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("the paper's α Σ a², not divided by n", measured=wrong),
        ),
        Check(
            "largest distance of layers.LocalResponseNorm from the paper's a (k + α Σ a²)^-β",
            float((ours - paper).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("torch's α, divided by n", measured=float((ours - right).abs().max())),
        ),
        Check(
            "of torch's layer from the paper's formula, when α is multiplied by n",
            float((rescaled - paper).abs().max()),
            0.0,
            rounding,
            because,
        ),
    ]  # fmt: skip
    table = Table(
        ["channel", "input", "output", "formula"],
        [[c, *(float(each[0, c, 0, 0]) for each in (a, out, right))] for c in range(channels)],
    )
    return Finding(checks, table)


def by_loop(a: torch.Tensor, size: int, alpha: float, beta: float, k: float) -> torch.Tensor:
    """Channel by channel: the window is cut off at both ends."""
    out = torch.empty_like(a)
    channels = a.shape[1]
    for i in range(channels):
        window = range(max(0, i - size // 2), min(channels, i + size // 2 + 1))
        energy = sum((a[:, j] ** 2 for j in window), torch.zeros_like(a[:, i]))
        out[:, i] = a[:, i] / (k + alpha * energy) ** beta
    return out


claim = Claim(
    id="local-response-norm",
    title="Local response normalisation",
    statement=(
        "Each activation is divided by a power of the energy of the n channels around it. Torch "
        "divides α by the width n of the window, which the formula of AlexNet does not: its α is "
        "n times as large for the same layer."
    ),
    formula=(
        r"b_i = a_i \Big/ \Big( k + \frac{\alpha}{n} \sum_{j = \max(0, i - \lfloor n/2 \rfloor)}"
        r"^{\min(C - 1, i + \lfloor n/2 \rfloor)} a_j^2 \Big)^\beta"
    ),
    sources=("M167",),
    measure=measure,
    reference=(
        "Krizhevsky, Sutskever and Hinton (2012), ImageNet classification with deep convolutional "
        "neural networks, section 3.3."
    ),
    full={"channels": 96, "side": 27},
)
