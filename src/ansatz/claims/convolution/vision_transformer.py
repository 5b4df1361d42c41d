"""A convolution needs fewer images than a vision transformer; with many the gap closes."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import answers, images
from ansatz.layers import GlobalPool, affine
from ansatz.networks import ViTB16, ViTTiny, convolution
from ansatz.spec import InputSpec

MARGIN = 0.06


def measure(
    generator: torch.Generator,
    *,
    data: str = "digits",
    rows: tuple[int, ...] = (20, 1_000),
    steps: tuple[int, ...] = (80, 250),
    repeats: int = 3,
    held_out: int = 797,
    rate: float = 1e-2,
    width: int = 32,
    depth: int = 1,
    patch: int = 4,
) -> Finding:
    """Both kinds of network on few images, several times, and on more."""
    found = images(data, max(rows), held_out, generator)
    spec, channels = InputSpec.grid(*found.x.shape[1:]), found.x.shape[1]
    right: dict[str, list[Tensor]] = {"convolution": [], "transformer": []}
    for k, count in enumerate(rows):
        times = 1 if k else repeats
        marks: dict[str, list[Tensor]] = {name: [] for name in right}
        for _ in range(times):
            chosen = torch.randperm(len(found.x), generator=generator)[:count]
            for name, each in marks.items():
                network: nn.Module
                if name == "convolution":
                    network = convolutional(channels, width, generator)
                else:
                    network = ViTTiny(
                        spec, 10, patch=patch, width=width, depth=depth, heads=4,
                        generator=generator,
                    )  # fmt: skip
                train(network, found.x[chosen], found.y[chosen], steps[k], rate, generator)
                each.append((answers(network, found.new).argmax(1) == found.truth).double())
        for name, each in marks.items():
            right[name].append(torch.stack(each).mean(0))
    gaps = [c - t for c, t in zip(right["convolution"], right["transformer"], strict=True)]
    few, many = (float(each.mean()) for each in (gaps[0], gaps[-1]))
    tokens = ViTB16((3, 224, 224), 1, width=4, depth=1, heads=1).encoder.pos_embedding.shape[1]
    checks = [
        Check(
            f"accuracy of the convolution minus that of the transformer, {rows[0]} images",
            few,
            MARGIN,
            0.0,
            f"a margin of {MARGIN}, beyond what the choice of images makes",
            ">=",
            Wrong(f"with {rows[-1]} images", measured=many),
        ),
        Check(
            f"the same with {rows[-1]} images",
            many,
            few / 2,
            0.0,
            f"at most half of that with {rows[0]}",
            "<=",
            Wrong("as large", measured=few),
        ),
        Check(
            "tokens of ViT-B/16 at 224 x 224",
            tokens,
            14 * 14 + 1,
            0,
            "whole numbers: 196 patches and the class token",
            wrong=Wrong("a token for each pixel", predicted=224 * 224 + 1),
        ),
    ]
    share = {name: [float(each.mean()) for each in marks] for name, marks in right.items()}
    table = Table(["images", *share], [
        [count, *(each[k] for each in share.values())] for k, count in enumerate(rows)
    ])  # fmt: skip
    bars = {name: [2 * (p * (1 - p) / held_out) ** 0.5 for p in each]
            for name, each in share.items()}  # fmt: skip
    return Finding(checks, table, {"rows": rows, "share": share, "bars": bars})


def convolutional(channels: int, width: int, generator: torch.Generator) -> nn.Module:
    """Two layers of 3x3 kernels with batch norms, a pooled mean and a linear map."""
    return nn.Sequential(
        convolution(2, channels, width // 2, 3, generator=generator),
        nn.BatchNorm2d(width // 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        convolution(2, width // 2, width, 3, generator=generator),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        GlobalPool(),
        affine(width, 10, generator=generator),
    )


def train(
    network: nn.Module, x: Tensor, y: Tensor, steps: int, rate: float, generator: torch.Generator
) -> None:
    """AdamW at a rate that rises for a moment and falls to 0."""
    network.train()
    rule = torch.optim.AdamW(network.parameters(), rate, weight_decay=0.05)
    for step in range(steps):
        rule.param_groups[0]["lr"] = rate * min((step + 1) / 10, 1) * (1 - step / steps)
        chosen = torch.randint(len(x), (32,), generator=generator)
        rule.zero_grad()
        cross_entropy(network(x[chosen]), y[chosen]).backward()
        rule.step()


def draw(paper: Figure, finding: Finding) -> None:
    """Accuracy over the number of images."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    for name, colour in (("convolution", MODEL), ("transformer", LINEAR)):
        axes.errorbar(data["rows"], data["share"][name], data["bars"][name], fmt="o-", lw=1,
                      color=colour, label=f"{name}, ± 2 standard errors")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(data["rows"], [f"{count:,}" for count in data["rows"]])
    axes.minorticks_off()
    axes.set(xlabel="training images", ylabel="accuracy on test images")
    axes.set_title("convolution knows about neighbours; a transformer must learn it from images")
    axes.legend(loc="lower right")


claim = Claim(
    id="vision-transformer",
    title="A vision transformer needs more images than a convolution",
    statement=(
        "A vision transformer cuts an image into patches (196 of 16 x 16 pixels at 224 x 224) and "
        "treats them as tokens. That neighbours belong together it must learn: with few images it "
        "is less accurate than a small convolutional network, and the gap narrows with more."
    ),
    formula=r"N = \frac{H W}{P^2} = 196, \qquad "
    r"\mathrm{acc}_{\mathrm{CNN}} - \mathrm{acc}_{\mathrm{ViT}} \searrow \text{ with images}",
    sources=("M274",),
    measure=measure,
    reference=(
        "Dosovitskiy et al. (2021), An image is worth 16x16 words, section 4.3. "
        "https://arxiv.org/abs/2010.11929"
    ),
    full={
        "data": "fashion-mnist",
        "rows": (1_000, 10_000, 60_000),
        "steps": (1_000, 2_000, 4_000),
        "repeats": 1,
        "held_out": 5_000,
        "rate": 2e-3,
        "width": 64,
        "depth": 4,
    },
    draw=draw,
)
