"""A small positive bias leaves fewer ReLUs dead at the start."""

import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.optimization._path import rotation
from ansatz.layers import Dense

BIASES = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04)
ROWS = (1, 3, 6)


def measure(
    generator: torch.Generator, *, units: int = 4000, size: int = 8, scale: float = 0.05
) -> Finding:
    """Units that no row of an orthogonal design of size ``scale`` activates, for several biases."""
    x = scale * rotation(size, generator)  # rows of length scale, at right angles
    deviation = (2 / size) ** 0.5 * scale  # of what a He unit adds to its bias
    dead: dict[int, list[float]] = {rows: [] for rows in ROWS}
    for bias in BIASES:
        layer = Dense(size, units, activation="relu", bias=bias, generator=generator).double()
        with torch.no_grad():
            awake = layer(x) > 0  # (N, K)
        for rows in ROWS:
            dead[rows].append(float((~awake[:rows].any(0)).double().mean()))
    chance = {rows: [dead_chance(b / deviation, rows) for b in BIASES] for rows in ROWS}
    scores = [
        (found - p) / (p * (1 - p) / units) ** 0.5
        for rows in ROWS
        for found, p in zip(dead[rows], chance[rows], strict=True)
        if p * units >= 20  # fewer are not normal
    ]
    rows = ROWS[1]
    p, q = chance[rows][0], chance[rows][2]
    error = ((p * (1 - p) + q * (1 - q)) / units) ** 0.5
    checks = [
        Check(
            f"share of dead units on {rows} rows, bias 0.01",
            dead[rows][2],
            q,
            4 * (q * (1 - q) / units) ** 0.5,
            f"4 standard errors over {units} units",
            wrong=Wrong("as many as without a bias", predicted=p),
        ),
        Check(
            "largest deviation from Φ(-b/s)^N, in standard errors",
            max(abs(score) for score in scores),
            0.0,
            4.5,
            f"a normal quantile for {len(scores)} comparisons of 20 expected units and more",
            wrong=Wrong(
                "2⁻ᴺ whatever the bias",
                measured=abs(dead[rows][-1] - p) / (p * (1 - p) / units) ** 0.5,
            ),
        ),
        Check(
            f"dead units with bias 0.01 less those without, {rows} rows",
            dead[rows][2] - dead[rows][0],
            q - p,
            4 * error,
            "4 standard errors of a difference of two shares",
            wrong=Wrong("more of them", predicted=p - q),
        ),
    ]
    table = Table(
        ["bias", *[f"{rows} rows" for rows in ROWS], *[f"predicted, {rows}" for rows in ROWS]],
        [
            [b, *[dead[r][k] for r in ROWS], *[chance[r][k] for r in ROWS]]
            for k, b in enumerate(BIASES)
        ],
    )
    data = {"dead": dead, "deviation": deviation, "units": units}
    return Finding(checks, table, data)


def dead_chance(ratio: float, rows: int) -> float:
    """Φ(-b/s)^N: rows at right angles give independent normal numbers of standard deviation s."""
    return float(torch.special.ndtr(torch.tensor(-ratio, dtype=torch.float64)) ** rows)


def draw(paper: Figure, finding: Finding) -> None:
    """The share of dead units against the bias."""
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    data, axes = finding.data, paper.subplots()
    fine = torch.linspace(0, BIASES[-1], 200)
    for rows, colour, mark in zip(ROWS, (MODEL, LINEAR, THIRD), "osD", strict=True):
        curve = [dead_chance(float(b) / data["deviation"], rows) for b in fine]
        axes.plot(fine, curve, color=INK, lw=1)
        share = torch.tensor(data["dead"][rows])
        error = 2 * (share * (1 - share) / data["units"]).sqrt()
        name = f"{rows} row{'s' if rows > 1 else ''}"
        axes.errorbar(BIASES, share, error, fmt=mark, color=colour, label=name)
    axes.set(xlabel="bias at the start", ylabel="share of dead units")
    axes.set_title(
        f"a positive bias activates units (s = {data['deviation']:.3f}; lines: Φ(-b/s)^N)"
    )
    axes.legend(title="data of")


claim = Claim(
    id="positive-bias",
    title="A small positive bias leaves fewer ReLUs dead",
    statement=(
        "On data of N orthogonal rows, each of which gives a ReLU a normal number of standard "
        "deviation s plus its bias b, the unit is dead with probability Φ(-b/s)^N: 2⁻ᴺ without a "
        "bias, less with a positive one. A bias of 0.01 matters where signals are small, s below "
        "0.1 or so."
    ),
    formula=(
        r"P(\text{dead}) = \prod_{i=1}^N P(w^\top x_i + b \le 0) = "
        r"\Phi\!\left(-\frac{b}{\sigma \|x\|}\right)^{\!N}"
    ),
    sources=("M147",),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 6.3.1.",
    full={"units": 400_000},
    draw=draw,
)
