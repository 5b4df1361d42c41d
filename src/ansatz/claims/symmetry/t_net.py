"""A learned transform with an orthogonality penalty is nearly rigid, never exactly."""

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure

TASK = (1.6, 1.0, 0.7)  # the stretch that a task would like


def measure(
    generator: torch.Generator, *, penalties: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
) -> Finding:
    """Trains the 3 x 3 transform against a task that wants to stretch, for several penalties."""
    Q, _ = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))
    goal = Q @ torch.diag(torch.tensor(TASK, dtype=torch.float64)) @ Q.T
    points = torch.randn(10, 3, generator=generator, dtype=torch.float64)
    measured, predicted, bend, left = [], [], [], []
    for penalty in penalties:
        A, slope = train(goal, penalty)
        left.append(slope)
        measured.append(float(torch.linalg.svdvals(A)[0]))
        predicted.append(stretch(TASK[0], penalty))
        bend.append(distortion(A, points))
    errors = np.abs(np.array(measured) - np.array(predicted))
    start = transform(torch.zeros(9, 5, dtype=torch.float64), points)
    because = "the slope left at the end, over a curvature 1 + 4λ(a² - 1) = b / a above 1/2"
    checks = [
        Check(
            f"largest singular value at the penalty {penalties[-1]:g}",
            measured[-1],
            predicted[-1],
            2 * left[-1] + 64 * 2.0**-52,
            because,
            wrong=Wrong("rigid: all singular values 1", predicted=1.0, erratum="E59"),
        ),
        Check(
            "largest error of the predicted singular value over penalties",
            float(errors.max()),
            0.0,
            2 * max(left) + 64 * 2.0**-52,
            because,
        ),
        Check(
            "largest relative change of a distance between points",
            bend[0],
            TASK[0] - 1,
            0.0,
            "at most the stretch that the task wants",
            "<=",
            Wrong("rigid: no distance changes", predicted=0.0, erratum="E59"),
        ),
        Check(
            "penalty times the remaining stretch, in the limit",
            penalties[-1] * (measured[-1] - 1),
            (TASK[0] - 1) / 8,
            5 * (TASK[0] - 1) ** 2 / (8 * penalties[-1]),
            "the next order in 1/penalty of the root of a - b + 4λ a (a² - 1)",
            wrong=Wrong("nothing is left", measured=0.0, erratum="E59"),
        ),
        Check(
            "largest |T - I| of an untrained transform, last layer zero",
            float((start - torch.eye(3, dtype=torch.float64)).abs().max()),
            0.0,
            0.0,
            "zero weights add nothing",
        ),
    ]
    V = torch.randn(9, 5, generator=generator, dtype=torch.float64)
    order = torch.randperm(len(points), generator=generator)
    checks.append(
        Check(
            "largest change of the transform under a new order of the points",
            float((transform(V, points[order]) - transform(V, points)).abs().max()),
            0.0,
            0.0,
            "a maximum does not depend on the order",
            wrong=Wrong(
                "other points", measured=float((transform(V, -2 * points) - transform(V, points))
                                               .abs().max()),
            ),
        )
    )  # fmt: skip
    table = Table(["penalty", "largest singular value", "predicted", "largest distortion"], [
        list(row) for row in zip(penalties, measured, predicted, bend, strict=True)
    ])  # fmt: skip
    return Finding(checks, table, {"penalties": penalties, "measured": measured})


def train(goal: Tensor, penalty: float) -> tuple[Tensor, float]:
    """Minimises ½‖A - goal‖² + penalty ‖AAᵀ - I‖² from the identity; A and the slope left."""
    one = torch.eye(3, dtype=torch.float64)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        A = torch.as_tensor(flat).reshape(3, 3).clone().requires_grad_()
        value = ((A - goal) ** 2).sum() / 2 + penalty * ((A @ A.T - one) ** 2).sum()
        (slope,) = torch.autograd.grad(value, A)
        return float(value.detach()), slope.numpy().ravel()

    found = minimize(loss, one.numpy().ravel(), jac=True, method="BFGS", options={"gtol": 1e-8})
    return torch.as_tensor(found.x).reshape(3, 3), float(np.linalg.norm(found.jac))


def stretch(b: float, penalty: float) -> float:
    """The singular value a that the optimum has: the real root of a - b + 4 λ a (a² - 1) near 1."""
    roots = np.roots([4 * penalty, 0, 1 - 4 * penalty, -b])
    return float(roots[np.abs(roots.imag) < 1e-9].real.max())


def transform(V: Tensor, points: Tensor) -> Tensor:
    """A small T-Net: I plus a linear map of the features' maximum over the points."""
    mixing = torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(3, 5)
    features = torch.tanh(points @ mixing).amax(0)
    return torch.eye(3, dtype=torch.float64) + (V @ features).reshape(3, 3)


def distortion(A: Tensor, points: Tensor) -> float:
    """The largest relative change of a distance; a rigid map has 0."""
    before, after = torch.pdist(points), torch.pdist(points @ A.T)
    return float((after / before - 1).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The remaining stretch over the penalty."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    fine = np.geomspace(data["penalties"][0], data["penalties"][-1], 60)
    axes.semilogx(fine, [stretch(TASK[0], p) for p in fine], color=MODEL, label="root of a cubic")
    axes.plot(data["penalties"], data["measured"], "o", color=INK, ms=5, label="trained")
    axes.axhline(1, color=LINEAR, lw=1, ls="--", label="rigid, as printed")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="weight of the orthogonality penalty", ylabel="largest singular value")
    axes.set_title("a T-Net's penalty pulls towards rotations and never arrives")
    axes.legend()


claim = Claim(
    id="t-net",
    title="A T-Net is nearly orthogonal, not rigid",
    statement=(
        "The transform that a T-Net learns is a linear map, the identity at first, that a penalty "
        "‖AAᵀ - I‖² pulls towards orthogonal ones: a stretch that the task demands remains, by the "
        "order of 1/penalty. It is often called rigid."
    ),
    formula=(
        r"\min_A \tfrac12 \|A - B\|^2 + \lambda \|A A^\top - I\|^2 \;\Rightarrow\; "
        r"a - b + 4 \lambda a (a^2 - 1) = 0, \quad a - 1 \sim \frac{b - 1}{8 \lambda}"
    ),
    sources=("E59", "M287", "M289"),
    measure=measure,
    reference="Qi et al. (2017), PointNet, eq. 2. https://arxiv.org/abs/1612.00593",
    full={"penalties": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)},
    errata=(
        Erratum(
            "E59",
            "T-Net: a rigid transform",
            "a learned linear map with an orthogonality penalty",
        ),
    ),
    draw=draw,
)
