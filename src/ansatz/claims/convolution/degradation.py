"""A deeper plain network fits its own training images worse; a residual one does not."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import descend, images
from ansatz.networks import SmallResNet
from ansatz.spec import InputSpec


def measure(
    generator: torch.Generator,
    *,
    data: str = "digits",
    rows: int = 500,
    depths: tuple[int, ...] = (8, 26),
    width: int = 4,
    steps: int = 40,
) -> Finding:
    """Networks with and without shortcuts, of several depths, after the same steps."""
    found = images(data, rows, 0, generator)
    spec = InputSpec.grid(*found.x.shape[1:])
    loss: dict[str, list[Tensor]] = {"plain": [], "residual": []}
    curves: dict[str, list[list[float]]] = {"plain": [], "residual": []}
    for depth in depths:
        for name in loss:
            network = SmallResNet(
                spec, 10, depth=depth, width=width, residual=name == "residual", generator=generator
            )
            curves[name].append(
                descend(network, found.x, found.y, generator, steps=steps, rate=0.08, batch=32)
            )
            with torch.no_grad():  # in training mode still: norms by the statistics of all rows
                loss[name].append(cross_entropy(network(found.x), found.y, reduction="none"))
    change = {name: each[-1] - each[0] for name, each in loss.items()}  # image by image
    gain = {name: float(each.mean()) for name, each in change.items()}
    error = {name: float(each.std()) / rows**0.5 for name, each in change.items()}
    least, most = depths[0], depths[-1]
    checks = [
        Check(
            f"training loss of {most} plain layers minus that of {least}",
            gain["plain"],
            4 * error["plain"],
            0.0,
            "at least 4 standard errors of the difference on the same images",
            ">=",
            Wrong("with shortcuts", measured=gain["residual"]),
        ),
        Check(
            f"training loss of {most} layers with shortcuts minus that of {least}",
            gain["residual"],
            0.0,
            4 * error["residual"],
            "4 standard errors of the difference on the same images",
            "<=",
            Wrong("without shortcuts", measured=gain["plain"]),
        ),
    ]
    table = Table(["layers", "loss, plain", "loss, residual"], [
        [depth, float(plain.mean()), float(residual.mean())]
        for depth, plain, residual in zip(depths, loss["plain"], loss["residual"], strict=True)
    ])  # fmt: skip
    return Finding(checks, table, {"curves": curves, "depths": depths})


def draw(paper: Figure, finding: Finding) -> None:
    """The losses of the batches, step by step; the shallowest dashed, the deepest thick."""
    from ansatz.figures.style import LINEAR, MODEL

    depths = finding.data["depths"]
    plots = paper.subplots(1, 2, sharey=True)
    for axes, name, color in zip(plots, ("plain", "residual"), (LINEAR, MODEL), strict=True):
        for number, (depth, curve) in enumerate(
            zip(depths, finding.data["curves"][name], strict=True)
        ):
            line = "--" if number == 0 else "-"
            axes.plot(range(1, len(curve) + 1), curve, line, color=color, lw=0.9 + 0.7 * number,
                      label=f"{depth} layers")  # fmt: skip
        axes.set(xlabel="step", title=name)
        axes.legend(loc="lower left")
    plots[0].set(ylabel="training loss of a batch, nats", ylim=(0, None))
    paper.suptitle(
        "more layers learn worse if they are plain, and better with shortcuts", fontsize=9.5
    )


claim = Claim(
    id="degradation",
    title="Plain networks degrade with depth",
    statement=(
        "After the same number of steps a deep plain network has a higher loss on its own training "
        "images than a shallow one, though it could copy the shallow one and pass the result on: "
        "it is harder to train, not too flexible. That is so early in training and at its end (the "
        "thorough run), where the shallow network has every image right. With shortcuts around "
        "every two layers, which cost no weight, deep networks are not worse than shallow ones."
    ),
    formula=(
        r"h_{l+1} = \mathrm{ReLU}(F_l(h_l)): \; \ell_{\text{deep}} > \ell_{\text{shallow}}, \qquad "
        r"h_{l+1} = \mathrm{ReLU}(h_l + F_l(h_l)): \; "
        r"\ell_{\text{deep}} \le \ell_{\text{shallow}}"
    ),
    sources=("M214",),
    measure=measure,
    reference=(
        "He et al. (2016), Deep residual learning for image recognition, figures 1 and 6. "
        "https://arxiv.org/abs/1512.03385"
    ),
    full={"rows": 1_000, "depths": (8, 26, 56), "steps": 1_500},
    draw=draw,
)
