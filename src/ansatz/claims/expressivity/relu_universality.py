"""One hidden layer of rectified units reaches even a function without a derivative anywhere."""

from collections.abc import Sequence
from math import log

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import lebesgue, values

TERMS = 40  # 2^-40: the rest of the series is below rounding of the sums


def measure(generator: torch.Generator, *, powers: Sequence[int] = (2, 3, 4, 5, 6, 7)) -> Finding:
    """The largest error on Takagi's function of layers of 2, 4, 8 ... units."""
    # The error repeats the function itself, whose top 2/3 is at 1/3: a third of each piece.
    errors = []
    for power in powers:
        m = 2**power
        nodes = np.arange(m + 1) / m
        x = np.concatenate([(np.arange(m) + 1 / 3) / m, np.linspace(0, 1, 1001)])
        network = lebesgue(nodes, takagi(nodes))
        errors.append(float(np.abs(values(network, x) - takagi(x)).max()))
    m = 2.0 ** np.asarray(powers)
    exact = 2 / 3 / m
    off = float(np.abs(np.array(errors) / exact - 1).max())
    slope = log(errors[-1] / errors[0]) / log(m[-1] / m[0])
    # Slopes are whole numbers up to the power, so the kinks sum to at most 2 power m.
    rounding = float(8 * np.finfo(float).eps * powers[-1] * m[-1] ** 2 + 2.0**-TERMS * m[-1])
    checks = [
        Check(
            "slope of log error against log units",
            slope,
            -1.0,
            rounding,
            "rounding: kinks of a sum 2 power m, over an error 2/(3m), and the rest of the series",
            wrong=Wrong("the rate of smooth functions", predicted=-2.0),
        ),
        Check(
            "largest relative distance of the error from 2/(3m)",
            off,
            0.0,
            rounding,
            "as above",
            wrong=Wrong(
                "1/m: the series' bound, not its top",
                measured=float(np.abs(np.array(errors) * m - 1).max()),
            ),
        ),
    ]
    table = Table(["units", "largest error", "2/(3m)"], list(zip(m, errors, exact, strict=True)))
    return Finding(checks, table, {"m": m, "errors": np.array(errors)})


def takagi(x: np.ndarray) -> np.ndarray:
    """Σ 2^-j dist(2^j x, Z): continuous, differentiable nowhere."""
    total = np.zeros_like(x)
    for j in range(TERMS):
        y = np.ldexp(x, j)
        total += np.ldexp(np.abs(y - np.round(y)), -j)
    return total


def draw(paper: Figure, finding: Finding) -> None:
    """The function, two layers, and the errors."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    left, right = paper.subplots(1, 2)
    x = np.linspace(0, 1, 2001)
    left.plot(x, takagi(x), color=INK, lw=0.8, label="target")
    for m, colour in ((4, THIRD), (16, MODEL)):
        nodes = np.arange(m + 1) / m
        left.plot(
            x, values(lebesgue(nodes, takagi(nodes)), x), color=colour, lw=1, label=f"{m} units"
        )
    left.set(xlabel="x", ylabel="f(x)", title="rough everywhere, and reached", ylim=(0, 0.72))
    left.legend(loc="lower center")
    m = finding.data["m"]
    right.plot(m, 2 / 3 / m, color=INK, label="2/(3m)")
    right.plot(m, 2 / 3 / m[0] * (m[0] / m) ** 2, "--", color=LINEAR, lw=0.9, label="1/m²")
    right.plot(m, finding.data["errors"], "o", color=MODEL, label="measured")
    right.set(xlabel="hidden units m", ylabel="largest error", title="the error falls as 1/m")
    right.legend()
    logarithmic(right.xaxis, right.yaxis)


claim = Claim(
    id="relu-universality",
    title="One hidden layer of rectified units is universal",
    statement=(
        "Straight lines between ever more nodes reach every continuous function, and one hidden "
        "layer of rectified units is such lines. Takagi's function has no derivative anywhere; m "
        "units, m a power of two, come within exactly 2/(3m) of it."
    ),
    formula=(
        r"T(x) = \sum_{j \ge 0} 2^{-j} \mathrm{dist}(2^j x, \mathbb Z), \qquad "
        r"\|T - f_m\|_\infty = \frac{2}{3m} \;\; (m = 2^k)"
    ),
    sources=("M074", "M072"),
    measure=measure,
    reference="Takagi (1903); Pinkus (1999), Approximation theory of the MLP model.",
    full={"powers": (2, 3, 4, 5, 6, 7, 8, 9, 10)},
    draw=draw,
)
