"""Least squares with the rows of data in columns."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.likelihoods import MSE
from ansatz.linear import fit_linear


def measure(generator: torch.Generator, *, d: int = 4, samples: int = 30) -> Finding:
    """The closed forms against autograd and the library's own linear fit."""
    X = torch.randn(d, samples, generator=generator, dtype=torch.float64)
    X = X - X.mean(1, keepdim=True)  # then the intercept of the fit is the mean of y alone
    y = X.T @ torch.ones(d, dtype=torch.float64)
    y = y + torch.randn(samples, generator=generator, dtype=torch.float64)
    y = y - y.mean()
    w = torch.linalg.solve(X @ X.T, X @ y)
    fitted = fit_linear(MSE(), X.T, y, null=False).coefficients[1:, 0]
    condition = float(torch.linalg.cond(X @ X.T))
    # As many examples as features: the only shape in which the printed formula can be computed.
    S = torch.randn(d, d, generator=generator, dtype=torch.float64)
    t = torch.randn(d, generator=generator, dtype=torch.float64)
    right, printed = torch.linalg.solve(S @ S.T, S @ t), torch.linalg.solve(S.T @ S, S.T @ t)
    checks = [
        Check(
            f"shapes of the closed form that do not fit, X {d} × {samples}",
            misfits(X, y, transposed=False),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "(XᵀX)⁻¹Xᵀy for X with examples in columns",
                measured=misfits(X, y, transposed=True),
                erratum="E33",
            ),
        ),
        Check(
            "length of the loss's gradient at the closed form",
            float(gradient(X, w, y).norm()),
            0.0,
            samples * EPS * float(torch.linalg.matrix_norm(X, 2) ** 2 * w.norm()) * condition,
            "rounding: samples × eps × |X|² |w| × condition",
            wrong=Wrong("half of the weights", measured=float(gradient(X, w / 2, y).norm())),
        ),
        Check(
            "loss |Xᵀw - y|² for square X, which has an exact solution",
            float((S.T @ right - t).square().sum()),
            0.0,
            (d * EPS * float(torch.linalg.cond(S)) ** 2 * float(t.norm())) ** 2,
            "rounding: squares of d eps × condition of X Xᵀ × |y|",
            wrong=Wrong(
                "(XᵀX)⁻¹Xᵀy, which solves Xw = y",
                measured=float((S.T @ printed - t).square().sum()),
            ),
        ),
        Check(
            "largest difference to the library's linear fit",
            float((w - fitted).abs().max()),
            0.0,
            1e-8 * condition,
            "the fit stops at a scaled gradient of 1e-8, times the condition",
        ),
    ]
    rows = [[i, *map(float, pair)] for i, pair in enumerate(zip(w, fitted, strict=True))]
    table = Table(["weight", "closed form", "fit"], rows)
    return Finding(checks, table, path(X, w, y))


def misfits(X: Tensor, y: Tensor, *, transposed: bool) -> int:
    """1 if torch refuses the product of the closed form, 0 if its shapes fit."""
    A = X.T if transposed else X
    try:
        A @ A.T @ torch.zeros(len(A), dtype=X.dtype) + A @ y
    except RuntimeError:
        return 1
    return 0


def gradient(X: Tensor, w: Tensor, y: Tensor) -> Tensor:
    """Of the loss at w, by autograd."""
    w = w.clone().requires_grad_()
    (found,) = torch.autograd.grad((X.T @ w - y).square().sum(), w)
    return found


def path(X: Tensor, w: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The loss of gradient descent from zero, and of the closed form."""
    rate = 0.05 / torch.linalg.matrix_norm(X, 2) ** 2
    v, losses = torch.zeros_like(w), []
    for _ in range(40):
        losses.append((X.T @ v - y).square().mean())
        v = v - rate * gradient(X, v, y)
    return {"descent": torch.stack(losses), "closed": (X.T @ w - y).square().mean()}


def draw(paper: Figure, finding: Finding) -> None:
    """Gradient descent arrives at the loss of the closed form."""
    axes = paper.subplots()
    descent = finding.data["descent"]
    axes.plot(range(len(descent)), descent, "o", color=MODEL, label="linear network, trained")
    closed = float(finding.data["closed"])
    axes.axhline(closed, color=LINEAR, label="w = (XXᵀ)⁻¹Xy")
    axes.axhline(float(descent[0]), color=INK, ls="--", lw=0.8, label="w = 0")
    axes.set(xlabel="step of gradient descent", ylabel="mean squared error")
    axes.set_title("with examples in columns, training ends at (XXᵀ)⁻¹Xy")
    axes.legend(loc="center right")


claim = Claim(
    id="least-squares-orientation",
    title="Least squares, with examples in the columns of X",
    statement=(
        "For the loss |Xᵀw − y|², whose X has one column per example, the best weights are "
        "(XXᵀ)⁻¹Xy. A common slip is (XᵀX)⁻¹Xᵀy, which belongs to |Xw − y|²: its shapes do not "
        "fit, and where X is square it solves another equation."
    ),
    formula=(
        r"\arg\min_w \|X^\top w - y\|^2 = (X X^\top)^{-1} X y, "
        r"\qquad X \in \mathbb{R}^{d \times s}"
    ),
    sources=("M095", "E33"),
    measure=measure,
    reference=(
        "Hastie, Tibshirani and Friedman (2009), The Elements of Statistical Learning, section 3.2."
    ),
    full={"d": 20, "samples": 500},
    errata=(Erratum("E33", "w* = (XᵀX)⁻¹Xᵀy for ‖Xᵀw − y‖²", "w* = (XXᵀ)⁻¹Xy"),),
    draw=draw,
)
