"""The report on models of x: samples, distances, disclosure, unlikely rows."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.figures.number_format import printable
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table, Text
from ansatz.figures.style import figure, to_svg
from ansatz.generative.disclosure import measure_disclosure
from ansatz.generative.distances import (
    energy_distance,
    mean_discrepancy,
    precision_and_recall,
    standardized,
)
from ansatz.generative.two_sample import trees, two_sample_auc
from ansatz.metrics import Estimate
from ansatz.metrics.standard_error import mean_estimate
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport

SHOWN, WORST = 8, 8  # examples of a table or a picture
COMPARED = 1_000  # rows whose distances are computed
SPLITS = 5  # of the rows, for standard errors
_HERE = "ansatz.outcomes.report.generate"


def _drawn(evidence: Evidence, count: int) -> Tensor:
    posterior: Any = evidence.model.posterior
    given = evidence.job.y[:count] if posterior.given_coding is not None else None
    count = count if given is None else len(given)
    found: Tensor = posterior.draw(count, given, evidence.seed)
    return found


def _codes(evidence: Evidence, training: bool = False) -> Tensor:
    posterior: Any = evidence.model.posterior
    job = evidence.training.job if training and evidence.training else evidence.job
    found: Tensor = posterior.codes(job.rows)
    return found


def samples_section(evidence: Evidence) -> Section | None:
    """Samples beside the nearest training examples."""
    if evidence.training is None:
        return None
    posterior: Any = evidence.model.posterior
    drawn, train = _drawn(evidence, SHOWN), _codes(evidence, training=True)
    features = posterior.coding.features
    a, b = standardized(features(train), features(drawn))
    nearest = train[torch.cdist(b, a).argmin(1)]
    lead = "What the model draws, beside the training example that is nearest to each sample."
    if drawn.ndim > 2:
        real = _codes(evidence)[:SHOWN]
        parts: list[Any] = [_picture([drawn, nearest, real], ["drawn", "nearest", "test"])]
        if posterior.model.has_latents:
            parts += _latent_pictures(evidence, real)
        return Section("Samples", lead, parts)
    shown, near = (posterior.coding.contents(each) for each in (drawn, nearest))
    names = list(shown.columns)[:10]
    rows: list[list[Cell]] = []
    for k in range(len(shown)):
        rows.append(["drawn", *(_cell(shown[name].iloc[k]) for name in names)])
        rows.append(["nearest", *(_cell(near[name].iloc[k]) for name in names)])
    caption = "Drawn rows, each above the training row that is nearest to it."
    return Section("Samples", lead, [Table(["", *names], rows, caption)])


def _cell(value: Any) -> Cell:
    return printable(str(value), 24)


def _picture(rows: list[Tensor], names: list[str], caption: str = "") -> Figure:
    """Images of several kinds, a row for each."""
    count = max(len(row) for row in rows)
    with figure(height=1.0 * len(rows)) as paper:
        axes = paper.subplots(len(rows), count, squeeze=False)
        for line, (row, name) in enumerate(zip(rows, names, strict=True)):
            for place in range(count):
                own = axes[line, place]
                own.set_axis_off()
                if place < len(row):
                    _draw(own, row[place])
            axes[line, 0].set_title(name, loc="left", fontsize=8)
        text = caption or "From above: " + ", ".join(names) + " examples."
        return Figure(to_svg(paper), text, text)


def _draw(axes: Any, example: Tensor) -> None:
    values = example.float().numpy()
    if values.ndim == 2:  # a signal
        axes.plot(values.T)
        return
    if values.ndim == 4:  # a volume: its middle
        values = values[:, values.shape[1] // 2]
    image = np.moveaxis(values, 0, -1)
    if image.shape[-1] == 3:
        axes.imshow((image - image.min()) / max(np.ptp(image), 1e-9))
    else:
        axes.imshow(image[..., 0], cmap="gray")


def _latent_pictures(evidence: Evidence, real: Tensor) -> list[Figure]:
    """Reconstructions, and what each of a few latents changes."""
    posterior: Any = evidence.model.posterior
    model, count = posterior.model, len(real)
    given = evidence.job.y[:count] if posterior.given_coding is not None else None
    latents = model.encode(real, given)
    found = [
        _picture(
            [real, model.decode(latents, given)],
            ["test", "reconstructed"],
            "Test examples, and what the model makes of their latents.",
        )
    ]
    scale = latents.std(0)
    rows = []
    for place in scale.argsort(descending=True)[:4].tolist():
        moved = latents[:1].repeat(SHOWN, 1)
        moved[:, place] = torch.linspace(-2.5, 2.5, SHOWN).to(moved)
        same = None if given is None else given[:1].repeat(SHOWN, 1)
        rows.append(model.decode(moved, same))
    names = [f"latent {k + 1}" for k in scale.argsort(descending=True)[:4].tolist()]
    caption = "One example while one latent goes from -2.5 to 2.5, for the latents that vary most."
    return [*found, _picture(rows, names, caption)]


def distances_section(evidence: Evidence) -> Section:
    """Distances of samples and test examples, beside the simple generators."""
    posterior: Any = evidence.model.posterior
    real = _codes(evidence)[:COMPARED]
    seed = evidence.seed
    compared = {"model": posterior, **_simple(evidence)}
    rows: list[list[Cell]] = []
    for name, each in compared.items():
        given = evidence.job.y[: len(real)] if each.given_coding is not None else None
        drawn = each.draw(len(real), given, seed)
        rows.append([name, *_distances(posterior.coding, real, drawn, seed)])
    if evidence.training is not None:  # what no generator can beat
        other = _codes(evidence, training=True)[: len(real)]
        rows.append(["training rows", *_distances(posterior.coding, real, other, seed)])
    head = ["", "energy distance", "+-", "MMD", "precision", "recall", "two-sample AUC", "+-"]
    caption = (
        f"{len(real):,} test examples and as many samples, features in standard deviations. "
        "Two-sample AUC: boosted trees tell real from drawn; 0.5 where they cannot. Standard "
        f"errors are of {SPLITS} parts, and of Hanley and McNeil."
    )
    lead = "How far samples are from examples that the model never saw, beside simple generators."
    return Section("Samples and test examples", lead, [Table(head, rows, caption)])


def _distances(coding: Any, real: Tensor, drawn: Tensor, seed: int) -> list[Cell]:
    a, b = (coding.features(each).reshape(len(each), -1) for each in (real, drawn))
    few = min(len(a), len(b)) < 4 * SPLITS
    parts = [] if few else [energy_distance(a[k::SPLITS], b[k::SPLITS]) for k in range(SPLITS)]
    error = float(np.std(parts, ddof=1) / math.sqrt(SPLITS)) if parts else None
    precise, recalled = precision_and_recall(a, b)
    if real.ndim > 2:  # trees see the leading components of images
        a, b = standardized(a, b)
        axes = torch.linalg.svd(a, full_matrices=False).Vh[:32].T
        a, b = a @ axes, b @ axes
    area = two_sample_auc(a.numpy(), b.numpy(), seed=seed)
    return [
        *(energy_distance(a, b) if few else float(np.mean(parts)), error),
        *(mean_discrepancy(a, b), precise, recalled, area.value, area.error),
    ]


def _simple(evidence: Evidence) -> dict[str, Any]:
    """The simple generators, fitted to the training rows."""
    if evidence.training is None:
        return {}
    outcome, model = evidence.model.outcome, evidence.model
    learn = evidence.training.job

    def fit() -> dict[str, Any]:
        likelihood = model.task.likelihood(learn.target)
        seed = model.task.settings.seed
        return dict(outcome.baselines(model.structure, likelihood, learn, seed)[0])

    return evidence.once("simple generators", fit)


def columns_section(evidence: Evidence) -> Section | None:
    """Distances column by column, and trees that are trained on samples."""
    posterior: Any = evidence.model.posterior
    if len(posterior.coding.shape) > 1:
        return None
    real = posterior.coding.contents(_codes(evidence))
    drawn = posterior.coding.contents(_drawn(evidence, len(real)))
    names = posterior.coding.names()
    rows: list[list[Cell]] = [[name, column_distance(real[name], drawn[name])] for name in names]
    rows.sort(key=lambda row: -float(row[1] or 0.0))
    caption = (
        "The largest difference of cumulative shares of a number, half the sum of differences of "
        "the shares of levels: 0 for equal columns, 1 for columns that share nothing."
    )
    parts: list[Any] = [Table(["column", "distance"], rows[:20], caption)]
    if evidence.training is not None and len(names) > 1:
        parts.append(_trained_on_samples(evidence, real, names))
    lead = "Whether each column is drawn as it is, and whether samples can train a model."
    return Section("Columns, and a model trained on samples", lead, parts)


def column_distance(real: Any, drawn: Any) -> float:
    """The largest difference of the cumulative shares of numbers, or total variation of levels."""
    import pandas as pd
    from scipy.stats import ks_2samp

    if real.dtype.kind == "M":
        real, drawn = real.astype("int64"), drawn.astype("int64")
    if pd.api.types.is_numeric_dtype(real.dtype) and real.dtype.kind != "b":
        pair = [each.dropna().to_numpy(dtype=float) for each in (real, drawn)]
        return float(ks_2samp(*pair).statistic) if all(map(len, pair)) else math.nan
    shares = [each.astype(str).value_counts(normalize=True) for each in (real, drawn)]
    return float(0.5 * shares[0].sub(shares[1], fill_value=0.0).abs().sum())


def _trained_on_samples(evidence: Evidence, real: Any, names: list[str]) -> Table:
    posterior: Any = evidence.model.posterior
    learned = posterior.coding.contents(_codes(evidence, training=True))
    drawn = posterior.coding.contents(_drawn(evidence, len(learned)))
    rows: list[list[Cell]] = []
    for name in names[-3:]:
        found: list[Cell] = []
        for table in (learned, drawn):
            known = table.dropna(subset=[name])
            enough = known[name].astype(str).nunique() > 1
            found.append(
                trees(known, name, evidence.seed).auc(real.dropna(subset=[name]))
                if enough
                else None
            )
        rows.append([name, *found])
    caption = (
        "Boosted trees of a column given the others, trained on real and on drawn rows, and "
        "evaluated on the test rows: R squared of numbers, AUC of levels."
    )
    return Table(["column", "from real rows", "from drawn rows"], rows, caption)


def disclosure_section(evidence: Evidence) -> Section | None:
    """What samples disclose about the training rows."""
    if evidence.training is None:
        return None
    posterior: Any = evidence.model.posterior
    train, test = _codes(evidence, training=True), _codes(evidence)
    features = posterior.coding.features
    drawn = posterior.draw(min(len(train), 4_000), None, evidence.seed)
    scores = None
    if posterior.model.has_density:
        few = min(len(train), len(test), COMPARED)
        y = evidence.training.job.y
        inside = posterior.likelihood.density(train[:few], y[:few]).value
        outside = posterior.likelihood.density(test[:few], evidence.job.y[:few]).value
        scores = inside, outside
    flat = [features(each).reshape(len(each), -1) for each in (train, test, drawn)]
    found = measure_disclosure(flat[0], flat[1], flat[2], scores, seed=evidence.seed)
    lead = "What the samples disclose about the rows that the model was trained on."
    return Section("Disclosure", lead, [Text(sentence) for sentence in found.words()])


def unlikely_section(evidence: Evidence) -> Section | None:
    """The test examples of the least density."""
    posterior: Any = evidence.model.posterior
    if not posterior.model.has_density:
        return None
    codes = _codes(evidence)
    found = posterior.likelihood.density(codes, evidence.job.y)
    order = found.value.argsort()[:WORST]
    if codes.ndim > 2:
        part = _picture([codes[order]], ["least likely"], "The test examples of least density.")
        return Section("Most unlikely examples", "", [part])
    shown = posterior.coding.contents(codes[order])
    names = list(shown.columns)[:10]
    rows: list[list[Cell]] = [
        [
            int(evidence.rows[int(row)]),
            float(found.value[row]),
            *(_cell(shown[name].iloc[k]) for name in names),
        ]
        for k, row in enumerate(order)
    ]
    caption = "Rows by their number in the table, with their log density in nats."
    return Section("Most unlikely rows", "", [Table(["row", "log density", *names], rows, caption)])


class GenerateReport(OutcomeReport):
    """The contribution of models of x to reports."""

    prediction = "log density"

    def chapters(self) -> list[Chapter]:
        """Lists the chapters."""
        return [
            Chapter(30, "samples", f"{_HERE}:samples_section"),
            Chapter(31, "distances", f"{_HERE}:distances_section"),
            Chapter(32, "columns", f"{_HERE}:columns_section"),
            Chapter(33, "disclosure", f"{_HERE}:disclosure_section"),
            Chapter(34, "unlikely examples", f"{_HERE}:unlikely_section"),
        ]

    def calibration(self, evidence: Evidence) -> str:
        """Says what stands in its place."""
        return "samples are compared with test examples below, beside simple generators."

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Nats per example."""
        if forecast.losses is None:
            return {}
        return {"nll": mean_estimate(forecast.losses.double(), evidence.weight)}

    def targets(self, evidence: Evidence) -> list[Any]:
        """None: an example is not a number."""
        return []

    def words(self, evidence: Evidence, row: int) -> str | None:
        """None: the example is shown itself."""
        return None

    def response(self, evidence: Evidence) -> None:
        """None: no number that columns have effects on."""
        return None

    def respond(self, outcome: Any, predictive: Any, response: Any) -> NDArray[np.float64]:
        """None is asked for."""
        return np.zeros((len(predictive.raw), 0))
