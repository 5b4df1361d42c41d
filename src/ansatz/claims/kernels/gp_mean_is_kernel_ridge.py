"""The mean of a Gaussian process is kernel ridge regression."""

import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.kernels import RBF, Polynomial, condition


def measure(generator: torch.Generator, *, rows: int = 12) -> Finding:
    """The mean beside ridge regression on the kernel's own features, and without noise."""
    noise = 0.3
    x = torch.randn(rows, 1, generator=generator, dtype=torch.float64)
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    new = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]

    def features(z: torch.Tensor) -> torch.Tensor:  # of (x x' + 1)^2
        return torch.cat([torch.ones_like(z), 2**0.5 * z, z**2], 1)

    phi = features(x)
    normal = phi.mT @ phi + noise * torch.eye(3, dtype=torch.float64)
    ridge = features(new) @ torch.linalg.solve(normal, phi.mT @ y)
    mean, _ = condition(Polynomial(degree=2), noise, x, y).predict(new)
    least = features(new) @ torch.linalg.lstsq(phi, y[:, None]).solution.squeeze(1)
    kernel = RBF(length=0.5)
    through, _ = condition(kernel, 0.0, x, y).predict(x)
    around, _ = condition(kernel, noise, x, y).predict(x)
    size = float(y.abs().max())
    rounding = 64 * rows * 2.0**-52 * float(torch.linalg.cond(normal)) * size / noise
    jitter = 64 * rows * 2.0**-52 * float(torch.linalg.cond(kernel(x))) * size + 1e-6
    checks = [
        Check(
            "largest difference of the mean from ridge regression on the features",
            float((mean - ridge).abs().max()),
            0.0,
            rounding,
            "rounding: 64 n eps times the condition number, over the noise",
            wrong=Wrong("without the noise", measured=float((mean - least).abs().max())),
        ),
        Check(
            "largest error at the rows without noise",
            float((through - y).abs().max()),
            0.0,
            jitter,
            "rounding times the condition number of the kernel, and 1e-6 for the jitter",
            wrong=Wrong("with noise", measured=float((around - y).abs().max())),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="gp-mean-is-kernel-ridge",
    title="The mean of a Gaussian process is kernel ridge regression",
    statement=(
        "The posterior mean is the ridge regression on the features of the kernel, with the noise "
        "as the penalty. Without noise it passes through the outcomes; a common slip leaves the "
        "noise out of the formula."
    ),
    formula=r"m(x) = k(x)^\top (K + \sigma^2 I)^{-1} y",
    sources=("M350",),
    measure=measure,
    reference=(
        "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, section 2.2."
    ),
    full={"rows": 40},
)
