"""A linearised network trained to the end predicts its start plus a kernel regression."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.networks import MLP


def measure(generator: torch.Generator, *, rows: int = 5, width: int = 32) -> Finding:
    """The kernel formula beside the least-norm step of the linearised weights."""
    network = random_network(generator, width)
    x = torch.linspace(-2, 2, rows, dtype=torch.float64)[:, None]
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    new = torch.linspace(-2.5, 2.5, 101, dtype=torch.float64)[:, None]
    start, start_new = network(x).squeeze(1).detach(), network(new).squeeze(1).detach()
    J, J_new = jacobian(network, x), jacobian(network, new)
    K, k = J @ J.T, J_new @ J.T
    step = torch.linalg.pinv(J) @ (y - start)  # where gradient descent from the start ends
    trained = start_new + J_new @ step
    regression = k @ torch.linalg.solve(K, y - start)
    fitted = start + K @ torch.linalg.solve(K, y - start)
    weak = K @ torch.linalg.solve(K, y - start)
    condition = float(torch.linalg.cond(K))
    size = float((y - start).abs().max())
    ratio, cubic = curvature(network, x, J, generator)
    rounding = 16 * rows * 2.0**-52 * condition * size
    because = "rounding: 16 n eps times the condition number of the kernel"
    checks = [
        Check(
            "largest error of the prediction at the training rows",
            float((fitted - y).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("without f₀(x)", measured=float((weak - y).abs().max()), erratum="E21"),
        ),
        Check(
            "largest difference from the trained linearised network, on a grid",
            float((start_new + regression - trained).abs().max()),
            0.0,
            rounding * float(k.abs().max() / K.abs().min().clamp(min=1.0)) * rows,
            f"{because}, summed over the rows",
            wrong=Wrong(
                "without f₀(x)",
                measured=float((regression - trained).abs().max()),
                erratum="E21",
            ),
        ),
        Check(
            "error of the linearisation over that at half the step",
            ratio,
            4.0,
            4 * cubic,
            "the third order's share of the error, measured at twice the step, where it is double",
            wrong=Wrong("an error of the first order", predicted=2.0),
        ),
        Check(
            "smallest eigenvalue of the kernel",
            float(torch.linalg.eigvalsh(K)[0]),
            0.0,
            rows * 2.0**-52 * float(K.norm()),
            "rounding: n eps times the norm",
            ">=",
        ),
    ]
    data = {"x": x, "y": y, "new": new, "right": start_new + regression, "printed": regression}
    data |= {"trained": trained, "start": start_new}
    return Finding(checks, data={name: value.squeeze().numpy() for name, value in data.items()})


def random_network(generator: torch.Generator, width: int) -> nn.Module:
    """The library's MLP in float64."""
    network = MLP(
        1,
        1,
        widths=(width, width),
        activation="tanh",
        init="glorot_normal",
        output_scale=1.0,
        generator=generator,
    )
    return network.double()


def jacobian(network: nn.Module, x: Tensor) -> Tensor:
    """The gradient of each output in all weights, ``(B, W)``."""
    weights = list(network.parameters())
    rows = [torch.autograd.grad(out, weights, retain_graph=True) for out in network(x).squeeze(1)]
    return torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])


def curvature(
    network: nn.Module, x: Tensor, J: Tensor, generator: torch.Generator
) -> tuple[float, float]:
    """The ratio of |r| at h and h/2, r = f(θ + hv) - f(θ) - h J v, and what is not h² of r(2h)."""
    weights = torch.nn.utils.parameters_to_vector(network.parameters()).detach()
    v = torch.randn(len(weights), generator=generator, dtype=torch.float64) * weights.std()
    remainders = []
    with torch.no_grad():
        start = network(x).squeeze(1)
        for h in (2.0**-6, 2.0**-7, 2.0**-8):
            torch.nn.utils.vector_to_parameters(weights + h * v, network.parameters())
            remainders.append(network(x).squeeze(1) - start - h * J @ v)
        torch.nn.utils.vector_to_parameters(weights, network.parameters())
    wide, middle, close = remainders
    cubic = (wide - 4 * middle).norm() / wide.norm()
    return float(middle.norm() / close.norm()), float(cubic)


def draw(paper: Figure, finding: Finding) -> None:
    """Both predictions through the data."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["new"], data["start"], color=INK, lw=0.8, ls=":", label="before training, f₀")
    axes.plot(data["new"], data["right"], color=MODEL, label="f₀ + kᵀK⁻¹(y - f₀)")
    axes.plot(
        data["new"], data["printed"], "--", color=LINEAR, lw=1, label="printed: kᵀK⁻¹(y - f₀)"
    )
    axes.plot(data["new"][::4], data["trained"][::4], ".", color=MODEL, ms=5, label="trained")
    axes.plot(data["x"], data["y"], "o", color=INK, ms=6, label="training data")
    axes.set(xlabel="x", ylabel="prediction")
    axes.set_title("the kernel predicts the change; the start must be added to meet the data")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="ntk-prediction",
    title="The prediction of a linearised network after training",
    statement=(
        "A network that is linearised in its weights and trained on squared errors to the end "
        "predicts f₀(x) + k(x)ᵀK⁻¹(y - f₀), which interpolates the data. A common slip leaves out "
        "f₀(x), and the curve misses the data."
    ),
    formula=(
        r"f_\infty(x) = f_0(x) + k(x)^\top K^{-1} (y - f_0(X)), \qquad "
        r"k(x, x') = \langle \nabla_\theta f_0(x), \nabla_\theta f_0(x') \rangle"
    ),
    sources=("E21", "M328", "M329", "M330"),
    measure=measure,
    reference=(
        "Jacot, Gabriel and Hongler (2018), Neural tangent kernel: convergence and generalization "
        "in neural networks. https://arxiv.org/abs/1806.07572"
    ),
    full={"width": 100},
    errata=(Erratum("E21", "kᵀK⁻¹(y - f)", "f₀(x) + kᵀK⁻¹(y - f₀)"),),
    draw=draw,
)
