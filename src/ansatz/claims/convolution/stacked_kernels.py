"""Two layers of 3x3 kernels have the receptive field of one of 5x5, with fewer weights."""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import Images, answers, descend, images
from ansatz.layers import affine
from ansatz.networks import VGG16, convolution, receptive_field, summary
from ansatz.spec import InputSpec

CHANNELS = 8


def measure(
    generator: torch.Generator,
    *,
    data: str = "digits",
    rows: int = 500,
    held_out: int = 1_297,
    steps: int = 50,
    pairs: int = 1,
) -> Finding:
    """Fields and weights of real layers; the accuracy of both on handwritten digits."""
    counted = []
    for layers in (1, 2, 3):
        small, large = stages((3,) * layers, generator), stages((2 * layers + 1,), generator)
        counted.append([layers, seen(small), seen(large), *map(share, (small, large))])
    found = images(data, rows, held_out, generator)
    right = {
        kernels: sum(correct(kernels, found, steps, generator) for _ in range(pairs)) / pairs
        for kernels in ((3, 3), (5,))
    }
    change = torch.as_tensor(right[3, 3]) - torch.as_tensor(right[(5,)])  # on the same images
    with torch.device("meta"):
        flat = VGG16(3, 1_000).get_submodule("classifier.0").in_features
    checks = [
        Check(
            "weights per pair of channels of two 3x3 layers",
            counted[1][3],
            18,
            0,
            "whole numbers",
            wrong=Wrong("of one 5x5 layer", measured=counted[1][4]),
        ),
        Check(
            "pixels that they see along an axis",
            counted[1][1],
            counted[1][2],
            0,
            "whole numbers: as one 5x5 layer",
            wrong=Wrong("3 + 3, windows side by side", predicted=6),
        ),
        Check(
            "dimensions of the 5x5 kernels that two 3x3 make without a ReLU, per pair of channels",
            dimensions(2, generator) / 2**2,
            17,
            0,
            "whole numbers: 18 C², less C² for a factor that may move between the layers",
            wrong=Wrong("all 5x5 kernels", predicted=25),
        ),
        Check(
            "accuracy on test digits of two 3x3 layers minus that of one 5x5",
            float(change.mean()),
            0.0,
            4 * float(change.std()) / held_out**0.5,
            "4 standard errors of the difference on the same images",
            ">=",
        ),
        Check("numbers that VGG-16 flattens", float(str(flat)), 25_088, 0, "512 maps of 7 x 7"),
    ]
    head = ["layers of 3x3", "they see", "one kernel sees", "weights / C²", "weights / C² of one"]
    accuracy = {key: float(torch.as_tensor(value).mean()) for key, value in right.items()}
    bars = {key: (p * (1 - p) / held_out) ** 0.5 for key, p in accuracy.items()}
    return Finding(
        checks, Table(head, counted), {"counted": counted, "accuracy": accuracy, "bars": bars}
    )


def stages(kernels: tuple[int, ...], generator: torch.Generator) -> nn.Sequential:
    """Convolutions that keep the size, each with a normalisation and a ReLU."""
    parts = list[nn.Module]()
    for k in kernels:
        parts.append(
            convolution(2, CHANNELS, CHANNELS, k, padding=k // 2, bias=False, generator=generator)
        )
        parts += [nn.BatchNorm2d(CHANNELS), nn.ReLU()]
    return nn.Sequential(*parts)


def seen(network: nn.Module) -> int:
    """Pixels along an axis that one unit sees."""
    return receptive_field(network, InputSpec.grid(CHANNELS, 16, 16)).size[0]


def share(network: nn.Module) -> float:
    """Weights of its convolutions per pair of channels."""
    found = summary(network, InputSpec.grid(CHANNELS, 16, 16))
    return sum(row.parameters for row in found.rows if row.type == "Conv2d") / CHANNELS**2


def dimensions(channels: int, generator: torch.Generator) -> int:
    """The rank of the map from two 3x3 kernels to the 5x5 kernel that they amount to."""
    shape = 2, channels, channels, 3, 3
    start = torch.randn(shape, generator=generator, dtype=torch.float64)
    impulse = torch.zeros(channels, channels, 9, 9, dtype=torch.float64)
    impulse[range(channels), range(channels), 4, 4] = 1  # one image per channel

    def kernel(weights: Tensor) -> Tensor:
        return conv2d(conv2d(impulse, weights[0]), weights[1]).flatten()

    jacobian = torch.autograd.functional.jacobian(kernel, start).flatten(1)
    return int(torch.linalg.matrix_rank(jacobian))


def correct(
    kernels: tuple[int, ...], found: Images, steps: int, generator: torch.Generator
) -> Tensor:
    """Marks the test images that a network with these kernels classifies correctly."""
    channels, height, width = found.x.shape[1:]
    network = nn.Sequential(
        convolution(2, channels, CHANNELS, 3, padding=1, generator=generator),
        nn.ReLU(),
        *stages(kernels, generator),
        nn.MaxPool2d(2),
        nn.Flatten(),
        affine(CHANNELS * (height // 2) * (width // 2), 10, generator=generator),
    )
    descend(network, found.x, found.y, generator, steps=steps, rate=0.05, batch=32)
    return (answers(network, found.new).argmax(1) == found.truth).double()


def draw(paper: Figure, finding: Finding) -> None:
    """Weights over pixels seen; accuracies."""
    from ansatz.figures.style import LINEAR, MODEL

    left, right = paper.subplots(1, 2, width_ratios=[1.6, 1])
    _, small, large, few, many = zip(*finding.data["counted"], strict=True)
    left.plot(large, many, "o-", color=LINEAR, label="one kernel: r² C²")
    left.plot(small, few, "o-", color=MODEL, label="3x3 kernels: 9 (r - 1) / 2 C²")
    left.set(xlabel="pixels seen along an axis, r", ylabel="weights / C²", ylim=(0, None))
    left.set_xticks(large)
    left.legend(loc="upper left")
    accuracy, bars = finding.data["accuracy"], finding.data["bars"]
    for place, (key, color) in enumerate((((3, 3), MODEL), ((5,), LINEAR))):
        right.errorbar(place, accuracy[key], 2 * bars[key], fmt="o", color=color, ms=6)
    right.set_xticks([0, 1], ["two 3x3", "one 5x5"])
    right.set(xlim=(-0.5, 1.5), ylabel="accuracy on test digits, ± 2 s.e.")
    low = min(accuracy.values()) - 0.05
    right.set_ylim(low, 1.0)
    paper.suptitle("two 3x3 kernels have the field of one 5x5, with fewer weights", fontsize=9.5)


claim = Claim(
    id="stacked-kernels",
    title="Two 3x3 kernels for one of 5x5",
    statement=(
        "Two layers of 3x3 kernels see 5x5 pixels with 18 C² weights, where one layer of 5x5 has "
        "25 C², and three see 7x7 with 27 C² instead of 49 C². With a ReLU between them they "
        "learn handwritten digits no worse. Without one they would be 5x5 kernels of a family "
        "with 17 C² dimensions: neither all of them nor more."
    ),
    formula=(
        r"r = 1 + 2L, \qquad 9 L\, C^2 < (2L + 1)^2 C^2 \;\; (L \ge 2), \qquad "
        r"\dim \{ w_2 * w_1 \} = 18\, C^2 - C^2"
    ),
    sources=("M209",),
    measure=measure,
    reference=(
        "Simonyan and Zisserman (2015), Very deep convolutional networks for large-scale image "
        "recognition, section 2.3. https://arxiv.org/abs/1409.1556"
    ),
    full={"data": "mnist", "rows": 10_000, "held_out": 10_000, "steps": 300, "pairs": 3},
    draw=draw,
)
