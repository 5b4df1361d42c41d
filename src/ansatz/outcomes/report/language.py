"""Supplies what language models add to a report: coloured text, losses by place, samples."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import UNLABELLED
from ansatz.data.sequences.passage_source import PassageSource
from ansatz.data.sequences.spelling import text_of
from ansatz.figures.number_format import number, percent, with_error
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table, Text
from ansatz.figures.style import LINEAR, MODEL, figure, to_svg
from ansatz.metrics import Estimate, mean_estimate
from ansatz.networks import stream_tokens
from ansatz.outcomes.continuation import Continuation
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport
from ansatz.report.paired_scores import Evaluated, ScorePair, log_score_pair

LINES, WIDTH = 16, 76  # of the text shown
BINS = 12
SAMPLE, WINDOWS = 240, 25  # tokens generated; batches of windows
_HERE = "ansatz.outcomes.report.language"


def surprises(evidence: Evidence) -> Tensor:
    """-log p of each test token in nats, ``(N, S)``."""
    outcome: Any = evidence.model.outcome
    found: Tensor = evidence.once(
        "surprises", lambda: outcome.surprise(evidence.predictive(), evidence.outcome)
    )
    return found


def text_section(evidence: Evidence) -> Section:
    """Shows the beginning of the test text, each token coloured by its loss."""
    y, losses = evidence.outcome, surprises(evidence)
    known = y != UNLABELLED
    codes, values = y[known].tolist(), losses[known].tolist()
    letters: list[tuple[str, float, bool]] = []  # letter, loss, begins a token
    gap = "" if evidence.model.outcome.bytes is not None else " "  # type: ignore[attr-defined]
    tokens: Any = evidence.model.encoder
    for code, value in zip(codes, values, strict=True):
        word = "¶" if code == 0 else text_of(tokens.tokens, [code]) + gap
        letters += [(letter, value, not k) for k, letter in enumerate(word)]
        if len(letters) > 2 * LINES * WIDTH:
            break
    rows = _wrapped(letters)
    worst = int(losses[known].argmax())
    name = str(evidence.model.labels[codes[worst]])
    mean = float(losses[known].mean())
    lead = (
        f"A token costs {number(mean)} nats in the mean, half of them less than "
        f"{number(float(losses[known].median()))}; the most surprising is {name!r} with "
        f"{number(max(values))}."
    )
    caption = (
        "The beginning of the test text. The darker the orange behind a token, the greater its "
        "loss -log p given what precedes it; from 6 nats on it is full."
    )
    return Section("Text coloured by loss", lead, [Figure(_draw(rows), caption, "Coloured text.")])


def _wrapped(letters: list[tuple[str, float, bool]]) -> list[list[tuple[str, float, bool]]]:
    rows: list[list[tuple[str, float, bool]]] = [[]]
    for letter, value, begins in letters:
        shown = {"\n": "↵", "\t": "→"}.get(letter, letter if letter.isprintable() else "·")
        rows[-1].append((shown, value, begins))
        if letter == "\n" or len(rows[-1]) >= WIDTH:
            rows.append([])
        if len(rows) > LINES:
            break
    return [row for row in rows if row][:LINES]


def _draw(rows: list[list[tuple[str, float, bool]]]) -> str:
    with figure(7.2, 0.19 * len(rows) + 0.1) as paper:
        axes = paper.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(len(rows), 0)
        axes.set_axis_off()
        for line, row in enumerate(rows):
            for column, (letter, value, _) in enumerate(row):
                strength = min(value / 6, 1.0)
                if strength > 0.08:
                    axes.broken_barh(
                        [(column, 1)],
                        (line + 0.04, 0.92),
                        color=LINEAR,
                        alpha=0.75 * strength,
                        lw=0,
                    )
                if letter != " ":
                    axes.text(column + 0.5, line + 0.72, letter, ha="center", fontsize=8)
        return to_svg(paper)


def places_section(evidence: Evidence) -> Section:
    """Shows the loss by the number of tokens before, and by the token's frequency."""
    y, losses = evidence.outcome, surprises(evidence)
    known = y != UNLABELLED
    values = losses[known].numpy()
    shift = evidence.model.posterior.networks[0].objective.shift
    counts = np.bincount(y[known].numpy(), minlength=len(evidence.model.labels))
    share = counts / counts.sum() if shift is None else shift.softmax(-1).numpy()
    if not np.ptp(share):
        share = counts / counts.sum()
    frequency = -np.log2(np.maximum(share[y[known].numpy()], 1e-12))
    left, right = _binned(*_by_place(evidence)), _binned(frequency, values)
    rare = right[-1]
    lead = (
        f"With {left[0][0]:.0f} tokens before it a token costs {number(left[0][1])} nats, with "
        f"{left[-1][0]:.0f} {number(left[-1][1])}. The rarest tenth of the tokens cost "
        f"{number(rare[1])}."
    )
    with figure(7.0, 2.6) as paper:
        first, second = paper.subplots(1, 2, sharey=True)
        for axes, found, label in (
            (first, left, "tokens before it"),
            (second, right, "rarity, −log2 of the frequency (bits)"),
        ):
            x, mean, error = (np.array(each) for each in zip(*found, strict=True))
            axes.errorbar(x, mean, 2 * error, marker="o", color=MODEL, lw=1.2, ms=3)
            axes.set_xlabel(label)
        first.set_ylabel("loss of a token (nats)")
        svg = to_svg(paper)
    caption = (
        "Mean loss in bins of equally many test tokens, with two standard errors (tokens taken as "
        "independent). Left: windows of the test text, each read without the text before it."
    )
    return Section("Loss by position and frequency", lead, [Figure(svg, caption, "Loss curves.")])


def _by_place(evidence: Evidence) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The place of tokens in windows of the test text, and their loss."""
    rows: Any = evidence.job.rows
    trained, likelihood = evidence.model.posterior.networks[0], evidence.likelihood
    places, found = [], []
    for position, batch in enumerate(PassageSource(rows, 16, shuffle=False).batches(0)):
        losses = likelihood.loss(trained(batch.inputs), batch.target)
        seen = batch.weight > 0
        places.append(torch.arange(seen.shape[1]).expand_as(seen)[seen])
        found.append(losses[seen])
        if position == WINDOWS:
            break
    return torch.cat(places).numpy(), torch.cat(found).double().numpy()


def _binned(x: NDArray[Any], values: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Means of x and of values in bins of equally many tokens, with standard errors."""
    order = np.argsort(x, kind="stable")
    found = []
    for part in np.array_split(order, min(BINS, len(np.unique(x)))):
        own = values[part]
        if len(own):
            error = own.std() / max(1, len(own)) ** 0.5
            found.append((float(x[part].mean()), float(own.mean()), float(error)))
    return found


def samples_section(evidence: Evidence) -> Section | None:
    """Generates continuations of the beginning of the test text."""
    network: Any = evidence.model.posterior.networks
    if not network or not hasattr(network[0].network, "advance"):
        return None
    encoder: Any = evidence.model.encoder
    codes = evidence.outcome[0][evidence.outcome[0] != UNLABELLED][:32]
    start = torch.cat([codes.new_zeros(1), codes]).unsqueeze(0)
    rows: list[list[Cell]] = []
    for temperature in (0.0, 0.7, 1.0):
        draws = torch.Generator().manual_seed(evidence.seed)
        model: Any = Continuation(evidence.model)
        steps = stream_tokens(model, start, SAMPLE, temperature=temperature, end=0, generator=draws)
        found = [int(step) for step in steps]
        text = text_of(encoder.tokens, [code for code in found if code])
        rows.append([f"{temperature:g}", text.replace("\n", " ↵ ")])
    prompt = text_of(encoder.tokens, codes.tolist()).replace("\n", " ↵ ")
    note = Text(f"The beginning, from the test text: {prompt}", "note")
    table = Table(["temperature", "text"], rows, "Temperature 0 takes the most probable token.")
    lead = "Continuations of the first test tokens, not chosen by hand."
    return Section("Generated text", lead, [note, table])


_CHAPTERS = [
    Chapter(41, "text coloured by loss", f"{_HERE}:text_section"),
    Chapter(42, "loss by position and frequency", f"{_HERE}:places_section"),
    Chapter(43, "generated text", f"{_HERE}:samples_section"),
]


class LanguageReport(OutcomeReport):
    """The contribution of language models, whose scores are means over tokens.

    Standard errors are over passages: neighbouring tokens are dependent.
    """

    def chapters(self) -> list[Chapter]:
        """Lists the chapters on text, places and samples."""
        return _CHAPTERS

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Estimates nats per token, perplexity, bits per byte and accuracy."""
        y, weight = evidence.outcome, evidence.weight
        known = (y != UNLABELLED).double()
        tokens, right = known.sum(1), ((forecast.point == y) * known).sum(1)
        found = {"accuracy": _ratio(right, tokens, weight)}
        if forecast.losses is None:
            return found
        total = forecast.losses * tokens
        nll = _ratio(total, tokens, weight)
        found["nll"] = nll
        perplexity = float(np.exp(nll.value))
        found["perplexity"] = Estimate(perplexity, perplexity * nll.influence)
        sizes = evidence.model.outcome.bytes  # type: ignore[attr-defined]
        if sizes is not None:
            size = (sizes[y.clamp(min=0)] * known).sum(1)
            bits = _ratio(total / float(np.log(2)), size, weight)
            found["bits_per_byte"] = bits
        return found

    def calibration(self, evidence: Evidence) -> str:
        """Compares the probability of the most probable token with its accuracy."""
        y = evidence.outcome
        known = (y != UNLABELLED).double()
        with torch.no_grad():
            p, top = evidence.predictive().raw.softmax(-1).max(-1)
        gap = ((top == y).double() - p) * known
        estimate = _ratio(gap.sum(1), known.sum(1), evidence.weight)
        error = float(estimate.influence.std() / max(1, len(y)) ** 0.5)
        mean = float((p * known).sum() / known.sum())
        words = (
            f"the mean probability of the most probable token is {percent(mean)}, its accuracy "
            f"differs by {with_error(100 * estimate.value, 100 * error)} points"
        )
        if abs(estimate.value) < 2 * error:
            return f"{words}; no miscalibration is detected."
        return f"{words}: it is {'over' if estimate.value < 0 else 'under'}confident."

    def response(self, evidence: Evidence) -> None:
        """None: tokens have no common feature."""
        return None

    def words(self, evidence: Evidence, row: int) -> str:
        """The text of a passage."""
        codes = evidence.outcome[row]
        encoder: Any = evidence.model.encoder
        return text_of(encoder.tokens, codes[codes > 0].tolist())

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Tests whether the tokens are equal."""
        return torch.equal(a.job.y, b.job.y)

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the mean log score of each passage."""
        return log_score_pair(a, b)

    def score_beside(self, a: Evaluated, b: Evaluated) -> None:
        """None: there is one score."""
        return None


def _ratio(above: Tensor, below: Tensor, weight: Tensor) -> Estimate:
    """The ratio of two sums over passages, by the delta method."""
    size = mean_estimate(below, weight).value or 1.0
    value = mean_estimate(above, weight).value / size
    return Estimate(value, (above - value * below) / size)


class MaskedReport(LanguageReport):
    """The contribution of masked language models, whose hidden tokens are scattered."""

    def chapters(self) -> list[Chapter]:
        """None of its own."""
        return []
