"""The elastic net is the lasso at one end and ridge at the other."""

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, PALETTE
from ansatz.optim import ProximalSGD


def measure(
    generator: torch.Generator, *, rows: int = 80, columns: int = 6, strength: float = 0.4,
    ratios: int = 5,
) -> Finding:  # fmt: skip
    """Coefficients from lasso to ridge, by proximal descent and by scikit-learn."""
    common = torch.randn(rows, 1, generator=generator, dtype=torch.float64)
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64) + 0.7 * common
    truth = torch.tensor([1.5, -1.0, 0.5] + [0.0] * (columns - 3), dtype=torch.float64)
    y = x @ truth + 0.5 * torch.randn(rows, generator=generator, dtype=torch.float64)
    grid = np.linspace(0, 1, ratios)
    found = {float(r): descend(x, y, strength * r, strength * (1 - r)) for r in grid}
    ours = torch.stack(list(found.values()))
    gram = x.T @ x / rows
    moment = x.T @ y / rows
    least, most = (float(v) for v in torch.linalg.eigvalsh(gram)[[0, -1]])
    ridge = torch.linalg.solve(gram + strength * torch.eye(columns, dtype=gram.dtype), moment)
    double = torch.linalg.solve(gram + 2 * strength * torch.eye(columns, dtype=gram.dtype), moment)
    lasso = reference(x, y, strength, 1.0)
    between = torch.stack([reference(x, y, strength, r) for r in grid[1:]])
    size = float(moment.norm())
    gap = 1e-14 * float(y.square().mean())  # scikit-learn stops at this duality gap
    tolerance = (2 * gap / least) ** 0.5 + 64 * EPS * size * most / least
    because = "its duality gap of 10⁻¹⁴: √(2 gap / least curvature), and rounding"
    checks = [
        Check(
            "largest distance from scikit-learn's ElasticNet",
            float((ours[1:] - between).abs().max()),
            0.0,
            tolerance,
            because,
            wrong=Wrong("its lasso for all", measured=float((ours[1:] - lasso).abs().max())),
        ),
        Check(
            "distance from the lasso at ratio 1",
            float((ours[-1] - lasso).abs().max()),
            0.0,
            tolerance,
            because,
            wrong=Wrong("from ridge", measured=float((ours[-1] - ridge).abs().max())),
        ),
        Check(
            "distance from ridge at ratio 0",
            float((ours[0] - ridge).abs().max()),
            0.0,
            64 * EPS * size * most / least,
            "rounding: 64 eps times the condition number",
            wrong=Wrong("the L2 part without ½", measured=float((ours[0] - double).abs().max())),
        ),
    ]  # fmt: skip
    table = Table(
        ["ratio", *(f"w{j + 1}" for j in range(columns))],
        [[r, *map(float, w)] for r, w in found.items()],
    )
    data = {"ratio": grid, "ours": ours.numpy(), "theirs": between.numpy(), "ridge": ridge.numpy()}
    return Finding(checks, table, data)


def descend(x: Tensor, y: Tensor, l1: float, l2: float) -> Tensor:
    """Proximal descent until a step changes nothing beyond rounding."""
    network = nn.Linear(x.shape[1], 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(network.weight)
    gram, moment = x.T @ x / len(x), x.T @ y / len(x)
    rate = 1 / float(torch.linalg.eigvalsh(gram)[-1])
    rule = ProximalSGD(network.parameters(), lr=rate, l1=l1, l2=l2)
    for _ in range(2000):
        before = network.weight.detach().clone()
        network.weight.grad = before @ gram - moment
        rule.step()
        if float((network.weight.detach() - before).abs().max()) <= EPS * float(before.abs().max()):
            break
    return network.weight.detach()[0].clone()


def reference(x: Tensor, y: Tensor, strength: float, ratio: float) -> Tensor:
    """Scikit-learn's coordinate descent."""
    from sklearn.linear_model import ElasticNet

    model = ElasticNet(
        alpha=strength, l1_ratio=ratio, fit_intercept=False, tol=1e-14, max_iter=100_000
    )
    return torch.as_tensor(model.fit(x.numpy(), y.numpy()).coef_)


def draw(paper: Figure, finding: Finding) -> None:
    """Coefficients along the way from ridge to lasso."""
    axes = paper.subplots()
    ratio, ours, theirs = (finding.data[key] for key in ("ratio", "ours", "theirs"))
    for j in range(ours.shape[1]):
        colour = PALETTE[j % len(PALETTE)]
        axes.plot(ratio, ours[:, j], color=colour)
        axes.plot(ratio[1:], theirs[:, j], "o", color=colour, markersize=5)
    axes.plot(np.zeros(ours.shape[1]), finding.data["ridge"], "s", color=INK, label="ridge, solved")
    axes.plot([], [], "o", color=INK, label="scikit-learn")
    axes.plot([], [], color=INK, label="proximal descent")
    axes.axhline(0, color=INK, linewidth=0.5)
    axes.set(xlabel="share of the L1 penalty", ylabel="coefficient")
    axes.set_title("from ridge (0) to the lasso (1): small coefficients drop out")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="elastic-net",
    title="The elastic net joins lasso and ridge",
    statement=(
        "The penalty α(ρ‖w‖₁ + (1 − ρ)‖w‖²/2) is the lasso at ρ = 1 and ridge at ρ = 0; a proximal "
        "step that thresholds and then divides minimises it for every ρ."
    ),
    formula=(
        r"\min_w \tfrac{1}{2n} \|y - Xw\|^2 + \alpha \Big( \rho \|w\|_1 + "
        r"\tfrac{1 - \rho}{2} \|w\|_2^2 \Big)"
    ),
    sources=("M156",),
    measure=measure,
    reference="Zou and Hastie (2005), Regularization and variable selection via the elastic net.",
    full={"ratios": 21},
    draw=draw,
)
