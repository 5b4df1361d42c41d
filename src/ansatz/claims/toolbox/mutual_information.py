"""The information that one variable has about another."""

import numpy as np
import torch
from torch import Tensor
from torch.special import entr

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator,
    *,
    tables: int = 100,
    draws: int = 20_000,
    correlations: tuple[float, ...] = (-0.95, -0.7, -0.3, 0.0, 0.3, 0.7, 0.95),
) -> Finding:
    """Random joint tables by three routes, and normal pairs by simulation."""
    counts = torch.randint(1, 20, (tables, 4, 5), generator=generator).double()
    joint = counts / counts.sum((1, 2), keepdim=True)
    x, y = joint.sum(2), joint.sum(1)
    given_y = entr(joint / y.unsqueeze(1)).sum(1)  # H(X | Y = y), (tables, 5)
    given_x = entr(joint / x.unsqueeze(2)).sum(2)
    one_way = entr(x).sum(1) - (y * given_y).sum(1)
    other_way = entr(y).sum(1) - (x * given_x).sum(1)
    product = x.unsqueeze(2) * y.unsqueeze(1)
    reference = torch.tensor([peer(table) for table in counts], dtype=torch.float64)
    independent = product / product.sum((1, 2), keepdim=True)
    # H(p‖q) read as the cross-entropy of the two marginals (of equally many values).
    square = counts[:, :, :4] / counts[:, :, :4].sum((1, 2), keepdim=True)
    p, q = square.sum(2), square.sum(1)
    misread = entr(p).sum(1) + (p * q.log()).sum(1)
    rounding = 4 * 20 * EPS * float(entr(x).sum(1).max() + entr(y).sum(1).max())
    because = "rounding: sums of 20 logarithms"
    found = [normal_pair(r, draws, generator) for r in correlations]
    worst = max(abs(mean - exact) / error for mean, error, exact, _ in found)
    doubled = max(abs(mean - 2 * exact) / error for mean, error, exact, _ in found)
    checks = [
        Check(
            "largest |H(X) - H(X|Y) - I(X;Y)|, I by scikit-learn",
            float((one_way - reference).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("H(X)", measured=float((entr(x).sum(1) - reference).abs().max())),
        ),
        Check(
            "largest difference of H(X) - H(X|Y) and H(Y) - H(Y|X)",
            float((one_way - other_way).abs().max()),
            0.0,
            rounding,
            because,
        ),
        Check(
            "smallest H(X) - H(X|Y)",
            float(one_way.min()),
            0.0,
            rounding,
            because,
            relation=">=",
            wrong=Wrong("H(p) less the cross-entropy H(p, q)", measured=float(misread.min())),
        ),
        Check(
            "largest I(X;Y) of independent variables",
            float((independent * (independent / product).log()).sum((1, 2)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("the joint tables", measured=float(one_way.max())),
        ),
        Check(
            "normal pairs: largest deviation from -½ log(1 - ρ²), in standard errors",
            worst,
            0.0,
            4.5,
            f"a normal quantile of 7e-6, for {len(correlations)} comparisons",
            wrong=Wrong("-log(1 - ρ²)", measured=doubled),
        ),
    ]
    rows = [[r, *found_r[:3]] for r, found_r in zip(correlations, found, strict=True)]
    return Finding(checks, Table(["correlation", "simulated", "standard error", "formula"], rows))


def peer(counts: Tensor) -> float:
    """The mutual information of a contingency table by scikit-learn."""
    from sklearn.metrics import mutual_info_score

    return float(mutual_info_score(None, None, contingency=counts.numpy()))


def normal_pair(r: float, draws: int, generator: torch.Generator) -> tuple[float, ...]:
    """Mean of log p(x, y) / p(x) p(y), its standard error, and -½ log(1 - ρ²)."""
    x, e = torch.randn(2, draws, generator=generator, dtype=torch.float64)
    y = r * x + (1 - r**2) ** 0.5 * e
    ratio = -0.5 * (np.log(1 - r**2) + e**2 - y**2)  # log p(y | x) - log p(y)
    # Without correlation the ratio is 0 in every draw; rounding stands for its standard error.
    error = max(float(ratio.std()) / draws**0.5, EPS)
    return float(ratio.mean()), error, float(-0.5 * np.log(1 - r**2)), r


def draw(paper: Figure, finding: Finding) -> None:
    """Information of a normal pair against its correlation."""
    assert finding.table is not None
    axes = paper.subplots()
    r, mean, error, _ = np.array(finding.table.rows).T
    axes.errorbar(r, mean, 2 * error, fmt="o", color=MODEL, label="simulated, ± 2 standard errors")
    line = np.linspace(-0.97, 0.97, 195)
    axes.plot(line, -0.5 * np.log(1 - line**2), color=LINEAR, label="−½ log(1 − ρ²)")
    axes.plot(line, -np.log(1 - line**2), "--", color=INK, lw=0.8, label="twice that: wrong")
    axes.set(xlabel="correlation ρ of a normal pair", ylabel="mutual information (nats)")
    axes.set_title("information of X about Y: none without dependence, without limit near |ρ| = 1")
    axes.legend(loc="upper center")


claim = Claim(
    id="mutual-information",
    title="Mutual information",
    statement=(
        "The mutual information of two variables is the entropy of the one less its entropy when "
        "the other is known; it is symmetric, never negative, and zero for independent variables. "
        "The conditional entropy is sometimes written H(p‖q): read as a cross-entropy that would "
        "make the information negative."
    ),
    formula=(
        r"I(X; Y) = H(X) - H(X \mid Y) = H(Y) - H(Y \mid X) = "
        r"\mathrm{KL}(p_{XY} \,\|\, p_X \otimes p_Y) \ge 0"
    ),
    sources=("M028",),
    measure=measure,
    reference="Cover and Thomas (2006), Elements of Information Theory, section 2.4.",
    full={"tables": 2000, "draws": 1_000_000},
    draw=draw,
)
