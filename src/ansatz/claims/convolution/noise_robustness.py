"""A convolutional network is more accurate with little noise, but not more robust to much."""

import torch
from scipy import stats
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.convolution._images import answers, descend, images
from ansatz.layers import initialize

NOISE = (0.0, 0.25, 0.5, 1.0, 1.5)  # in standard deviations of the pixels


def measure(
    generator: torch.Generator, *, rows: int = 800, held_out: int = 900, steps: int = 150,
    pairs: int = 6,
) -> Finding:  # fmt: skip
    """Two networks of like size on digits; accuracy on test images with noise of several levels."""
    accuracy: dict[str, list[list[float]]] = {"CNN": [], "MLP": []}
    sizes = {}
    for _ in range(pairs):
        found = images("digits", rows, held_out, generator)
        draws = [level * torch.randn(found.new.shape, generator=generator) for level in NOISE]
        for name, network in (("CNN", convolutional(generator)), ("MLP", dense(generator))):
            sizes[name] = sum(weight.numel() for weight in network.parameters())
            descend(network, found.x, found.y, generator, steps=steps, rate=0.05)
            right = [
                answers(network, found.new + noise).argmax(1) == found.truth for noise in draws
            ]
            accuracy[name].append([float(each.double().mean()) for each in right])
    share = {name: torch.tensor(each, dtype=torch.float64) for name, each in accuracy.items()}
    ahead = share["CNN"] - share["MLP"]  # (pairs, levels)
    lost = (share["CNN"][:, 0] - share["CNN"][:, -1]) - (share["MLP"][:, 0] - share["MLP"][:, -1])
    t = float(stats.t.ppf(0.9995, pairs - 1)) / pairs**0.5
    checks = [
        Check(
            f"accuracy lost to noise of {NOISE[-1]:g} standard deviations, CNN minus MLP",
            float(lost.mean()),
            0.0,
            t * float(lost.std()),
            f"Student's t, 99.9 %, over {pairs} pairs of networks",
            ">=",
            wrong=Wrong("the CNN lost half as much", measured=-half_loss(share["MLP"])),
        ),
        Check(
            "accuracy without noise, CNN minus MLP",
            float(ahead[:, 0].mean()),
            0.0,
            t * float(ahead[:, 0].std()),
            f"Student's t, 99.9 %, over {pairs} pairs of networks",
            ">=",
        ),
        Check(
            "weights of the MLP over those of the CNN",
            sizes["MLP"] / sizes["CNN"],
            1.0,
            0.1,
            "networks of like size, within a tenth",
            wrong=Wrong("with twice the hidden units", measured=2 * sizes["MLP"] / sizes["CNN"]),
        ),
    ]
    rows_ = [
        [level, float(share["CNN"][:, k].mean()), float(share["MLP"][:, k].mean())]
        for k, level in enumerate(NOISE)
    ]
    return Finding(checks, Table(["noise", "CNN", "MLP"], rows_))


def half_loss(share: torch.Tensor) -> float:
    """Half of what the noise costs on average."""
    return float((share[:, 0] - share[:, -1]).mean()) / 2


def convolutional(generator: torch.Generator) -> nn.Module:
    """Two convolutions and a linear map."""
    layers = (
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    return initialize(nn.Sequential(*layers), "he_normal", generator=generator)


def dense(generator: torch.Generator) -> nn.Module:
    """Two hidden layers of 34 units: as many weights, within a tenth."""
    layers = (
        nn.Flatten(), nn.Linear(64, 34), nn.ReLU(), nn.Linear(34, 34), nn.ReLU(), nn.Linear(34, 10)
    )  # fmt: skip
    return initialize(nn.Sequential(*layers), "he_normal", generator=generator)


def draw(paper: Figure, finding: Finding) -> None:
    """Accuracy by noise."""
    from ansatz.figures.style import LINEAR, MODEL

    axes = paper.subplots()
    assert finding.table is not None
    noise, cnn, mlp = torch.tensor(finding.table.rows).T
    axes.plot(noise, cnn, "o-", color=MODEL, label="CNN")
    axes.plot(noise, mlp, "^--", color=LINEAR, label="MLP of like size")
    axes.set(xlabel="noise, standard deviations of the pixels", ylabel="test accuracy")
    axes.set_title("a CNN is ahead without noise and loses more to it")
    axes.legend()


claim = Claim(
    id="noise-robustness",
    title="CNNs are not more robust to noise in general",
    statement=(
        "That convolutional networks are more robust to noise is often stated. On handwritten "
        "digits a CNN and an MLP of like size, trained on clean images, show no such thing: the "
        "CNN is more accurate without noise, and loses at least as much accuracy to strong noise."
    ),
    formula=(
        r"a_{\mathrm{CNN}}(0) - a_{\mathrm{CNN}}(\sigma) \ge "
        r"a_{\mathrm{MLP}}(0) - a_{\mathrm{MLP}}(\sigma)"
    ),
    sources=("M431",),
    measure=measure,
    reference=(
        "Hendrycks and Dietterich (2019), Benchmarking neural network robustness to common "
        "corruptions and perturbations. https://arxiv.org/abs/1903.12261"
    ),
    full={"steps": 600, "pairs": 20},
    draw=draw,
)
