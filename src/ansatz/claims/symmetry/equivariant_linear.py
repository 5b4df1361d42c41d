"""A linear map that commutes with all permutations has two numbers."""

import itertools

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import EquivariantLinear


def measure(generator: torch.Generator, *, elements: int = 4) -> Finding:
    """Averages random matrices over the symmetric group."""
    orders = list(itertools.permutations(range(elements)))
    theta = torch.randn(elements, elements, generator=generator, dtype=torch.float64)
    average = averaged(theta, orders)
    eye = torch.eye(elements, dtype=torch.float64)
    off = average[~eye.bool()].mean()
    form = (average.diagonal().mean() - off) * eye + off
    basis = torch.eye(elements**2, dtype=torch.float64).reshape(-1, elements, elements)
    projected = torch.stack([averaged(each, orders).flatten() for each in basis])
    values = torch.linalg.svdvals(projected)
    dimension = int((values > 0.5).sum())
    layer = EquivariantLinear(1, 1, pool="sum", generator=generator).double()
    whole = torch.tensor([0, elements])
    with torch.no_grad():
        columns = [layer(e.unsqueeze(1), whole).squeeze(1) - layer.own.bias for e in eye]
    matrix = torch.stack(columns, 1)
    rounding = len(orders) * 2.0**-52
    checks = [
        Check(
            "largest entry of an averaged matrix that is not of the form λI + γ11ᵀ",
            float((average - form).abs().max()),
            0.0,
            rounding,
            "rounding: eps for each of M! terms",
            wrong=Wrong(
                "the matrix itself is of the form", measured=float((theta - form).abs().max())
            ),
        ),
        Check(
            "dimension of the matrices that commute with all permutations",
            dimension,
            2,
            0.0,
            "a count of singular values of a projection, 0 or 1",
            wrong=Wrong("one: λI alone", predicted=1),
        ),
        Check(
            "largest change of the layer's matrix by averaging",
            float((averaged(matrix, orders) - matrix).abs().max()),
            0.0,
            rounding,
            "rounding: eps for each of M! terms",
            wrong=Wrong(
                "any matrix commutes", measured=float((averaged(theta, orders) - theta).abs().max())
            ),
        ),
    ]
    return Finding(checks, data={"theta": theta.tolist(), "average": average.tolist()})


def averaged(theta: Tensor, orders: list[tuple[int, ...]]) -> Tensor:
    """The mean of P Θ Pᵀ over permutations."""
    parts = [theta[list(order)][:, list(order)] for order in orders]
    return torch.stack(parts).mean(0)


def draw(paper: Figure, finding: Finding) -> None:
    """A matrix, and its mean over the group."""
    both = (("random Θ", "theta"), ("its mean over all permutations", "average"))
    for axes, (title, key) in zip(paper.subplots(1, 2), both, strict=True):
        axes.imshow(finding.data[key], cmap="PuOr", vmin=-2, vmax=2)
        axes.set_title(title)
        axes.set(xticks=[], yticks=[])


claim = Claim(
    id="equivariant-linear",
    title="Linear maps on sets have two numbers",
    statement=(
        "A matrix commutes with all permutations of M elements if and only if it is a multiple of "
        "the identity plus a constant; it is often stated with 'if' alone."
    ),
    formula=r"P \Theta = \Theta P \ \forall P \iff \Theta = \lambda I + \gamma 1 1^\top",
    sources=("M281",),
    measure=measure,
    reference="Zaheer et al. (2017), Deep sets, lemma 3. https://arxiv.org/abs/1703.06114",
    full={"elements": 6},
    draw=draw,
)
