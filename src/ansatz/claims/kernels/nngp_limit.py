"""Random networks tend to a Gaussian process whose covariance is a recursion."""

import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.kernels import twin
from ansatz.networks import MLP


def measure(generator: torch.Generator, *, width: int = 128, draws: int = 300) -> Finding:
    """Products of the outputs of random networks beside the kernel of their twin."""
    x = torch.randn(3, 4, generator=generator)
    outputs = []
    for _ in range(draws):
        network = MLP(
            4, 1, widths=(width, width), activation="relu", output_scale=1.0, generator=generator
        )
        with torch.no_grad():
            outputs.append(network(x)[:, 0].double())
    kernel = twin(network).nngp(x)
    samples = torch.stack(outputs)
    products = samples[:, :, None] * samples[:, None]
    error = products.std(0) / draws**0.5
    # Corrections at finite width are of the order 1 / width, once for each layer.
    slack = 2 * kernel.diagonal().max() / width

    def apart(k: torch.Tensor) -> float:
        return float((((products.mean(0) - k).abs() - slack).clamp(min=0) / error).max())

    checks = [
        Check(
            "largest deviation of the covariance from the recursion, in standard errors",
            apart(kernel),
            0.0,
            4.5,
            f"standard errors over {draws} networks, beyond 2 / width of the variance",
            wrong=Wrong(
                "the variance of the weights left out, 1 for 2", measured=apart(kernel / 8)
            ),
        )
    ]
    rows = [
        [i, j, float(products.mean(0)[i, j]), float(kernel[i, j])]
        for i in range(3)
        for j in range(i)
    ]
    return Finding(checks, Table(["row", "other", "measured", "recursion"], rows))


claim = Claim(
    id="nngp-limit",
    title="Wide random networks are Gaussian processes",
    statement=(
        "As layers widen, the outputs of a network with random weights become normal with the "
        "covariance of a recursion over layers. A common slip leaves out the variances of weights "
        "and biases."
    ),
    formula=(
        r"\Sigma^{\ell+1}(x, x') = \sigma_b^2 + \sigma_w^2\, \mathrm{E}\, \phi(u) \phi(u'), \quad "
        r"(u, u') \sim \mathcal{N}(0, \Sigma^\ell)"
    ),
    sources=("M335",),
    measure=measure,
    reference=(
        "Lee et al. (2018), Deep neural networks as Gaussian processes. "
        "https://arxiv.org/abs/1711.00165"
    ),
    full={"width": 512, "draws": 3_000},
)
