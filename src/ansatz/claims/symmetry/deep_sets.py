"""A sum of maps of the elements determines every symmetric function of a fixed number of them."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.networks import DeepSets


def measure(generator: torch.Generator, *, elements: int = 5, trials: int = 200) -> Finding:
    """Recovers products from power sums, and reorders the elements of a network's sets."""
    X = 2 * torch.rand(trials, elements, generator=generator, dtype=torch.float64) - 1
    power = torch.arange(1, elements + 1)
    sums = (X.unsqueeze(2) ** power).sum(1)  # phi(x) = (x, x^2, ..., x^M)
    found = product_of(sums)
    errors = (found - X.prod(1)).abs()
    short = (product_of(torch.cat([sums[:, :-1], torch.zeros(trials, 1)], 1)) - X.prod(1)).abs()
    network = DeepSets(1, 1, pool="sum", generator=generator).double().eval()
    torch.nn.init.normal_(network.output.weight, generator=generator)
    offsets = torch.arange(trials + 1) * elements
    order = torch.rand(trials, elements, generator=generator).argsort(1)
    Y = X.gather(1, order)
    with torch.no_grad():
        one, other = (network(Z.reshape(-1, 1), offsets) for Z in (X, Y))
    place = torch.arange(1.0, elements + 1).double()
    ordered = float(((X - Y) @ place).abs().max())
    rounding = 2.0**-52 * 4.0**elements
    checks = [
        Check(
            "largest error of the product as a function of M power sums",
            float(errors.max()),
            0.0,
            rounding,
            "Newton's identities add some 4^M rounded terms",
            wrong=Wrong("M - 1 power sums suffice", measured=float(short.max())),
        ),
        Check(
            "largest change of a network on sets under new orders",
            float((one - other).abs().max()),
            0.0,
            1e-10,
            "rounding of sums",
            wrong=Wrong("a sum weighted by place", measured=ordered),
        ),
    ]
    return Finding(checks, data={"found": found.tolist(), "true": X.prod(1).tolist()})


def product_of(sums: Tensor) -> Tensor:
    """The product of M numbers from their first M power sums, by Newton's identities."""
    elementary = [torch.ones(len(sums), dtype=torch.float64)]
    for k in range(1, sums.shape[1] + 1):
        terms = [(-1) ** (i - 1) * elementary[k - i] * sums[:, i - 1] for i in range(1, k + 1)]
        elementary.append(torch.stack(terms).sum(0) / k)
    return elementary[-1]


def draw(paper: Figure, finding: Finding) -> None:
    """The product that the power sums give, over the true one."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    low, high = min(data["true"]), max(data["true"])
    axes.plot([low, high], [low, high], color=LINEAR)
    axes.plot(data["true"], data["found"], "o", color=MODEL, ms=4)
    axes.set(xlabel="product of the elements", ylabel="from sums of powers")
    axes.set_title("sums of maps of the elements know every symmetric function")


claim = Claim(
    id="deep-sets",
    title="A sum over elements is enough for symmetric functions",
    statement=(
        "Every symmetric function of M numbers is a function of the M sums of their powers. The "
        "converse, that a function of such a sum is symmetric, holds for any maps. That only "
        "functions of this form are symmetric is a theorem for countable universes and for sets of "
        "a fixed size, not for all sets."
    ),
    formula=r"f(X) = \rho\Big(\sum_{x \in X} \varphi(x)\Big)",
    sources=("M279",),
    measure=measure,
    reference="Zaheer et al. (2017), Deep sets, theorem 2. https://arxiv.org/abs/1703.06114",
    full={"elements": 8, "trials": 2_000},
    draw=draw,
)
