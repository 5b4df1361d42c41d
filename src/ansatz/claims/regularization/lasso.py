"""The lasso on an orthogonal design is the soft threshold."""

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD
from ansatz.optim import ProximalSGD
from ansatz.training.penalties import L1


def measure(
    generator: torch.Generator, *, rows: int = 64, columns: int = 12, strength: float = 0.5
) -> Finding:
    """Proximal descent and scikit-learn's coordinate descent against the formula."""
    x, _ = torch.linalg.qr(torch.randn(rows, columns, generator=generator, dtype=torch.float64))
    x = x * rows**0.5  # XᵀX / n = I
    truth = torch.linspace(-1.5, 1.5, columns, dtype=torch.float64)
    y = x @ truth + 0.3 * torch.randn(rows, generator=generator, dtype=torch.float64)
    plain = x.T @ y / rows  # least squares
    threshold = plain.sign() * (plain.abs() - strength).clamp(min=0)
    steps = 60  # half the distance is left by each
    ours = descend(x, y, strength, steps)
    theirs = reference(x, y, strength)
    away = descend(x, y, strength, steps, proximal=False)
    left = float(plain.norm()) * 0.5**steps + 64 * EPS * float(plain.norm())
    zeros = int((threshold == 0).sum())
    shrunk = float((ours - plain / (1 + strength)).abs().max())
    checks = [
        Check(
            "largest distance of proximal descent from the soft threshold",
            float((ours - threshold).abs().max()),
            0.0,
            left,
            "half the distance is left by each of 60 steps, and rounding: 64 eps",
            wrong=Wrong("ridge's shrinkage b / (1 + α)", measured=shrunk),
        ),
        Check(
            "the same of scikit-learn's Lasso",
            float((theirs - threshold).abs().max()),
            0.0,
            64 * EPS * float(plain.norm()) * columns,
            "rounding: one sweep of its coordinate descent solves an orthogonal design",
        ),
        Check(
            "coefficients that are exactly zero",
            float((ours == 0).sum()),
            zeros,
            0,
            "whole numbers",
            wrong=Wrong("descent along the gradient of |w|", measured=float((away == 0).sum())),
        ),
    ]
    table = Table(
        ["least squares", "soft threshold", "proximal descent", "scikit-learn"],
        [list(map(float, row)) for row in zip(plain, threshold, ours, theirs, strict=True)],
    )
    data = {"plain": plain.numpy(), "ours": ours.numpy(), "α": strength, "theirs": theirs.numpy()}
    return Finding(checks, table, data)


def descend(x: Tensor, y: Tensor, strength: float, steps: int, *, proximal: bool = True) -> Tensor:
    """Coefficients after ``steps`` of rate ½ on half the mean squared error."""
    network = nn.Linear(x.shape[1], 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(network.weight)
    penalty = L1(strength)
    rule: torch.optim.Optimizer = (
        ProximalSGD(network.parameters(), lr=0.5, l1=strength)
        if proximal
        else torch.optim.SGD(network.parameters(), lr=0.5)
    )
    for _ in range(steps):
        rule.zero_grad()
        loss = 0.5 * (network(x).squeeze(-1) - y).square().mean()
        (loss if proximal else loss + penalty(network)).backward()
        rule.step()
    return network.weight.detach()[0].clone()


def reference(x: Tensor, y: Tensor, strength: float) -> Tensor:
    """Scikit-learn's lasso."""
    from sklearn.linear_model import Lasso

    model = Lasso(alpha=strength, fit_intercept=False, tol=1e-15).fit(x.numpy(), y.numpy())
    return torch.as_tensor(model.coef_)


def draw(paper: Figure, finding: Finding) -> None:
    """Penalised coefficients against least squares."""
    axes = paper.subplots()
    plain, alpha = finding.data["plain"], finding.data["α"]
    line = np.linspace(plain.min() - 0.1, plain.max() + 0.1, 401)
    soft = np.sign(line) * np.maximum(np.abs(line) - alpha, 0)
    axes.plot(line, line, ":", color=INK, linewidth=0.9, label="no penalty")
    axes.plot(line, soft, color=INK, label="soft threshold")
    axes.plot(line, line / (1 + alpha), "--", color=LINEAR, linewidth=0.9, label="ridge")
    axes.plot(
        plain,
        finding.data["theirs"],
        "s",
        color=THIRD,
        markersize=7,
        fillstyle="none",
        label="scikit-learn",
    )
    axes.plot(plain, finding.data["ours"], "o", color=MODEL, markersize=4, label="proximal descent")
    axes.set(xlabel="coefficient of least squares", ylabel="coefficient of the lasso")
    axes.set_title(f"the lasso subtracts α = {alpha}, and smaller ones become zero")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="lasso",
    title="The lasso is a soft threshold",
    statement=(
        "With orthogonal columns the L1 penalty moves every coefficient of least squares towards "
        "zero by α, and those within α of zero are exactly zero. Ridge divides them instead, and "
        "plain descent along the gradient of |w| never lands on zero."
    ),
    formula=(
        r"\arg\min_w \tfrac{1}{2n} \|y - Xw\|^2 + \alpha \|w\|_1 = \mathrm{sign}(b) "
        r"\max(|b| - \alpha, 0), \qquad X^\top X = n I, \quad b = \tfrac1n X^\top y"
    ),
    sources=("M155",),
    measure=measure,
    reference="Tibshirani (1996), Regression shrinkage and selection via the lasso, section 2.2.",
    full={"rows": 1000, "columns": 60},
    draw=draw,
)
