"""Batch normalisation speeds training, also where the shift that it was to remove is put back."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import Images, images
from ansatz.layers import initialize

KINDS = ("none", "batch norm", "batch norm, then noise")
DEPTH, WIDTH = 5, 32


class NoisyNorm(nn.BatchNorm1d):
    """Batch normalisation whose outputs get another mean and scale at every step."""

    def __init__(self, units: int, generator: torch.Generator) -> None:
        super().__init__(units)
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        shift = torch.randn(2, x.shape[1], generator=self.generator)
        return super().forward(x) * (1 + shift[0] / 4) + shift[1] / 2


def measure(generator: torch.Generator, *, rows: int = 600, steps: int = 120) -> Finding:
    """One deep sigmoid network on digits: training losses, and how far a unit's mean moves."""
    found = images("digits", rows, 0, generator)
    runs = {kind: train(build(kind, generator), found, steps, generator) for kind in KINDS}
    again = train(build("none", generator), found, steps, generator)[0]
    loss = {kind: each[0] for kind, each in runs.items()}  # (rows,) at the end
    shift = {kind: each[1] for kind, each in runs.items()}
    gain = {kind: loss["none"] - loss[kind] for kind in KINDS[1:]}
    error = {kind: float(each.std()) / rows**0.5 for kind, each in gain.items()}
    plain, noisy = KINDS[1:]
    checks = [
        Check(
            "training loss without batch norm minus with it",
            float(gain[plain].mean()),
            4 * error[plain],
            0.0,
            "at least 4 standard errors of the difference on the same images",
            ">=",
            Wrong("another network without", measured=float((loss["none"] - again).mean())),
        ),
        Check(
            "the same, with the shift put back by noise after batch norm",
            float(gain[noisy].mean()),
            4 * error[noisy],
            0.0,
            "at least 4 standard errors: so the shift is not what hampers the plain network",
            ">=",
            Wrong("another network without", measured=float((loss["none"] - again).mean())),
        ),
        Check(
            "shift of a unit's mean from step to step, in its standard deviations, with the noise",
            shift[noisy],
            shift[plain],
            0.0,
            "more than under batch norm, which was to reduce it",
            ">=",
            Wrong("under batch norm, half of it", measured=shift[plain] / 2),
        ),
    ]
    table = Table(
        ["network", "training loss", "shift of a unit's mean"],
        [[kind, float(loss[kind].mean()), shift[kind]] for kind in KINDS],
    )
    return Finding(checks, table, {"curves": {kind: each[2] for kind, each in runs.items()}})


def build(kind: str, generator: torch.Generator) -> nn.Sequential:
    """Five hidden sigmoid layers."""
    layers: list[nn.Module] = [nn.Flatten()]
    for k in range(DEPTH):
        layers.append(nn.Linear(WIDTH if k else 64, WIDTH))
        if kind != "none":
            noisy = kind != "batch norm"
            layers.append(NoisyNorm(WIDTH, generator) if noisy else nn.BatchNorm1d(WIDTH))
        layers.append(nn.Sigmoid())
    layers.append(nn.Linear(WIDTH, 10))
    return initialize(nn.Sequential(*layers), "glorot_normal", generator=generator)


def train(
    network: nn.Sequential, found: Images, steps: int, generator: torch.Generator
) -> tuple[Tensor, float, list[float]]:
    """Gradient descent on batches: losses at the end, shift of a sigmoid's input, the curve."""
    rule = torch.optim.SGD(network.parameters(), lr=1.0)
    inputs: list[Tensor] = []
    last = [layer for layer in network if isinstance(layer, nn.Sigmoid)][-1]
    last.register_forward_hook(lambda _, given, __: inputs.append(given[0].detach()))
    curve = []
    for _ in range(steps):
        batch = torch.randint(len(found.x), (64,), generator=generator)
        rule.zero_grad()
        loss = cross_entropy(network(found.x[batch]), found.y[batch])
        loss.backward()
        rule.step()
        curve.append(float(loss.detach()))
    means = torch.stack([each.mean(0) for each in inputs])
    scale = torch.stack([each.std(0) for each in inputs]).mean(0)
    with torch.no_grad():
        final = cross_entropy(network(found.x), found.y, reduction="none")
    return final, float((means.diff(dim=0).abs() / scale).mean()), curve


def draw(paper: Figure, finding: Finding) -> None:
    """Training losses step by step."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes = paper.subplots()
    for (kind, curve), colour in zip(
        finding.data["curves"].items(), (INK, MODEL, LINEAR), strict=True
    ):
        axes.plot(range(1, len(curve) + 1), curve, color=colour, lw=1.1, label=kind)
    axes.set(xlabel="step", ylabel="training loss of a batch, nats", ylim=(0, None))
    axes.set_title("batch norm trains faster, even with the shift put back")
    axes.legend(loc="center right")


claim = Claim(
    id="covariate-shift",
    title="Batch norm and internal covariate shift: both views",
    statement=(
        "A deep sigmoid network learns much faster with batch normalisation. It was proposed to "
        "reduce internal covariate shift, the change of a layer's inputs while the layers below "
        "train. But noise that puts such a shift back after the normalisation leaves most of the "
        "gain: the later view is that normalised layers have gradients of a usable size."
    ),
    formula=(
        r"\ell(\text{batch norm}) < \ell(\text{none}), \qquad "
        r"\ell(\text{batch norm} + \text{shift}) < \ell(\text{none})"
    ),
    sources=("M163", "M430"),
    measure=measure,
    reference=(
        "Ioffe and Szegedy (2015), Batch normalization. https://arxiv.org/abs/1502.03167; "
        "Santurkar et al. (2018), How does batch normalization help optimization? "
        "https://arxiv.org/abs/1805.11604"
    ),
    full={"rows": 1_700, "steps": 1_000},
    draw=draw,
)
