"""A fixed shuffle of the pixels does not harm a dense network, but harms a convolution."""

import torch
from scipy import stats
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import Images, answers, descend, images
from ansatz.claims.finding import EPS
from ansatz.layers import GlobalPool, affine
from ansatz.networks import MLP, convolution


def measure(
    generator: torch.Generator,
    *,
    data: str = "digits",
    rows: int = 500,
    held_out: int = 1_297,
    steps: int = 60,
    pairs: int = 6,
) -> Finding:
    """Two networks learn handwritten digits with their pixels in order and shuffled."""
    found = images(data, rows, held_out, generator)
    order = torch.randperm(found.x[0].numel(), generator=generator)
    mixed = shuffled(found, order)
    right = {}  # correctly classified: (pairs, 2, held_out), in order and shuffled
    for name, make, count in (("dense", dense, pairs), ("convolutional", convolutional, 1)):
        made = [make(found.x, generator) for _ in range(2 * count)]
        sets = zip(made, (found, mixed) * count, strict=True)
        marks = [correct(network, each, steps, generator) for network, each in sets]
        right[name] = torch.stack(marks).double().unflatten(0, (count, 2))
    losses = (right["dense"][:, 0] - right["dense"][:, 1]).mean(1)  # of each pair of networks
    standard_error = float(losses.std()) / pairs**0.5
    change = right["convolutional"][0, 0] - right["convolutional"][0, 1]  # of the same images
    error = float(change.std()) / held_out**0.5
    lost = {"dense": float(losses.mean()), "convolutional": float(change.mean())}
    exact, size = same_start(found, order, steps, generator)
    layer = nn.Linear(224 * 224 * 3, 224 * 224 * 3, bias=False, device="meta")
    checks = [
        Check(
            "accuracy that a dense network loses by the shuffle",
            lost["dense"],
            0.0,
            float(stats.t.ppf(0.9995, pairs - 1)) * standard_error,
            f"Student's t, 99.9 %, over {pairs} pairs of networks from weights of their own",
            wrong=Wrong("as much as the convolutional one", measured=lost["convolutional"]),
        ),
        Check(
            "accuracy that a convolutional network loses",
            lost["convolutional"],
            4 * error,
            0.0,
            "at least 4 standard errors of the difference on the same images",
            ">=",
            Wrong("as much as the dense one", measured=lost["dense"]),
        ),
        Check(
            "largest change of the dense outputs if its first weights are shuffled alike",
            exact[0],
            0.0,
            EPS * len(order) * steps**2 * size,
            "rounding: n eps for sums in another order at each step, carried on to all later steps",
            wrong=Wrong("first weights as they were", measured=exact[1]),
        ),
        Check(
            "weights of a dense layer from a 224 x 224 x 3 image to itself",
            layer.weight.numel(),
            22_658_678_784,
            0,
            "whole numbers: 150,528²",
            wrong=Wrong("150,528", predicted=150_528),
        ),
    ]
    share = {name: marks.mean((0, 2)).tolist() for name, marks in right.items()}
    table = Table(["network", "pixels in order", "shuffled"], [
        [name, *values] for name, values in share.items()
    ])  # fmt: skip
    example = found.new[0, 0].numpy(), mixed.new[0, 0].numpy()
    bars = {name: [(p * (1 - p) / held_out) ** 0.5 for p in pair] for name, pair in share.items()}
    return Finding(checks, table, {"share": share, "bars": bars, "example": example})


def shuffled(found: Images, order: Tensor) -> Images:
    """The same images, all pixels in another order, the same for all."""
    x, new = (t.flatten(1)[:, order].reshape(t.shape) for t in (found.x, found.new))
    return found._replace(x=x, new=new)


def dense(x: Tensor, generator: torch.Generator) -> nn.Module:
    """One hidden layer on all pixels."""
    return nn.Sequential(nn.Flatten(), MLP(x[0].numel(), 10, widths=(64,), generator=generator))


def convolutional(x: Tensor, generator: torch.Generator) -> nn.Module:
    """Two layers of 3x3 kernels, the mean of each feature over all places, and a linear map."""
    return nn.Sequential(
        convolution(2, x.shape[1], 12, 3, generator=generator),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        convolution(2, 12, 24, 3, generator=generator),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        GlobalPool(),
        affine(24, 10, generator=generator),
    )


def correct(network: nn.Module, found: Images, steps: int, generator: torch.Generator) -> Tensor:
    """Trains the network and marks the test images that it classifies correctly."""
    descend(network, found.x, found.y, generator, steps=steps, rate=0.1)
    return answers(network, found.new).argmax(1) == found.truth


def same_start(
    found: Images, order: Tensor, steps: int, generator: torch.Generator
) -> tuple[tuple[float, float], float]:
    """Changes of a dense network's outputs, with first weights shuffled alike and as they were."""
    network, seed = (
        dense(found.x, generator).double(),
        int(torch.randint(2**31, (), generator=generator)),
    )
    start = {name: weight.clone() for name, weight in network.state_dict().items()}
    first = next(name for name, weight in start.items() if weight.shape[-1] == len(order))
    outputs = []
    for each, weights in (
        (found, start),
        (shuffled(found, order), {**start, first: start[first][:, order]}),
        (shuffled(found, order), start),
    ):
        network.load_state_dict(weights)
        batches = torch.Generator().manual_seed(seed)  # the same batches each time
        descend(network, each.x.double(), each.y, batches, steps=steps, rate=0.1)
        outputs.append(answers(network, each.new.double()))
    plain, alike, kept = outputs
    gaps = float((alike - plain).abs().max()), float((kept - plain).abs().max())
    return gaps, float(plain.abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """A digit as it is and shuffled; accuracies of both networks."""
    from ansatz.figures.style import LINEAR, MODEL

    left, middle, axes = paper.subplots(1, 3, width_ratios=[1, 1, 2.2])
    for place, image, name in zip(
        (left, middle), finding.data["example"], ("in order", "shuffled"), strict=True
    ):
        place.imshow(image, cmap="gray_r")
        place.set(xticks=[], yticks=[], xlabel=name)
        for edge in place.spines.values():
            edge.set_visible(True)
    for name, colour, shift in (("dense", LINEAR, 0.02), ("convolutional", MODEL, -0.02)):
        error = [2 * each for each in finding.data["bars"][name]]
        axes.errorbar([shift, 1 + shift], finding.data["share"][name], error, fmt="o-",
                      color=colour, lw=1, ms=6, label=f"{name}, ± 2 standard errors")  # fmt: skip
    axes.set_xticks([0, 1], ["in order", "shuffled"])
    axes.set(ylabel="accuracy on test images", xlim=(-0.3, 1.3))
    axes.legend(loc="lower left")
    axes.set_ylim(bottom=axes.get_ylim()[0] - 0.06)
    paper.suptitle(
        "shuffling the pixels costs a convolution, and a dense network nothing", fontsize=9.5
    )


claim = Claim(
    id="permuted-pixels",
    title="A fixed shuffle of the pixels",
    statement=(
        "A dense network learns handwritten digits as well if all pixels are shuffled in the same "
        "way; from weights shuffled alike it even gives the same outputs. A convolutional network "
        "that sees 5x5 pixels and averages over all places loses accuracy, since neighbours carry "
        "no information any more; one that sees all of a small image may lose little. Ignoring "
        "neighbours is expensive: a dense layer from a 224 x 224 x 3 image to itself has 150,528² "
        "weights."
    ),
    formula=r"f_{WP^\top}(Px) = f_W(x), \qquad (224 \cdot 224 \cdot 3)^2 = 22{,}658{,}678{,}784",
    sources=("M204", "M205"),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 9.2.",
    full={"data": "mnist", "rows": 10_000, "held_out": 10_000, "steps": 400},
    draw=draw,
)
