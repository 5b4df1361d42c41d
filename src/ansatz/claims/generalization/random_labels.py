"""Networks fit random labels and random pixels, and generalise all the same from real ones."""

import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.data import load
from ansatz.errors import UsageError
from ansatz.figures.style import INK, LINEAR, PALETTE
from ansatz.layers import initialize
from ansatz.likelihoods import Categorical
from ansatz.networks import MLP

CLASSES = 10


class Fitted(NamedTuple):
    """A training run."""

    losses: list[float]  # training loss after each epoch
    epochs: int  # until all rows were right, or the limit
    train: float  # accuracy
    test: float


def measure(
    generator: torch.Generator, *, data: Literal["digits", "cifar10"] = "digits", rows: int = 200,
    width: int = 200, channels: int = 16, limit: int = 200,
) -> Finding:  # fmt: skip
    """Two networks on real labels and random ones; one of them on two kinds of random pixels."""
    x, y, new_x, new_y = images(data, rows, generator)
    shuffled = torch.stack([row[torch.randperm(len(row), generator=generator)] for row in x])
    gauss = torch.randn(x.shape, generator=generator)
    coin = torch.randint(CLASSES, y.shape, generator=generator)
    tasks = {
        "true labels": (x, y),
        "random labels": (x, coin),
        "shuffled pixels": (shuffled, y),
        "Gaussian pixels": (gauss, y),
    }

    def train(x: Tensor, y: Tensor, network: nn.Module, epochs: int = limit) -> Fitted:
        return fit(x, y, new_x, new_y, network, epochs, generator)

    def dense(*widths: int) -> MLP:
        return MLP(x.shape[1], CLASSES, widths=widths, activation="relu", generator=generator)

    found = {name: train(*task, dense(width)) for name, task in tasks.items()}
    for name in ("true labels", "random labels"):
        found[f"{name}, CNN"] = train(*tasks[name], convolutional(x, channels, generator))
    longest = max(run.epochs for run in found.values())
    linear = train(x, coin, dense(), longest)
    ratio = max(
        found[f"random labels{kind}"].epochs / found[f"true labels{kind}"].epochs
        for kind in ("", ", CNN")
    )
    size = sum(p.numel() for p in dense(width).parameters())
    # A test row takes over labels of training rows that resemble it: those are the sample.
    error = (0.1 * 0.9 * (1 / len(new_y) + 1 / rows)) ** 0.5
    chance = float(torch.bincount(new_y, minlength=CLASSES).max() / len(new_y))
    checks = [
        Check(
            "training accuracy, least over the tasks",
            min(run.train for run in found.values()),
            1.0,
            0.0,
            "all rows right",
            wrong=Wrong("a linear classifier on random labels", measured=linear.train),
        ),
        Check(
            "epochs on random labels over those on true ones, the larger of both networks",
            ratio,
            float(CLASSES),
            0.0,
            "a small factor: below the number of classes",
            "<=",
            wrong=Wrong(
                "the epochs of a classifier that has not fitted them yet",
                measured=limit / found["true labels"].epochs if linear.train < 1 else 0.0,
            ),
        ),
        Check(
            "test accuracy after random labels",
            found["random labels"].test,
            0.1,
            4 * error + chance - 0.1,
            f"4 standard errors over {rows} labels that test rows take over; unequal classes",
            wrong=Wrong("after true labels", measured=found["true labels"].test),
        ),
        Check(
            "test accuracy after true labels",
            found["true labels"].test,
            chance + 4 * error,
            0.0,
            "4 standard errors above guessing the commonest class",
            ">=",
            wrong=Wrong(
                "who can fit noise cannot generalise", measured=found["random labels"].test
            ),
        ),
        Check(
            "parameters per training row",
            size / rows,
            1.0,
            0.0,
            "more parameters than rows",
            ">=",
            wrong=Wrong("of the linear classifier's inputs", measured=(x.shape[1] + 1) / rows),
        ),
    ]
    table = Table(
        ["task", "epochs until all are right", "training accuracy", "test accuracy"],
        [[name, run.epochs, run.train, run.test] for name, run in found.items()],
    )
    return Finding(checks, table, {"found": found, "linear": linear})


def images(
    data: str, rows: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Standardised pixels and classes, for training and testing."""
    if data == "digits":
        frame = load("digits").frame
        x = frame.drop(columns="digit").to_numpy(dtype=np.float32, copy=True)
        y = frame["digit"].astype(int).to_numpy(copy=True)
        order = torch.randperm(len(x), generator=generator).numpy()
        train, test = order[:rows], order[rows:]
        parts = (x[train], y[train], x[test], y[test])
    else:
        file = Path(os.environ.get("ANSATZ_DATA", "")) / "cifar10" / "cifar10_subset.npz"
        if not file.is_file():
            raise UsageError(f"no file {file}: set ANSATZ_DATA to the folder that has cifar10.")
        with np.load(file, allow_pickle=False) as kept:
            parts = (kept["x_train"][:rows], kept["y_train"][:rows], kept["x_test"], kept["y_test"])
        parts = (
            thumbnails(parts[0]),
            parts[1].astype(int),
            thumbnails(parts[2]),
            parts[3].astype(int),
        )
    x, y, new_x, new_y = (torch.as_tensor(part) for part in parts)
    centre, scale = x.mean(), x.std()
    return (x - centre) / scale, y, (new_x - centre) / scale, new_y


def thumbnails(pixels: np.ndarray) -> np.ndarray:
    """Colour images averaged to 8 x 8, one row each: fewer inputs than rows, as for the digits."""
    n, side = len(pixels), pixels.shape[1] // 8
    blocks = pixels.reshape(n, 8, side, 8, side, 3).astype(np.float32)
    return blocks.mean((2, 4)).transpose(0, 3, 1, 2).reshape(n, -1)


def convolutional(x: Tensor, channels: int, generator: torch.Generator) -> nn.Module:
    """Two convolutions on 8 x 8 pixels and a linear map."""
    colours = x.shape[1] // 64
    network = nn.Sequential(
        nn.Unflatten(1, (colours, 8, 8)),
        nn.Conv2d(colours, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * channels, CLASSES),
    )
    return initialize(network, "he_normal", generator=generator)


def fit(
    x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor, network: nn.Module, limit: int,
    generator: torch.Generator,
) -> Fitted:  # fmt: skip
    """Adam on batches of 50 until every row is right."""
    likelihood, rule = Categorical(), torch.optim.Adam(network.parameters(), lr=3e-3)
    losses: list[float] = []
    for _ in range(limit):
        for batch in torch.randperm(len(x), generator=generator).split(50):
            rule.zero_grad()
            likelihood.loss(network(x[batch]), y[batch]).mean().backward()
            rule.step()
        with torch.no_grad():
            raw = network(x)
            losses.append(float(likelihood.loss(raw, y).mean()))
            if bool((raw.argmax(-1) == y).all()):
                break
    return Fitted(losses, len(losses), accuracy(network, x, y), accuracy(network, new_x, new_y))


def accuracy(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of rows that are right."""
    with torch.no_grad():
        return float((network(x).argmax(-1) == y).double().mean())


def draw(paper: Figure, finding: Finding) -> None:
    """Training losses, and test accuracies in the legend."""
    axes = paper.subplots()
    for (name, run), colour in zip(finding.data["found"].items(), PALETTE[:6], strict=True):
        axes.plot(
            range(1, run.epochs + 1), run.losses, "o-", color=colour, markersize=3,
            label=f"{name}: test accuracy {run.test:.2f}",
        )  # fmt: skip
    linear = finding.data["linear"]
    last = max(run.epochs for run in finding.data["found"].values())
    axes.plot(
        range(1, linear.epochs + 1), linear.losses, "--", color=LINEAR, linewidth=0.9,
        label="linear classifier, random labels",
    )  # fmt: skip
    axes.axhline(np.log(CLASSES), color=INK, linestyle=":", label="guessing")
    axes.set(
        xlabel="epochs until all rows are right", ylabel="training loss, nats", xlim=(0, last + 1)
    )
    axes.set_title("the same network fits anything, and learns where there is something to learn")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="random-labels",
    title="Networks fit noise, and generalise all the same",
    statement=(
        "A network with more parameters than rows, dense or convolutional, fits random labels to "
        "the last row in a few times the epochs that real labels take; a dense one fits shuffled "
        "pixels and pure noise too. From real labels the same network generalises: the data that "
        "it could fit do not decide what it learns."
    ),
    formula=(
        r"\hat\ell_{0/1}(\hat f) = 0 \text{ on random labels}, \qquad "
        r"\ell_{0/1}(\hat f) \ll 1 - \tfrac1K \text{ on real ones}"
    ),
    sources=("M359", "M360", "M367"),
    measure=measure,
    reference="Zhang et al. (2017), Understanding deep learning requires rethinking generalization. https://arxiv.org/abs/1611.03530",
    full={"data": "cifar10", "rows": 2_000, "width": 512, "limit": 300},
    draw=draw,
)
