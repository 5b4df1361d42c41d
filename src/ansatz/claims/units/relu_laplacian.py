"""The second derivatives of a ReLU network vanish, so it cannot be trained on its Laplacian."""

import math

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.networks import MLP


def measure(generator: torch.Generator, *, points: int = 60, units: int = 30) -> Finding:
    """Laplacians by autograd and by differences; then u'' = -sin on [0, π] by collocation."""
    x = torch.randn(points, 2, generator=generator, dtype=torch.float64)
    laplacians = {}
    for name in ("relu", "tanh"):
        network = MLP(2, 1, widths=(16, 16), activation=name, bias=0.1, generator=generator)
        laplacians[name] = laplacian(network.double(), x)
        if name == "relu":
            by_difference, kinks = differences(network, x, 1e-5)
    t = torch.linspace(0, math.pi, 101, dtype=torch.float64)
    source = -t.sin()
    fits = {name: collocate(name, units, t, source, generator) for name in ("relu", "tanh")}
    floor = float(source.square().mean())
    checks = [
        Check(
            "ReLU network: largest |Laplacian| by autograd",
            float(laplacians["relu"].abs().max()),
            0.0,
            0.0,
            "exact: no term has a second derivative",
            wrong=Wrong("tanh", measured=float(laplacians["tanh"].abs().max())),
        ),
        Check(
            f"ReLU network: largest |second difference|, {kinks} points at a kink left out",
            float(by_difference.abs().max()),
            0.0,
            64 * EPS / 1e-10,
            "rounding of values of size 1, over the square of the step",
            wrong=Wrong("tanh", measured=float(laplacians["tanh"].abs().max())),
        ),
        Check(
            "ReLU: mean squared residual of u'' = -sin, over that of u = 0",
            fits["relu"][1] / floor,
            1.0,
            len(t) * EPS,
            "exact: u'' is 0 at every point, up to the rounding of a mean",
            wrong=Wrong("as for tanh", measured=fits["tanh"][1] / floor),
        ),
        Check(
            "tanh: largest |u - sin|, both ends fixed",
            float((fits["tanh"][0] - t.sin()).abs().max()),
            0.0,
            math.pi**2 / 8 * fits["tanh"][2] + fits["tanh"][3],
            "the maximum principle: π²/8 × largest residual, and the errors at the ends",
            wrong=Wrong("ReLU", measured=float((fits["relu"][0] - t.sin()).abs().max())),
        ),
    ]
    rows = [[n, fits[n][1], float((fits[n][0] - t.sin()).abs().max())] for n in fits]
    table = Table(["activation", "mean squared residual", "largest error of u"], rows)
    return Finding(checks, table, {"t": t} | {name: fit[0] for name, fit in fits.items()})


def laplacian(network: MLP, x: Tensor) -> Tensor:
    """The sum of second derivatives at each point, by autograd."""
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    total = torch.zeros(len(x), dtype=x.dtype)
    for i in range(x.shape[1]):
        if first.requires_grad:
            found = torch.autograd.grad(first[:, i].sum(), x, retain_graph=True, allow_unused=True)
            if found[0] is not None:
                total = total + found[0][:, i]
    return total


def differences(network: MLP, x: Tensor, h: float) -> tuple[Tensor, int]:
    """f(x + he) - 2f(x) + f(x - he) over h², where no unit switches between the three points."""
    total, kink = torch.zeros(len(x), dtype=x.dtype), torch.zeros(len(x), dtype=torch.bool)
    with torch.no_grad():
        for e in h * torch.eye(x.shape[1], dtype=x.dtype):
            trio = (x + e, x, x - e)
            patterns = [pattern(network, point) for point in trio]
            kink |= (patterns[0] != patterns[2]).any(1)
            up, middle, down = (network(point)[:, 0] for point in trio)
            total += (up - 2 * middle + down) / h**2
    return total[~kink], int(kink.sum())


def pattern(network: MLP, x: Tensor) -> Tensor:
    """Marks the active hidden units."""
    signs = []
    for layer in network.hidden:
        z = layer(x)
        signs.append(z > 0)
        x = z.relu()
    return torch.cat(signs, 1)


def collocate(
    name: str, units: int, t: Tensor, source: Tensor, generator: torch.Generator
) -> tuple[Tensor, float, float, float]:
    """Least squares in the output weights for u'' = source and u = 0 at both ends.

    Returns u, the mean squared and the largest residual of the equation, the error at the ends.
    """
    w = 2 * torch.randn(units, generator=generator, dtype=torch.float64)
    c = -w * math.pi * torch.rand(units, generator=generator, dtype=torch.float64)
    z = t[:, None] * w + c
    if name == "tanh":
        value = z.tanh()
        second = -2 * value * (1 - value**2) * w**2
    else:
        value, second = z.relu(), torch.zeros_like(z)
    value, second = (
        torch.cat([part, extra], 1)
        for part, extra in (
            (value, torch.stack([torch.ones_like(t), t], 1)),
            (second, torch.zeros(len(t), 2, dtype=t.dtype)),
        )
    )
    ends = 100 * value[[0, -1]]
    design = torch.cat([second, ends])
    wanted = torch.cat([source, torch.zeros(2, dtype=t.dtype)])
    a = torch.linalg.lstsq(design, wanted[:, None], rcond=1e-12, driver="gelsd").solution[:, 0]
    residual = second @ a - source
    u = value @ a
    return (
        u,
        float(residual.square().mean()),
        float(residual.abs().max()),
        float(u[[0, -1]].abs().max()),
    )


def draw(paper: Figure, finding: Finding) -> None:
    """The solutions that both activations find."""
    axes = paper.subplots()
    t = finding.data["t"]
    axes.plot(t[::5], finding.data["tanh"][::5], "o", color=MODEL, label="tanh features")
    axes.plot(t, t.sin(), color=LINEAR, label="true solution")
    axes.plot(t, finding.data["relu"], "--", color=INK, label="ReLU features")
    axes.set(xlabel="t", ylabel="u(t)")
    axes.set_title("u″ = −sin t with u = 0 at both ends: ReLU has no second derivative")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="relu-laplacian",
    title="A ReLU network has no second derivatives",
    statement=(
        "A ReLU network is piecewise linear, so its second derivatives are zero wherever they "
        "exist. Such a network cannot reduce a loss of its own Laplacian: for u'' = -sin the "
        "residual stays that of u = 0, while tanh features solve the equation."
    ),
    formula=(
        r"\Delta f(x) = 0 \text{ almost everywhere}, \qquad "
        r"\min_\theta \int (u_\theta'' + \sin t)^2 dt = \int \sin^2 t \, dt"
    ),
    sources=("M059",),
    measure=measure,
    reference="Raissi, Perdikaris and Karniadakis (2019), Physics-informed neural networks. "
    "https://doi.org/10.1016/j.jcp.2018.10.045",
    full={"points": 2000, "units": 60},
    draw=draw,
)
