"""The size of a signal through a deep network, for each initialisation."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.initialization._signal import mean_squares

# name, scheme, its gain, activation, what one layer multiplies the mean square by
RUNS = (
    ("N(0, 1), ReLU", "normal", 1.0, "relu", lambda n: n / 2),
    ("He, ReLU", "he_normal", 1.0, "relu", lambda n: 1.0),
    ("He uniform, ReLU", "he_uniform", 1.0, "relu", lambda n: 1.0),
    ("LeCun, linear", "lecun_normal", 1.0, "identity", lambda n: 1.0),
    ("LeCun, ReLU", "lecun_normal", 1.0, "relu", lambda n: 0.5),
    ("N(0, 0.01²), ReLU", "normal", 0.01, "relu", lambda n: n / 2 * 1e-4),
)


def measure(
    generator: torch.Generator, *, networks: int = 60, depth: int = 10, width: int = 64
) -> Finding:
    """Mean squares of the signal at every depth of many networks, in units of the prediction."""
    squares = {
        name: mean_squares(
            init,
            networks=networks,
            depth=depth,
            width=width,
            generator=generator,
            activation=activation,
            gain=gain,
        )
        for name, init, gain, activation, _ in RUNS
    }
    checks = []
    for name, _, _, activation, factor in RUNS:
        last = float(squares[name][:, -1].mean()) / factor(width) ** depth
        # One layer's factor has the relative variance c / n; layers are independent.
        relative_variance = (1 + fluctuation(activation) / width) ** depth - 1
        checks.append(
            Check(
                f"mean square after {depth} layers over its prediction: {name}",
                last,
                1.0,
                4 * (relative_variance / networks) ** 0.5,
                f"4 standard errors over {networks} networks: √(((1 + c/n)^L - 1) / S), "
                f"c = {fluctuation(activation)}",
                wrong=WRONG[name](width, depth),
            )
        )
    for name in ("He, ReLU", "LeCun, linear"):
        activation = "relu" if "ReLU" in name else "identity"
        other = "identity" if "ReLU" in name else "relu"
        factors = (squares[name][:, 1:] / squares[name][:, :-1]).flatten()
        variance, error = variance_and_error(factors)
        checks.append(
            Check(
                f"variance of one layer's factor, times the width: {name}",
                variance * width,
                float(fluctuation(activation)),
                4 * error * width,
                f"4 standard errors over {len(factors)} layers, from their fourth moment",
                wrong=Wrong("that of the other activation", predicted=float(fluctuation(other))),
            )
        )
    rows = [
        [name, float(squares[name][:, -1].mean()), factor(width) ** depth]
        for name, _, _, _, factor in RUNS
    ]
    table = Table(["weights", f"mean square after {depth} layers", "predicted"], rows)
    return Finding(checks, table, {"squares": squares, "width": width})


# What a student may believe instead, as a factor of the right mean square after L layers.
WRONG = {
    "N(0, 1), ReLU": lambda n, L: Wrong("n per layer, as without ReLU", predicted=2.0**L),
    "He, ReLU": lambda n, L: Wrong("LeCun's weights, 1/√n", predicted=0.5**L),
    "He uniform, ReLU": lambda n, L: Wrong("±√(2/n) for ±√(6/n)", predicted=3.0**-L),
    "LeCun, linear": lambda n, L: Wrong(
        "1/n taken for the standard deviation", predicted=float(n) ** -L
    ),
    "LeCun, ReLU": lambda n, L: Wrong("it kept the signal, as linear", predicted=2.0**L),
    "N(0, 0.01²), ReLU": lambda n, L: Wrong("the signal is kept", predicted=(2e4 / n) ** L),
}


def fluctuation(activation: str) -> int:
    """c of the variance c / n of a layer's factor: Var(2 relu(z)²) = 6 - 1, Var(z²) = 3 - 1."""
    return {"relu": 5, "identity": 2}[activation]


def variance_and_error(sample: Tensor) -> tuple[float, float]:
    """The variance and its standard error, √((m₄ - m₂²) / N)."""
    centred = sample - sample.mean()
    second, fourth = (centred**2).mean(), (centred**4).mean()
    return float(second), float(((fourth - second**2) / len(sample)).sqrt())


def draw(paper: Figure, finding: Finding) -> None:
    """Mean squares through depth with their predictions."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, PALETTE

    left, right = paper.subplots(1, 2, width_ratios=(3, 2))
    for (name, _, _, _, factor), colour, mark in zip(RUNS, PALETTE, "sovD^p", strict=True):
        squares = finding.data["squares"][name]
        depth = torch.arange(squares.shape[1])
        mean, error = squares.mean(0), squares.std(0) / len(squares) ** 0.5
        kept = factor(finding.data["width"]) == 1
        if not kept or name == "He, ReLU":
            left.plot(depth, factor(finding.data["width"]) ** depth.double(), color=INK, lw=0.9)
            left.plot(depth, mean, mark, color=colour, label=name)
        if kept:
            at = depth + {"o": -0.2, "v": 0.0, "D": 0.2}[mark]
            right.errorbar(at, mean, 2 * error, fmt=mark, color=colour, lw=1, label=name)
    right.axhline(1, color=INK, lw=0.9)
    left.set(xlabel="layers passed", ylabel="mean square of the signal")
    left.set_title("the scale of the weights decides the size of the signal")
    right.set(xlabel="layers passed", title="kept: ± 2 standard errors", ylim=(0, 2.2))
    left.legend(loc="lower left", fontsize=7.5)
    right.legend(loc="upper left", fontsize=7.5)
    logarithmic(left.yaxis)


claim = Claim(
    id="variance-through-depth",
    title="Initialisations that preserve a signal through depth",
    statement=(
        "A layer of n inputs with weights of variance σ² multiplies the mean square of its signal "
        "by nσ², and by nσ²/2 with ReLU. So LeCun's σ² = 1/n preserves Var(Wx) = Var(x), He's 2/n "
        "preserves the mean square through ReLU, and N(0, 1) explodes by n/2 per layer; to take "
        "the variance for a standard deviation is a common slip. One network deviates from that by "
        "a factor whose variance per layer is 5/n with ReLU, 2/n without."
    ),
    formula=(
        r"\mathrm{E}\,\frac{\|h_L\|^2}{\|h_0\|^2} = \left(\frac{n \sigma^2}{2}\right)^L, \qquad "
        r"\frac{\mathrm{E}\,\|h_L\|^4}{(\mathrm{E}\,\|h_L\|^2)^2} = "
        r"\left(1 + \frac5n\right)^L \quad \text{(ReLU, normal weights)}"
    ),
    sources=("M141", "M143", "M145"),
    measure=measure,
    reference=(
        "He et al. (2015), Delving deep into rectifiers, section 2.2. "
        "https://arxiv.org/abs/1502.01852; LeCun et al. (1998), Efficient BackProp, section 4.6; "
        "Hanin and Rolnick (2018), How to start training. https://arxiv.org/abs/1803.01719"
    ),
    full={"networks": 400, "depth": 30, "width": 128},
    draw=draw,
)
