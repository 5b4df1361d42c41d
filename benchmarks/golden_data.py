"""Small tables, images, signals and masks with a fixed seed, for the golden cases.

Values are rounded, so that a processor whose exponential differs in the last bit makes the same.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[np.float64]


def flats(rows: int) -> pd.DataFrame:
    """Rents by columns of every role: numbers with gaps, words, an order, a date, a counter."""
    rng = np.random.default_rng(1)
    area = rng.uniform(20, 140, rows).round()
    town = rng.choice(["Jena", "Gera", "Ulm"], rows)
    street = rng.integers(0, 30, rows)
    sold = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, rows), unit="D")
    mean = 8 * area + 150 * (town == "Jena") + 40 * np.sin(street)
    frame = pd.DataFrame(
        {
            "number": np.arange(rows) + 1000,
            "area": np.where(rng.uniform(size=rows) < 0.1, np.nan, area),
            "town": np.where(rng.uniform(size=rows) < 0.05, None, town),
            "street": [f"street {k}" for k in street],
            "balcony": rng.uniform(size=rows) < 0.5,
            "sold": sold.strftime("%Y-%m-%d"),
        }
    )
    frame["rent"] = (mean + 60 * rng.normal(size=rows) + 100).round(1)
    return frame


def numbers(rows: int, seed: int = 2) -> pd.DataFrame:
    """Three numbers and a word, with outcomes of many kinds that depend on them."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, rows)).round(3)
    word = rng.choice(["u", "v"], rows)
    score = 0.8 * a - 0.5 * b * b + 0.6 * (word == "v")
    noise = rng.normal(size=rows)
    years = rng.uniform(0.5, 3, rows).round(2)
    trials = rng.integers(3, 12, rows)
    share = 1 / (1 + np.exp(-score))
    low, mid = score + noise < -0.6, score + noise < 0.5
    parts = rng.gamma(2 + np.exp(0.5 * np.stack([score, -score, 0 * score], 1))) + 0.2
    parts = (parts / parts.sum(1, keepdims=True)).round(4)
    parts[:, 2] = (1 - parts[:, 0] - parts[:, 1]).round(4)
    return pd.DataFrame(
        {
            **{"a": a, "b": b, "c": c, "word": word},
            "y": (score + 0.5 * noise).round(4),
            "z": (a - score + rng.normal(size=rows)).round(4),
            "positive": (np.exp(0.4 * score) * rng.gamma(4, 0.25, rows)).round(4) + 0.01,
            "years": years,
            "count": rng.poisson(years * np.exp(0.5 * score)),
            "trials": trials,
            "hits": rng.binomial(trials, share),
            "size": np.where(low, "low", np.where(mid, "mid", "high")),
            "yes": np.where(rng.uniform(size=rows) < share, "yes", "no"),
            **{"sand": parts[:, 0], "silt": parts[:, 1], "clay": parts[:, 2]},
            "group": rng.integers(0, max(rows // 6, 4), rows),
            "day": np.arange(rows),
            "copies": rng.integers(1, 4, rows),
        }
    )


def patients(rows: int) -> pd.DataFrame:
    """Times until an event, censored; two causes; intervals between visits."""
    rng = np.random.default_rng(3)
    age, arm = rng.uniform(40, 80, rows).round(), rng.choice(["control", "drug"], rows)
    life = 30 * np.exp(-0.03 * (age - 60) + 0.5 * (arm == "drug")) * rng.weibull(1.5, rows)
    end = rng.uniform(10, 60, rows)
    weeks = np.minimum(life, end).round(1) + 0.1
    died = (life <= end).astype(int)
    return pd.DataFrame(
        {
            **{"age": age, "arm": arm, "weeks": weeks, "died": died},
            "cause": died * (1 + (rng.uniform(size=rows) < 0.3)),
            "start": (weeks * rng.uniform(0, 0.4, rows)).round(2),
            "from": np.floor(weeks / 8) * 8 + 0.5,
            "to": np.where(died == 1, np.floor(weeks / 8) * 8 + 8.5, np.nan),
        }
    )


def drinks(rows: int) -> tuple[pd.DataFrame, list[str]]:
    """Orders of three drinks that depend on how warm the day is."""
    rng = np.random.default_rng(4)
    warm = rng.normal(size=rows).round(3)
    worth = np.column_stack([warm, -warm, 0 * warm]) + rng.gumbel(size=(rows, 3))
    names = np.array(["milk", "rum", "tea"])
    return pd.DataFrame({"warm": warm}), [">".join(names[row]) for row in np.argsort(-worth, 1)]


def discs(count: int, size: int = 12) -> tuple[Array, Array, Array]:
    """Images of discs with lying or standing stripes: values in 0..255, masks, radii."""
    rng = np.random.default_rng(5)
    i, j = np.mgrid[:size, :size]
    images, masks, radii = [], [], []
    for k in range(count):
        (a, b), r = rng.uniform(size * 0.35, size * 0.65, 2), rng.uniform(size / 4, size / 2.6)
        disc = np.hypot(i - a, j - b) < r
        stripes = np.sin(1.6 * (i, j)[k % 2] + rng.uniform(0, 6))
        noise = 10 * rng.normal(size=disc.shape)
        images.append(np.clip(70 + disc * (80 + 60 * stripes) + noise, 0, 255).round())
        masks.append(disc)
        radii.append(round(r, 2))
    return np.stack(images).astype(np.uint8), np.stack(masks).astype(np.uint8), np.array(radii)


def kinds(count: int) -> Array:
    """The classes of :func:`discs`."""
    return np.array(["lying", "standing"])[np.arange(count) % 2]


def signals(count: int, length: int = 24) -> tuple[Array, Array]:
    """Slow and fast waves with a phase of their own."""
    rng = np.random.default_rng(6)
    speed = 1 + np.arange(count) % 2
    wave = np.sin(np.outer(speed, np.linspace(0, 6, length)) + rng.uniform(0, 6, (count, 1)))
    return (wave + 0.3 * rng.normal(size=wave.shape)).round(3), np.array(["slow", "fast"])[
        speed - 1
    ]


def write_images(folder: Path, images: Array, names: list[str]) -> None:
    """PNG files of these names below ``folder``."""
    for image, name in zip(images, names, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.astype(np.uint8)).save(path)


def write_csv(folder: Path, frame: pd.DataFrame, name: str = "table.csv") -> Path:
    """The frame as a file in ``folder``."""
    frame.to_csv(folder / name, index=False)
    return folder / name
