"""Draws the pictures of the guides: python docs/figures/guides.py [NAME ...].

Each shows the result of what its guide does, on data made here with a fixed seed.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from style import BLUE, COLOURS, GREY, ORANGE, STYLE, save

from ansatz import Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor

IMAGES = Path(__file__).parents[1] / "images" / "guides"


def ten_minutes() -> Figure:
    """Counts over the hours of a day, with the mean and the 90 % interval."""
    rng = np.random.default_rng(0)
    hour = rng.uniform(0, 24, 600).round(2)
    rain = rng.choice(["dry", "rain"], 600)
    mean = np.exp(1.2 + np.sin(hour * np.pi / 12 - 2) + 0.5 * (rain == "rain"))
    table = pd.DataFrame({"hour": hour, "rain": rain})
    calls = rng.poisson(mean)
    model = Regressor("poisson").fit(table, calls)
    figure, panels = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True)
    for ax, sky, color in zip(panels, ("dry", "rain"), (BLUE, ORANGE), strict=True):
        at = pd.DataFrame({"hour": np.linspace(0, 24, 200), "rain": sky})
        lower, upper = model.interval(at, level=0.9).T
        ax.fill_between(at["hour"], lower, upper, step="mid", color=color, alpha=0.25, lw=0)
        ax.plot(at["hour"], model.predict(at), color=color)
        ax.plot(hour[rain == sky], calls[rain == sky], ".", color=GREY, ms=2.5)
        ax.set(title=sky, xlabel="hour", xticks=range(0, 25, 6))
    panels[0].set_ylabel("calls")
    return figure


def tables() -> Figure:
    """A mean and a standard deviation that both depend on x."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 500)
    y = np.sin(2 * x) + np.exp(0.7 * x - 1.5) * rng.normal(size=500)
    at = np.linspace(-2, 2, 200)
    model = Regressor("normal").fit(x.reshape(-1, 1), y)
    linear = Regressor("normal", network="linear").fit(x.reshape(-1, 1), y)
    figure, ax = plt.subplots(figsize=(5.2, 2.8))
    ax.plot(x, y, ".", color=GREY, ms=2.5)
    for level, alpha in ((0.9, 0.2), (0.5, 0.3)):
        lower, upper = model.interval(at.reshape(-1, 1), level=level).T
        ax.fill_between(at, lower, upper, color=BLUE, alpha=alpha, lw=0, label=f"{level:.0%}")
    ax.plot(at, model.predict(at.reshape(-1, 1)), color=BLUE, label="network")
    ax.plot(at, linear.predict(at.reshape(-1, 1)), color=ORANGE, ls="--", label="linear")
    ax.set(xlabel="x", ylabel="y")
    ax.legend(ncols=2, loc="lower left")
    return figure


def discs(number: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy images, their classes (lying or standing stripes) and their masks."""
    rng = np.random.default_rng(seed)
    i, j = np.mgrid[:size, :size]
    images, masks = [], []
    for k in range(number):
        (a, b), r = rng.uniform(0.4 * size, 0.6 * size, 2), rng.uniform(0.25, 0.38) * size
        disc = np.hypot(i - a, j - b) < r
        stripes = np.sin(1.6 * (i, j)[k % 2] + rng.uniform(0, 6))
        images.append(0.3 + disc * (0.35 + 0.25 * stripes) + 0.08 * rng.normal(size=disc.shape))
        masks.append(disc)
    return np.float32(images), np.arange(number) % 2, np.array(masks).astype(int)


def images() -> Figure:
    """Test images under the predicted probability of their class."""
    pictures, kind, _ = discs(160, 16, 0)
    names = np.array(["lying", "standing"])
    options = {"depth": 8, "width": 8}
    model = Classifier(network="small_resnet", network_options=options, epochs=10)
    model = model.fit(pictures[:120], names[kind[:120]])
    chosen = pictures[120:126]
    chance = model.predict_proba(chosen)
    figure, panels = plt.subplots(1, 6, figsize=(6.4, 1.35))
    for ax, picture, p in zip(panels, chosen, chance, strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set_title(f"{model.classes_[p.argmax()]}\n{p.max():.1%}", fontsize=8)
        ax.axis("off")
    return figure


def segmentation() -> Figure:
    """An image, its mask, the predicted mask, and where an ensemble disagrees."""
    pictures, _, masks = discs(40, 32, 1)
    pictures += 0.25 * np.random.default_rng(2).normal(size=pictures.shape).astype(np.float32)
    model = Segmenter(network_options={"depth": 2, "width": 8}, epochs=12, members=3,
                      inference="ensemble").fit(pictures[:32], masks[:32])  # fmt: skip
    new = pictures[32:33]
    shown = {"image": new[0], "mask": masks[32], "predicted": model.predict(new)[0],
             "disagreement": model.between_entropy(new)[0]}  # fmt: skip
    figure, panels = plt.subplots(1, 4, figsize=(6.4, 1.9))
    for ax, (title, values) in zip(panels, shown.items(), strict=True):
        ax.imshow(values, cmap="magma" if title == "disagreement" else "gray")
        ax.set_title(title)
        ax.axis("off")
    return figure


def survival() -> Figure:
    """Predicted survival of two patients, beside the Kaplan-Meier curve of all."""
    rng = np.random.default_rng(0)
    age, arm = rng.uniform(40, 80, 400).round(), rng.choice(["control", "drug"], 400)
    life = 30 * np.exp(-0.03 * (age - 60) + 0.5 * (arm == "drug")) * rng.weibull(1.5, 400)
    end = rng.uniform(10, 60, 400)
    X = pd.DataFrame({"age": age, "arm": arm})
    weeks, died = np.minimum(life, end).round(1) + 0.1, life <= end
    model = SurvivalRegressor("weibull", network="linear").fit(X, weeks, event=died)
    at = np.linspace(0.1, 60, 120)
    new = pd.DataFrame({"age": [45, 75], "arm": ["drug", "control"]})
    figure, ax = plt.subplots(figsize=(5.2, 2.6))
    labels = ("45 years, drug", "75 years, control")
    for curve, label, color in zip(model.predict_survival(new, times=at), labels, COLOURS,
                                   strict=False):  # fmt: skip
        ax.plot(at, curve, label=label, color=color)
    from ansatz.metrics import kaplan_meier

    everyone = kaplan_meier(torch.as_tensor(weeks), torch.as_tensor(died).double())
    ax.step(at, everyone.at(torch.as_tensor(at)), color=GREY, lw=1, label="all (Kaplan-Meier)")
    ax.set(xlabel="weeks", ylabel="share without the event", ylim=(0, 1.02))
    ax.legend()
    return figure


def rankings() -> Figure:
    """The chance of each item to come first, over x."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 1))
    scores = np.column_stack([X[:, 0], -X[:, 0], 0 * X[:, 0]]) + rng.gumbel(size=(500, 3))
    y = [">".join(np.array(["milk", "rum", "tea"])[row]) for row in np.argsort(-scores, axis=1)]
    model = Ranker(network="linear").fit(X, y)
    at = np.linspace(-2.5, 2.5, 100)
    figure, ax = plt.subplots(figsize=(5.2, 2.4))
    for curve, item, color in zip(model.predict_proba(at.reshape(-1, 1)).T, model.items_, COLOURS,
                                  strict=False):  # fmt: skip
        ax.plot(at, curve, label=item, color=color)
    ax.set(xlabel="warmth of the day", ylabel="chance to come first", ylim=(0, 1))
    ax.legend()
    return figure


def linear_models() -> Figure:
    """Coefficients with their 95 % intervals, and the true values."""
    rng = np.random.default_rng(0)
    truth = np.array([0.8, 0.0, -0.4, 0.2])
    X = rng.normal(size=(200, 4))
    y = rng.poisson(np.exp(0.5 + X @ truth)).astype(float)
    model = Regressor("poisson", network="linear").fit(X, y).linear_
    estimate = model.coefficients[1:, 0].numpy()
    error = model.standard_errors[1:, 0].numpy()
    figure, ax = plt.subplots(figsize=(5.2, 2.0))
    place = np.arange(4)
    ax.errorbar(estimate, place, xerr=1.96 * error, fmt="o", color=BLUE, label="estimate, 95 %")
    ax.plot(truth, place - 0.2, "|", color=ORANGE, ms=9, mew=2, label="truth")
    ax.axvline(0, color=GREY, lw=0.7)
    ax.set(yticks=place, yticklabels=[f"x{k + 1}" for k in place], xlabel="effect on log mean",
           ylim=(3.6, -0.7))  # fmt: skip
    ax.legend(loc="lower right")
    return figure


def ensembles() -> Figure:
    """Intervals of one network and of an ensemble, beyond the rows too."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-2, -0.5, 80), rng.uniform(0.8, 2, 80)])
    y = np.sin(2 * x) + 0.2 * rng.normal(size=160)
    at = np.linspace(-3.5, 3.5, 300).reshape(-1, 1)
    figure, panels = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True)
    for ax, inference, color in zip(panels, ("point", "ensemble"), (ORANGE, BLUE), strict=True):
        model = Regressor("normal", inference=inference).fit(x.reshape(-1, 1), y)
        lower, upper = model.interval(at, level=0.9).T
        ax.fill_between(at[:, 0], lower, upper, color=color, alpha=0.25, lw=0)
        ax.plot(at, model.predict(at), color=color)
        ax.plot(x, y, ".", color=GREY, ms=2.5)
        name = "one network" if inference == "point" else "ensemble of ten"
        ax.set(title=name, xlabel="x", ylim=(-3, 3))
    panels[0].set_ylabel("y, 90 % interval")
    return figure


def compare() -> Figure:
    """Differences of the log scores of two models, row by row."""
    rng = np.random.default_rng(0)
    area, town = rng.uniform(20, 140, 900).round(), rng.choice(["Jena", "Gera"], 900)
    rent = np.where(town == "Jena", 12, 8) * area * rng.gamma(25, 1 / 25, 900)
    X = pd.DataFrame({"area": area, "town": town})
    scores = []
    for name in ("gamma", "normal"):
        model = Regressor(name, network="linear").fit(X[:700], rent[:700])
        y = torch.as_tensor(rent[700:])
        scores.append(model.predict_dist(X[700:]).log_prob(y).numpy())
    difference = scores[0] - scores[1]
    mean, error = difference.mean(), difference.std(ddof=1) / len(difference) ** 0.5
    figure, ax = plt.subplots(figsize=(5.2, 2.3))
    ax.hist(difference, bins=40, color=BLUE, alpha=0.6)
    ax.axvline(0, color=GREY, lw=0.8)
    ax.axvspan(mean - 2 * error, mean + 2 * error, color=ORANGE, alpha=0.35, lw=0)
    ax.axvline(mean, color=ORANGE)
    ax.set(xlabel="log score of gamma minus log score of normal, per test row", ylabel="rows",
           title=f"mean {mean:.2f}, standard error {error:.2f}")  # fmt: skip
    return figure


def tune() -> Figure:
    """Draws the scores of the trials of a search, beside the default recipe."""
    import tempfile

    import ansatz

    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 300)
    table = pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=300)})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "model")
        ansatz.tune(table, target="y", likelihood="normal", searches=20, folds=3, out=out,
                    options={"epochs": 20})  # fmt: skip
        trials = ansatz.load(out).evidence_["tuning"]["trials"]
    scores = np.array([np.mean(trial["scores"]) for trial in trials])
    figure, ax = plt.subplots(figsize=(5.2, 2.4))
    ax.axhline(scores[0], color=ORANGE, ls="--", label="default recipe")
    ax.plot(np.arange(1, len(scores)), scores[1:], "o", color=GREY, ms=4, label="trial")
    ax.step(np.arange(len(scores)), np.maximum.accumulate(scores), where="post", color=BLUE,
            label="best so far")  # fmt: skip
    ax.set(xlabel="trial", ylabel="log score, mean of 3 folds", xticks=range(0, 21, 5))
    ax.set_ylim(bottom=max(scores.min(), scores[0] - 1.5) - 0.05)
    ax.legend(loc="lower right")
    return figure


def symmetry() -> Figure:
    """Draws how far three networks are from commuting with rotations and flips."""
    from ansatz.symmetry import GroupAverage, certify

    x = torch.randn(8, 1, 16, 16)
    padded = torch.nn.Conv2d(1, 4, 3, padding=1)
    wrapped = torch.nn.Conv2d(1, 4, 3, padding=1, padding_mode="circular")
    cases = {
        "zero padding\ncyclic shifts": (padded, "cyclic_shift"),
        "circular padding\ncyclic shifts": (wrapped, "cyclic_shift"),
        "zero padding\nrotations and flips": (padded, "dihedral"),
        "group average\nrotations and flips": (GroupAverage(padded, "dihedral"), "dihedral"),
    }
    found = [certify(network, x, group, kind="equivariant").relative
             for network, group in cases.values()]  # fmt: skip
    figure, ax = plt.subplots(figsize=(5.2, 2.2))
    colors = [ORANGE if value > 1e-3 else BLUE for value in found]
    found = np.maximum(found, 10**-7.9)  # also 0 shall have a bar
    ax.barh(range(4), np.log10(found) + 8, left=-8, color=colors, height=0.6)
    ax.set(yticks=range(4), yticklabels=list(cases), xlabel="relative violation, powers of ten",
           xlim=(-8, 2), xticks=range(-8, 3, 2))  # fmt: skip
    ax.invert_yaxis()
    return figure


def augmentation() -> Figure:
    """One image under several augmentations."""
    from ansatz.data import augmentation as library

    picture = discs(1, 32, 3)[0]
    shown = {"original": None, "flip": library.Flip(), "affine": library.Affine(30, scale=0.2),
             "elastic": library.Elastic(), "erase": library.RandomErasing(10),
             "noise": library.Noise(0.1), "blur": library.Blur()}  # fmt: skip
    figure, panels = plt.subplots(1, len(shown), figsize=(6.4, 1.6))
    for ax, (name, change) in zip(panels, shown.items(), strict=True):
        values = torch.as_tensor(picture)[:, None]
        if change is not None:
            values, _ = change(values, None, torch.Generator().manual_seed(4))
        ax.imshow(values[0, 0], cmap="gray", vmin=0, vmax=1)
        ax.set_title(name)
        ax.axis("off")
    return figure


def attribution() -> Figure:
    """An image, and how much each pixel contributed to its class."""
    from ansatz.attribution import integrated_gradients

    pictures, kind, _ = discs(160, 16, 0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, padding=1, stride=2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 2),
    )  # fmt: skip
    x, y = torch.as_tensor(pictures)[:, None], torch.as_tensor(kind)
    rule = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(300):
        rule.zero_grad()
        torch.nn.functional.cross_entropy(network(x[:120]), y[:120]).backward()
        rule.step()
    figure, panels = plt.subplots(1, 6, figsize=(6.4, 1.35))
    found = integrated_gradients(network, x[120:123], y[120:123], baseline=0.3)
    values = found
    for k in range(3):
        left, right = panels[2 * k : 2 * k + 2]
        left.imshow(x[120 + k, 0], cmap="gray", vmin=0, vmax=1)
        bound = float(values[k, 0].abs().max())
        right.imshow(values[k, 0].detach(), cmap="RdBu_r", vmin=-bound, vmax=bound)
        left.axis("off")
        right.axis("off")
    return figure


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "ten-minutes": ten_minutes, "tables": tables, "images": images, "segmentation": segmentation,
    "survival": survival, "rankings": rankings, "linear-models": linear_models,
    "ensembles": ensembles, "compare": compare, "augmentation": augmentation,
    "attribution": attribution, "tune": tune, "symmetry": symmetry,
}  # fmt: skip
PICTURES = ("images", "segmentation", "augmentation", "attribution")  # pixels: PNG is smaller


def main() -> None:
    """Draws the named pictures, or all."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with plt.rc_context(STYLE):
        for name in sys.argv[1:] or DRAWINGS:
            torch.manual_seed(0)
            figure = DRAWINGS[name]()
            if name in PICTURES:
                IMAGES.mkdir(parents=True, exist_ok=True)
                path = IMAGES / f"{name}.png"
                figure.savefig(path, dpi=130, metadata={"Software": None})
            else:
                save(figure, IMAGES / f"{name}.svg", f"Result of the guide {name}")
            plt.close(figure)
            print(name)


if __name__ == "__main__":
    main()
