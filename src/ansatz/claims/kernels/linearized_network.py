"""On few rows a linearised network errs no more than the network itself."""

import torch
from scipy import stats
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.convolution._images import images

RIDGE = 1e-6  # of the mean of the kernel's diagonal


def measure(
    generator: torch.Generator, *, rows: int = 150, held_out: int = 1_000, width: int = 128,
    steps: int = 250, runs: int = 4,
) -> Finding:  # fmt: skip
    """Test errors on digits: a network, its linearisation at the start, and the limit kernel."""
    found = []
    for _ in range(runs):
        data = images("digits", rows, held_out, generator)
        x, new = data.x.flatten(1).double(), data.new.flatten(1).double()
        target = one_hot(data.y, 10).double() - 0.1
        W, V = (
            torch.randn(*shape, generator=generator, dtype=torch.float64) * (2 / shape[1]) ** 0.5
            for shape in ((width, 64), (10, width))
        )
        outputs = {
            "network": trained(W, V, x, target, new, steps),
            "linearised": linearized(W, V, x, target, new),
            "limit kernel": regression(limit_kernel(x, x), limit_kernel(new, x), target),
            "mean of the classes": torch.zeros(held_out, 10, dtype=torch.float64),
        }
        found.append([
            float((raw.argmax(1) != data.truth).double().mean()) for raw in outputs.values()
        ])  # fmt: skip
    errors = torch.tensor(found, dtype=torch.float64)  # (runs, 4)
    t = float(stats.t.ppf(0.9995, runs - 1)) / runs**0.5
    checks = []
    for k, name in ((1, "linearised network"), (2, "limit kernel")):
        gap = errors[:, k] - errors[:, 0]
        guess = float((errors[:, 3] - errors[:, 0]).mean())
        checks.append(
            Check(
                f"test error of the {name} minus the network's",
                float(gap.mean()),
                0.0,
                t * float(gap.std()),
                f"Student's t, 99.9 %, over {runs} runs",
                "<=",
                wrong=Wrong("a model that does not compete: guessing", measured=guess),
            )
        )
    names = ("network", "linearised", "limit kernel", "guessing")
    table = Table(["model", "test error"], [
        [name, float(error)] for name, error in zip(names, errors.mean(0), strict=True)
    ])  # fmt: skip
    return Finding(checks, table)


def trained(W: Tensor, V: Tensor, x: Tensor, target: Tensor, new: Tensor, steps: int) -> Tensor:
    """A network with one hidden layer, its output at the start taken off, trained by Adam."""
    first, last = nn.Linear(64, len(W)).double(), nn.Linear(len(W), 10).double()
    network = nn.Sequential(first, nn.ReLU(), last)
    with torch.no_grad():
        for layer, weight in ((first, W), (last, V)):
            layer.weight.copy_(weight)
            layer.bias.zero_()
        start, start_new = network(x), network(new)
    rule = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        rule.zero_grad()
        (network(x) - start - target).square().mean().backward()
        rule.step()
    with torch.no_grad():
        return network(new) - start_new


def linearized(W: Tensor, V: Tensor, x: Tensor, target: Tensor, new: Tensor) -> Tensor:
    """The tangent model at the start, trained to the end: regression with the tangent kernel."""
    hidden, hidden_new = (z @ W.T for z in (x, new))
    on, on_new = (hidden > 0).double(), (hidden_new > 0).double()
    second, second_new = (h.relu() @ hidden.relu().T + 1 for h in (hidden, hidden_new))
    first, first_new = (z @ x.T + 1 for z in (x, new))
    found = []
    for v, y in zip(V.square(), target.T, strict=True):
        kernel = second + first * ((on * v) @ on.T)
        found.append(regression(kernel, second_new + first_new * ((on_new * v) @ on.T), y[:, None]))
    return torch.cat(found, 1)


def limit_kernel(x: Tensor, z: Tensor) -> Tensor:
    """The tangent kernel of a ReLU network with one hidden layer of infinite width."""
    size = x.norm(dim=1)[:, None] * z.norm(dim=1)
    cosine = (x @ z.T / size).clamp(-1, 1)
    angle = cosine.acos()
    first = (torch.pi - angle) / torch.pi
    second = size / 64 * (angle.sin() + (torch.pi - angle) * cosine) / torch.pi
    return second + (x @ z.T + 1) / 64 * first


def regression(kernel: Tensor, between: Tensor, target: Tensor) -> Tensor:
    """Kernel regression with a small ridge."""
    ridge = RIDGE * kernel.diagonal().mean()
    return between @ torch.linalg.solve(
        kernel + ridge * torch.eye(len(kernel), dtype=torch.float64), target
    )


claim = Claim(
    id="linearized-network",
    title="Linearised networks compete on small data",
    statement=(
        "Linearised networks are often held not to compete with networks. On a few hundred "
        "handwritten digits they do: the tangent model at the start, trained to the end, and "
        "regression with the kernel of infinite width err no more than the network itself. On "
        "large data with convolutions networks are ahead."
    ),
    formula=r"\mathrm{err}(f_{\mathrm{lin}}) \le \mathrm{err}(f), \qquad n \text{ small}",
    sources=("M442",),
    measure=measure,
    reference=(
        "Arora et al. (2020), Harnessing the power of infinitely wide deep nets on small-data "
        "tasks. https://arxiv.org/abs/1910.01663"
    ),
    full={"rows": 400, "width": 512, "steps": 1_000, "runs": 10},
)
