"""The inverse after a change of low rank needs only a small inverse."""

import torch
from torch import Tensor
from torch.linalg import matrix_norm

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import LINEAR


def measure(
    generator: torch.Generator,
    *,
    n: int = 40,
    k: int = 3,
    scales: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0),
    instances: int = 20,
) -> Finding:
    """Both sides for random factors, from tiny changes of the identity to large ones."""
    U = torch.randn(len(scales), instances, n, k, generator=generator, dtype=torch.float64)
    V = torch.randn(len(scales), instances, k, n, generator=generator, dtype=torch.float64)
    U = U * torch.tensor(scales, dtype=torch.float64)[:, None, None, None]
    big, small = torch.eye(n, dtype=torch.float64), torch.eye(k, dtype=torch.float64)
    truth = torch.linalg.inv(big + U @ V)
    error, bound, condition = compare(U, V, truth, big, small)
    minus = matrix_norm(big + U @ torch.linalg.inv(small + V @ U) @ V - truth, 2)
    pushed, ridge_bound = push_through(V, generator)
    checks = [
        Check(
            "largest |(I + UV)⁻¹ - I + U (I + VU)⁻¹ V|, over its rounding bound",
            float((error / bound).max()),
            0.0,
            1.0,
            "rounding: n eps times the condition numbers of the two inverses",
            wrong=Wrong("plus U (I + VU)⁻¹ V", measured=float((minus / bound).max())),
        ),
        Check(
            "ridge weights from the n rows or the k columns: difference over its bound",
            float((pushed / ridge_bound).max()),
            0.0,
            1.0,
            "rounding: n eps times the condition numbers",
        ),
    ]
    data = {"error": error / matrix_norm(truth, 2), "condition": condition, "n": n}
    rows = [
        [s, float(c.median()), float(e.max())]
        for s, c, e in zip(scales, condition, data["error"], strict=True)
    ]
    return Finding(checks, Table(["scale of U", "condition", "largest error"], rows), data)


def compare(
    U: Tensor, V: Tensor, truth: Tensor, big: Tensor, small: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Norm of the difference of the two sides, a bound on its rounding, and the condition."""
    inner = torch.linalg.inv(small + V @ U)
    error = matrix_norm(big - U @ inner @ V - truth, 2)
    outer_condition = torch.linalg.cond(big + U @ V)
    inner_condition = torch.linalg.cond(small + V @ U)
    terms = matrix_norm(U, 2) * matrix_norm(inner, 2) * matrix_norm(V, 2) * inner_condition
    n = U.shape[-2]
    bound = n * EPS * (matrix_norm(truth, 2) * outer_condition + 1 + terms)
    return error, bound, outer_condition


def push_through(X: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Xᵀ(XXᵀ + cI)⁻¹ = (XᵀX + cI)⁻¹Xᵀ for X (k, n): the dual and primal form of ridge."""
    k, n = X.shape[-2:]
    c = torch.rand(X.shape[:-2], generator=generator, dtype=torch.float64)[..., None, None] + 0.5
    rows = X @ X.mT + c * torch.eye(k, dtype=torch.float64)
    columns = X.mT @ X + c * torch.eye(n, dtype=torch.float64)
    dual = torch.linalg.solve(rows, X).mT
    primal = torch.linalg.solve(columns, X.mT)
    bound = n * EPS * matrix_norm(dual, 2) * (torch.linalg.cond(rows) + torch.linalg.cond(columns))
    return matrix_norm(dual - primal, 2), bound


def draw(paper: Figure, finding: Finding) -> None:
    """The difference of the two sides grows as the condition number does, and no faster."""
    axes = paper.subplots()
    condition, error = finding.data["condition"].flatten(), finding.data["error"].flatten()
    axes.plot(condition, error, "o", alpha=0.5, label="measured")
    ends = torch.tensor([float(condition.min()), float(condition.max())])
    axes.plot(ends, finding.data["n"] * EPS * ends, color=LINEAR, label="n × condition × eps")
    axes.set(xlabel="condition number of I + UV")
    axes.set(ylabel="relative difference")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("both sides of Woodbury's identity agree to rounding")
    axes.legend(loc="upper left")


claim = Claim(
    id="woodbury",
    title="Woodbury's identity",
    statement=(
        "The inverse of the identity plus a product UV of rank k needs only the inverse of a "
        "k by k matrix. Its push-through form is why ridge regression can be solved in the rows "
        "or in the columns."
    ),
    formula=r"(I_n + U V)^{-1} = I_n - U (I_k + V U)^{-1} V",
    sources=("M024",),
    measure=measure,
    reference="Hager (1989), Updating the inverse of a matrix. https://doi.org/10.1137/1031049",
    full={"n": 200, "k": 10, "instances": 20},
    draw=draw,
)
