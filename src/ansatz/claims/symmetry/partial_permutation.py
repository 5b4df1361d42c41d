"""Elements of one part may be exchanged, elements of different parts not."""

import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.networks import Pine
from ansatz.spec import InputSpec


def measure(generator: torch.Generator, *, elements: int = 8, trials: int = 50) -> Finding:
    """Reorders sets with two parts, within the parts and across them."""
    network = Pine(InputSpec.set(3, kinds=2), 1, generator=generator).double().eval()
    torch.nn.init.normal_(network.output.weight, generator=generator)
    x = torch.randn(elements, 3, generator=generator, dtype=torch.float64)
    half = elements // 2
    kinds = torch.tensor([1] * half + [2] * (elements - half)).unsqueeze(1)
    offsets = torch.tensor([0, elements])

    def answer(y: torch.Tensor) -> float:
        with torch.no_grad():
            return float(network(y, offsets, kinds))

    plain, within, across = answer(x), [], []
    for _ in range(trials):
        one = torch.randperm(half, generator=generator)
        two = half + torch.randperm(elements - half, generator=generator)
        within.append(abs(answer(x[torch.cat([one, two])]) - plain))
        swap = torch.arange(elements)
        swap[one[0]], swap[two[0]] = two[0], one[0]
        across.append(abs(answer(x[swap]) - plain))
    check = Check(
        "largest change under orders within the parts",
        max(within),
        0.0,
        1e-12,
        "rounding of sums",
        wrong=Wrong("exchanges across the parts", measured=max(across)),
    )
    return Finding([check], data={"within": within, "across": across})


def draw(paper: Figure, finding: Finding) -> None:
    """Changes within parts and across them."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    for place, (key, colour) in enumerate((("within", MODEL), ("across", LINEAR))):
        axes.plot(data[key], [place] * len(data[key]), "o", color=colour, ms=5)
    axes.set(xlabel="change of the answer", yticks=[0, 1], yticklabels=["within", "across"])
    axes.set(ylim=(-0.5, 1.5))
    axes.set_title("parts keep their own orders only")


claim = Claim(
    id="partial-permutation",
    title="Partial permutation invariance",
    statement=(
        "A function of sums of maps within parts does not change when elements of a part are "
        "exchanged, and may change when elements of two parts are."
    ),
    formula=r"f(X) = h\Big(\sum_{x \in X_1} g_1(x), \dots, \sum_{x \in X_K} g_K(x)\Big)",
    sources=("M286",),
    measure=measure,
    reference="Gui et al. (2021), PINE, theorem 3. https://arxiv.org/abs/1909.12903",
    full={"elements": 20, "trials": 500},
    draw=draw,
)
