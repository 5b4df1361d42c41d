"""Glorot's weights: between keeping the signal and keeping its gradient."""

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import affine, initializers

SHAPES = ((100, 50), (50, 100), (80, 80), (200, 20), (20, 200))


def measure(generator: torch.Generator, *, layers: int = 40) -> Finding:
    """The factors by which layers of several shapes multiply a signal and a gradient."""
    forward, backward, scores, deviations = [], [], [], []
    for n, m in SHAPES:
        ahead, back = passes(n, m, layers, generator)
        forward.append((float(ahead.mean()), float(ahead.std() / layers**0.5)))
        backward.append((float(back.mean()), float(back.std() / layers**0.5)))
        scores.append(
            (forward[-1][0] - 2 * n / (n + m)) / (2 * n / (n + m) * (2 / m / layers) ** 0.5)
        )
        scores.append(
            (backward[-1][0] - 2 * m / (n + m)) / (2 * m / (n + m) * (2 / n / layers) ** 0.5)
        )
        drawn = torch.empty(m, n, dtype=torch.float64)
        weights = [
            initializers.get("glorot_normal")(drawn.clone(), generator=generator)
            for _ in range(layers)
        ]
        deviations.append(float(torch.stack(weights).square().mean().sqrt()))
    n, m = SHAPES[0]
    right = (2 / (n + m)) ** 0.5
    twin = initializers.get("glorot_uniform")(
        torch.empty(m, n, dtype=torch.float64), generator=generator
    )
    other = torch.nn.init.xavier_uniform_(
        torch.empty(m, n, dtype=torch.float64), generator=generator
    )
    kept = [f[0] + b[0] for f, b in zip(forward, backward, strict=True)]
    checks = [
        Check(
            f"standard deviation of weights with {n} inputs and {m} outputs",
            deviations[0],
            right,
            4 * right * (0.5 / (n * m * layers)) ** 0.5,
            f"4 standard errors of a standard deviation over {n * m * layers} normal draws",
            wrong=Wrong("√(2/n + m), as printed", predicted=(2 / n + m) ** 0.5, erratum="E48"),
        ),
        Check(
            "largest deviation of a factor from 2n/(n+m) forwards, 2m/(n+m) backwards",
            max(abs(score) for score in scores),
            0.0,
            4.5,
            f"standard errors over {layers} layers: a quantile for 10 comparisons",
            wrong=Wrong("both were kept, 1 and 1", measured=abs(forward[3][0] - 1) / forward[3][1]),
        ),
        Check(
            "largest deviation from 2 of the sum of both factors",
            max(abs(k - 2) for k in kept),
            0.0,
            4.5 * max(f[1] + b[1] for f, b in zip(forward, backward, strict=True)),
            "4.5 standard errors of the worst shape",
            wrong=Wrong("LeCun's 1/√n: 1 + m/n", measured=abs(1 + SHAPES[4][1] / SHAPES[4][0] - 2)),
        ),
        Check(
            "largest uniform weight, over √(6/(n+m))",
            max(float(twin.abs().max()), float(other.abs().max())) / (6 / (n + m)) ** 0.5,
            1.0,
            20 / (n * m),
            f"the largest of {n * m} draws: short by 20 parts in as many with probability e⁻²⁰",
            wrong=Wrong("√(2/(n+m)), that of the normal", predicted=3**-0.5),
        ),
    ]
    rows = [
        [f"{n} → {m}", f[0], 2 * n / (n + m), b[0], 2 * m / (n + m)]
        for (n, m), f, b in zip(SHAPES, forward, backward, strict=True)
    ]
    table = Table(["layer", "forwards", "predicted", "backwards", "predicted"], rows)
    return Finding(checks, table, {"forward": forward, "backward": backward})


def passes(
    n: int, m: int, layers: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """The factors of the mean square of a signal, and of a gradient by autograd."""
    ahead, back = [], []
    for _ in range(layers):
        layer = affine(n, m, init="glorot_normal", generator=generator).double()
        x = torch.randn(n, dtype=torch.float64, generator=generator).requires_grad_()
        y = layer(x)
        g = torch.randn(m, dtype=torch.float64, generator=generator)
        (gradient,) = torch.autograd.grad(y, x, g)
        ahead.append((y.detach() ** 2).mean() / (x.detach() ** 2).mean())
        back.append((gradient**2).mean() / (g**2).mean())
    return torch.stack(ahead), torch.stack(back)


def draw(paper: Figure, finding: Finding) -> None:
    """Factors forwards and backwards against n / (n + m)."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes = paper.subplots()
    share = torch.tensor([n / (n + m) for n, m in SHAPES])
    line = torch.linspace(0, 1, 2)
    axes.plot(line, 2 * line, color=INK, lw=1)
    axes.plot(line, 2 - 2 * line, color=INK, lw=1, label="2n / (n + m) and 2m / (n + m)")
    axes.axhline(1, color=INK, lw=0.8, ls=":", label="1: kept")
    for name, colour, mark, label in (
        ("forward", MODEL, "o", "mean square of the signal, after / before"),
        ("backward", LINEAR, "s", "the same of the gradient, backwards"),
    ):
        mean, error = zip(*finding.data[name], strict=True)
        axes.errorbar(share, mean, 2 * torch.tensor(error), fmt=mark, color=colour, label=label)
    axes.set(xlabel="share of the inputs, n / (n + m)", ylabel="factor of a layer")
    axes.set_title("Glorot's weights keep signal and gradient on average")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="glorot-initialization",
    title="Glorot's weights balance signal and gradient",
    statement=(
        "Weights of standard deviation √(2/(n + m)) multiply the mean square of a signal by 2n/(n "
        "+ m) and that of a gradient by 2m/(n + m): their sum is 2, and both are 1 for a square "
        "layer. Often printed as √(2/n + m), which is 7 in place of 0.12 for 100 inputs and 50 "
        "outputs."
    ),
    formula=(
        r"\sigma = \sqrt{\frac{2}{n + m}}, \qquad n\sigma^2 + m\sigma^2 = 2, \qquad "
        r"U\!\left[-\sqrt{\tfrac{6}{n+m}}, \sqrt{\tfrac{6}{n+m}}\right]"
    ),
    sources=("M144", "E48"),
    measure=measure,
    reference="Glorot and Bengio (2010), Understanding the difficulty of training deep "
    "feedforward neural networks, equations 10 to 16.",
    full={"layers": 2000},
    errata=(Erratum("E48", "√(2/n + m)", "√(2/(n + m))"),),
    draw=draw,
)
