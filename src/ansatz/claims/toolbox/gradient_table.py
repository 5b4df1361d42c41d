"""The table of derivatives, each entry against a step into the complex plane."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL

Array = NDArray[np.float64]
STEP = 1e-30  # the square of it is far below rounding, and nothing is subtracted


class Entry(NamedTuple):
    """One line of the table."""

    name: str
    function: Callable[..., NDArray]  # of a real or complex vector
    jacobian: Callable[[Array], Array]  # as the table has it, (outputs, inputs)
    torch_function: Callable[[torch.Tensor], torch.Tensor]


def measure(generator: torch.Generator, *, instances: int = 10, d: int = 5) -> Finding:
    """The largest relative error of every entry over random points and matrices."""
    worst: dict[str, list[float]] = {}
    for _ in range(instances):
        rng = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
        x = rng.normal(size=d)
        for entry in entries(rng, d):
            true, table = by_complex_step(entry.function, x), entry.jacobian(x)
            auto = by_autograd(entry.torch_function, x)
            errors = [abs(table - true).max(), abs(auto - true).max()]
            largest = worst.setdefault(entry.name, [0.0, 0.0])
            for i, error in enumerate(errors):
                largest[i] = max(largest[i], float(error / abs(true).max()) / EPS)
    z = np.linspace(-3, 3, 61)
    slope = by_complex_step(np.tanh, z).diagonal()
    # A sum of d products and its factors; quotients and exponentials of the softmax cancel in
    # 1 - tanh² and z - z², by at most 1/(1 - max z) here, which the square of d covers.
    rounding = 8 * d**2
    checks = [
        Check(
            f"largest relative error of the {len(worst)} entries, in units of eps",
            max(error for error, _ in worst.values()),
            0.0,
            rounding,
            f"8 d² roundings of sums over d = {d} with their cancellation",
            wrong=Wrong("the gradient of xᵀAx without Aᵀ", measured=one_sided(generator, d) / EPS),
        ),
        Check(
            "the same for torch's reverse mode",
            max(error for _, error in worst.values()),
            0.0,
            rounding,
            f"8 d² roundings of sums over d = {d} with their cancellation",
        ),
        Check(
            "largest |tanh'(z) - (1 - tanh² z)| for |z| <= 3",
            float(abs(slope - (1 - np.tanh(z) ** 2)).max()),
            0.0,
            4 * EPS,
            "tanh, its square and the difference round by eps at most",
            wrong=Wrong(
                "tanh'(z) = 1 - z²",
                measured=float(abs(slope - (1 - z**2)).max()),
                erratum="E27",
            ),
        ),
    ]
    rows = [[name, *errors] for name, errors in worst.items()]
    head = ["derivative of", "error of the table (eps)", "error of autograd (eps)"]
    return Finding(checks, Table(head, rows), {"z": z, "slope": slope})


def entries(rng: np.random.Generator, d: int) -> list[Entry]:
    """The table for random vectors and matrices."""
    a, A, W = rng.normal(size=d), rng.normal(size=(d, d)), rng.normal(size=(3, d))
    ta, tA, tW = torch.from_numpy(a), torch.from_numpy(A), torch.from_numpy(W)
    return [
        Entry("aᵀx", lambda x: a @ x, lambda x: a[None], lambda x: ta @ x),
        Entry("Wx", lambda x: W @ x, lambda x: W, lambda x: tW @ x),
        Entry("xᵀAx", lambda x: x @ A @ x, lambda x: ((A + A.T) @ x)[None], lambda x: x @ tA @ x),
        Entry(
            "½|Ax|²",
            lambda x: (A @ x) @ (A @ x) / 2,
            lambda x: (A.T @ A @ x)[None],
            lambda x: (tA @ x).square().sum() / 2,
        ),
        Entry(
            "softmax",
            softmax,
            lambda x: np.diag(softmax(x)) - np.outer(softmax(x), softmax(x)),
            lambda x: x.softmax(-1),
        ),
        Entry(
            "log-sum-exp",
            lambda x: np.log(np.exp(x).sum()),
            lambda x: softmax(x)[None],
            lambda x: x.logsumexp(-1),
        ),
        Entry("sigmoid", sigmoid, lambda x: np.diag(sigmoid(x) * (1 - sigmoid(x))), torch.sigmoid),
        Entry("tanh", np.tanh, lambda x: np.diag(1 - np.tanh(x) ** 2), torch.tanh),
        Entry(
            "sin x / (2 + cos x)",
            lambda x: np.sin(x) / (2 + np.cos(x)),
            lambda x: np.diag(quotient(np.sin(x), np.cos(x), 2 + np.cos(x), -np.sin(x))),
            lambda x: x.sin() / (2 + x.cos()),
        ),
    ]


def quotient(f: Array, df: Array, g: Array, dg: Array) -> Array:
    """(f/g)' = (f' g - f g') / g²."""
    return (df * g - f * dg) / g**2


def softmax(x: NDArray) -> NDArray:
    """Of real or complex numbers."""
    e = np.exp(x)
    return e / e.sum()


def sigmoid(x: NDArray) -> NDArray:
    """Of real or complex numbers."""
    return 1 / (1 + np.exp(-x))


def by_complex_step(function: Callable[..., NDArray], x: Array) -> Array:
    """The Jacobian: Im f(x + i h e_j) / h has an error of h², and no cancellation."""
    columns = [
        np.atleast_1d(np.imag(function(x + 1j * STEP * unit))) / STEP for unit in np.eye(len(x))
    ]
    return np.stack(columns, 1)


def by_autograd(function: Callable[[torch.Tensor], torch.Tensor], x: Array) -> Array:
    """The Jacobian, one reverse pass per output."""
    point = torch.from_numpy(x).requires_grad_()
    outputs = torch.atleast_1d(function(point))
    rows = [torch.autograd.grad(y, point, retain_graph=True)[0] for y in outputs]
    return torch.stack(rows).numpy()


def one_sided(generator: torch.Generator, d: int) -> float:
    """The relative error of Ax as the gradient of xᵀAx."""
    A, x = (
        torch.randn(*s, generator=generator, dtype=torch.float64).numpy() for s in ((d, d), (d,))
    )
    true = by_complex_step(lambda x: x @ A @ x, x)[0]
    return float(abs(A @ x - true).max() / abs(true).max())


def draw(paper: Figure, finding: Finding) -> None:
    """The slope of tanh, right and as printed."""
    axes = paper.subplots()
    z, slope = finding.data["z"], finding.data["slope"]
    axes.plot(z[::3], slope[::3], "o", color=MODEL, label="slope, by a complex step")
    axes.plot(z, 1 - np.tanh(z) ** 2, color=LINEAR, label="1 − tanh² z")
    axes.plot(z, 1 - z**2, "--", color=INK, lw=0.8, label="1 − z², a common slip")
    axes.set(xlabel="z", ylabel="tanh′(z)", ylim=(-1.1, 1.15))
    axes.set_title("the slope of tanh is 1 − tanh² z, which never is negative")
    axes.legend(loc="lower center")


claim = Claim(
    id="gradient-table",
    title="The table of gradients",
    statement=(
        "The table has the derivatives of linear and quadratic forms, of softmax, log-sum-exp, "
        "sigmoid and tanh, and of a quotient. The slope of tanh at z is one minus the square of "
        "tanh z; one minus the square of z is a common slip."
    ),
    formula=(
        r"\nabla (x^\top A x) = (A + A^\top) x, \quad \nabla \tfrac12 \|Ax\|^2 = A^\top A x, \quad "
        r"\frac{\partial \,\mathrm{softmax}}{\partial x} = \mathrm{diag}(z) - z z^\top, \quad "
        r"\sigma' = \sigma (1 - \sigma), \quad \tanh' = 1 - \tanh^2"
    ),
    sources=("M026", "E27"),
    measure=measure,
    reference="Petersen and Pedersen (2012), The Matrix Cookbook, chapter 2.",
    full={"instances": 200, "d": 12},
    errata=(Erratum("E27", "tanh′(z) = 1 − z²", "tanh′(z) = 1 − tanh² z"),),
    draw=draw,
)
