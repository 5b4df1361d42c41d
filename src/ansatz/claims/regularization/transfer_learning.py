"""With few images, layers trained on another task beat training from scratch."""

import copy

import torch
from scipy import stats
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import answers, descend, images
from ansatz.layers import affine, initialize
from ansatz.networks import freeze

KINDS = ("from scratch", "fine-tuned", "frozen backbone")


def measure(
    generator: torch.Generator, *, few: tuple[int, ...] = (10, 40), steps: int = 60, runs: int = 8
) -> Finding:
    """A network learns ten digits, then even against odd from a few other images."""
    found = images("digits", 1_797, 0, generator)
    known, rest = torch.arange(900), torch.arange(900, 1_797)
    source = build(10, generator)
    descend(source, found.x[known], found.y[known], generator, steps=4 * steps, rate=0.05)
    odd = found.y % 2
    accuracy = torch.zeros(len(few), runs, len(KINDS), dtype=torch.float64)
    for i, each in enumerate(few):
        for run in range(runs):
            order = rest[torch.randperm(len(rest), generator=generator)]
            train = torch.cat([order[odd[order] == side][:each] for side in (0, 1)])
            held = order[~torch.isin(order, train)]
            for k, kind in enumerate(KINDS):
                network = build(2, generator) if k == 0 else copy.deepcopy(source)
                network[-1] = affine(64, 2, generator=generator)
                if kind == "frozen backbone":
                    freeze(network, "backbone")
                descend(network, found.x[train], odd[train], generator, steps=steps, rate=0.02)
                right = answers(network, found.x[held]).argmax(1) == odd[held]
                accuracy[i, run, k] = right.double().mean()
    ahead = (accuracy - accuracy[:, :, :1]).flatten(0, 1)  # (sizes x runs, kinds)
    t = float(stats.t.ppf(0.99, len(ahead) - 1)) / len(ahead) ** 0.5
    checks = [
        Check(
            f"accuracy on test images, {kind} minus from scratch",
            float(ahead[:, k].mean()),
            t * float(ahead[:, k].std()),
            0.0,
            f"at least Student's t, 99 %, over {len(ahead)} draws of images",
            ">=",
            wrong=Wrong("from scratch itself", measured=float(ahead[:, 0].mean())),
        )
        for k, kind in enumerate(KINDS)
        if k
    ]
    mean = accuracy.mean(1)
    table = Table(["images of a side", *KINDS], [
        [each, *map(float, row)] for each, row in zip(few, mean, strict=True)
    ])  # fmt: skip
    return Finding(checks, table)


def build(classes: int, generator: torch.Generator) -> nn.Sequential:
    """Two convolutions, a hidden layer, and the map to the classes."""
    layers = (
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, classes),
    )  # fmt: skip
    return initialize(nn.Sequential(*layers), "he_normal", generator=generator)


def draw(paper: Figure, finding: Finding) -> None:
    """Accuracy by the number of images."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes = paper.subplots()
    assert finding.table is not None
    few, *columns = torch.tensor(finding.table.rows).T
    for values, kind, colour, mark in zip(
        columns, KINDS, (INK, LINEAR, MODEL), ("s:", "^--", "o-"), strict=True
    ):
        axes.plot(few, values, mark, color=colour, label=kind)
    axes.set(xlabel="training images of each side", ylabel="test accuracy")
    axes.set_title("even or odd from few images, by layers that know the digits")
    axes.legend(loc="lower right")


claim = Claim(
    id="transfer-learning",
    title="A pretrained backbone beats training from scratch on few images",
    statement=(
        "A network that has learned ten digits learns to tell even from odd ones from a few other "
        "images better than one that starts anew, with its layers frozen or fine-tuned; with more "
        "images the gain shrinks. This is how small sets of medical images are classified."
    ),
    formula=r"a_{\text{frozen}}(n) > a_{\text{scratch}}(n), \qquad n \text{ small}",
    sources=("M428",),
    measure=measure,
    reference=(
        "Yosinski et al. (2014), How transferable are features in deep neural networks? "
        "https://arxiv.org/abs/1411.1792; Kermany et al. (2018), Identifying medical diagnoses and "
        "treatable diseases by image-based deep learning. "
        "https://doi.org/10.1016/j.cell.2018.02.010"
    ),
    full={"few": (5, 10, 20, 40, 80), "runs": 20},
    draw=draw,
)
