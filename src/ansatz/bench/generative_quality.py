"""Measures generators: densities of MNIST, synthetic tables, imputation, anomalies."""

import time
from typing import Any

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding

CASES = ("mnist", "adult", "abalone", "diamonds")
MISSING = 0.2  # share of the values that are removed


def quality_generative(options: BenchOptions) -> list[Finding]:
    """Runs the cases with one seed each."""
    runs = {"mnist": _mnist, "adult": _adult, "abalone": _imputed, "diamonds": _imputed}
    return [found for name in options.pick(list(CASES)) for found in runs[name](name)]


def _mnist(name: str) -> list[Finding]:
    """The bounds of a VAE on binarised digits, and strangers by their p-value."""
    from ansatz import Synthesizer
    from ansatz import data as ansatz_data

    digits, clothes = (ansatz_data.load(each) for each in ("mnist", "fashion-mnist"))
    parts = [_images(each) for each in (digits, clothes)]
    (train, test), (_, strangers) = parts
    began = time.process_time()
    model = Synthesizer("vae", "bernoulli", epochs=26, batch_size=128, learning_rate=1e-3)
    model.fit(train)
    seconds = time.process_time() - began
    bound = float(model.score_samples(test, draws=1).mean())
    weighted = float(model.score_samples(test[:2_000], draws=100).mean())
    own, other = (model.density(each[:2_000])["p_value"] for each in (test, strangers))
    facts = {"processor_seconds": seconds, "epochs": 26, "parameters": model.model_.parameters}
    return [
        Finding(
            "mnist: evidence lower bound of a VAE",
            "nats per binarised digit",
            bound,
            limit={"ours": Bound(at_least=-91.0)},
            facts=facts,
        ),
        Finding(
            "mnist: bound by 100 importance weights",
            "nats per binarised digit, 2,000 digits",
            weighted,
            limit={"ours": Bound(at_least=-88.5)},
            facts=facts,
        ),
        Finding(
            "mnist: Fashion-MNIST by its p-value",
            "AUC",
            area(-np.asarray(other), -np.asarray(own)),
            limit={"ours": Bound(at_least=0.98)},
            facts=facts,
        ),
    ]


def _images(found: Any) -> tuple[Any, Any]:
    """Training and test images of a data set, ``(N, 1, 28, 28)`` uint8."""
    images = found.grids.load().numpy()
    part = found.frame["split"].to_numpy()
    return images[part == "train"], images[part == "test"]


def _adult(name: str) -> list[Finding]:
    """Trees trained on synthetic rows, evaluated on real ones."""
    from ansatz import Synthesizer
    from ansatz import data as ansatz_data
    from ansatz.generative.two_sample import trees, two_sample_auc

    frame = ansatz_data.load("adult").frame
    target = "income" if "income" in frame else frame.columns[-1]
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.8 * len(order))
    train, test = frame.iloc[order[:cut]], frame.iloc[order[cut:]]
    found = []
    real = trees(train, target).auc(test)
    for generator in ("independent", "copula", "ppca", "vae"):
        began = time.process_time()
        model = Synthesizer(generator).fit(train)
        drawn = model.sample(len(train), seed=0)
        seconds = time.process_time() - began
        facts = {"processor_seconds": seconds, "from real rows": real}
        bars = generator == "vae"
        found += [
            Finding(
                f"adult: trees trained on rows of {generator}",
                "AUC on real test rows",
                trees(drawn, target).auc(test),
                limit={"ours": Bound(at_least=0.90)} if bars else {},
                facts=facts,
            ),
            Finding(
                f"adult: real test rows or {generator}",
                "AUC of boosted trees",
                two_sample_auc(test, drawn.iloc[: len(test)], seed=0).value,
                limit={"ours": Bound(at_most=0.62)} if bars else {},
                facts=facts,
            ),
        ]
    return found


def _imputed(name: str) -> list[Finding]:
    """RMSE of numbers that were removed, beside scikit-learn's chained regressions."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    from ansatz import Synthesizer
    from ansatz import data as ansatz_data

    frame = ansatz_data.load(name).frame.select_dtypes("number").astype(float)
    frame = frame.iloc[:: max(1, len(frame) // 10_000)].reset_index(drop=True)
    rng = np.random.default_rng(0)
    gone = rng.random(frame.shape) < MISSING
    holed = frame.mask(gone)
    scale = frame.std().to_numpy()
    plain = IterativeImputer(random_state=0).fit_transform(holed)
    theirs = _rmse(plain, frame, gone, scale)
    found = []
    for generator in ("copula", "vae"):
        began = time.process_time()
        made = Synthesizer(generator).fit(holed).impute(holed, 20)
        bounds = np.stack([made.interval(column) for column in frame], 1)
        inside = (frame.to_numpy() >= bounds[..., 0]) & (frame.to_numpy() <= bounds[..., 1])
        facts = {"processor_seconds": time.process_time() - began, "IterativeImputer": theirs}
        found += [
            Finding(
                f"{name}: values imputed by {generator}",
                "RMSE in standard deviations, mean of 20 draws",
                _rmse(made.mean().to_numpy(), frame, gone, scale),
                limit={"ours": Bound(at_most=theirs)},
                facts=facts,
            ),
            Finding(
                f"{name}: 90 % intervals by {generator}",
                "share of the removed values inside",
                float(inside[gone].mean()),
                limit={"ours": Bound(at_least=0.85, at_most=0.95)},
                facts=facts,
            ),
        ]
    return found


def _rmse(filled: Any, frame: Any, gone: Any, scale: Any) -> float:
    errors = ((np.asarray(filled, float) - frame.to_numpy()) / scale)[gone]
    return float(np.sqrt((errors**2).mean()))


def area(positive: Any, negative: Any) -> float:
    """The share of pairs in which the first is larger, ties half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([positive, negative]))
    count, others = len(positive), len(negative)
    return float((ranks[:count].sum() - count * (count + 1) / 2) / (count * others))
