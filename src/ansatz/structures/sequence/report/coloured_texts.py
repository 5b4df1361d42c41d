"""Reports texts coloured by what the prediction owes to each of their tokens."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.figures.number_format import number
from ansatz.figures.section import Figure, Section, Text
from ansatz.fitting.contracts.inference import Predictive
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import outcome_words, prediction_words
from ansatz.structures.sequence.report.attributions import TokenAttributions, token_attributions
from ansatz.structures.sequence.report.contribution import are_texts
from ansatz.structures.sequence.report.text_drawing import Coloured, draw_texts

RANDOM, WORST = 3, 5  # texts that are shown
MOST = 80  # tokens of a text that are coloured
WORK = 4e9  # tokens times parameters, beyond which fewer texts are shown


class _Explained(NamedTuple):
    drawn: Coloured
    found: TokenAttributions


def section(evidence: Evidence) -> Section | None:
    """Shows some random texts and those with the largest loss, coloured."""
    networks = evidence.model.posterior.networks
    if not networks or not are_texts(evidence.X) or not len(evidence.X):
        return None
    losses = evidence.row_losses().numpy()
    order = np.argsort(-losses, kind="stable")
    order = order[np.isfinite(losses[order])]
    cost = max(1, networks[0].parameters * MOST)
    count = max(2, min(RANDOM + WORST, int(WORK / cost)))
    worst = order[: min(WORST, max(1, count - RANDOM))]
    others = np.random.default_rng(evidence.seed).permutation(order[len(worst) :])
    rows = [*others[: count - len(worst)], *worst]
    shown = [_explained(evidence, int(row), float(losses[row])) for row in rows]
    drawn = [each.drawn for each in shown]
    what = "the log odds of the predicted class" if _has_classes(evidence) else "the prediction"
    gaps = [each.found.gap for each in shown if each.found.gap is not None]
    if gaps:
        how = (
            "integrated gradients over the embeddings of tokens, from embeddings of zero; they add "
            f"up to the difference of the scores but for {number(max(gaps), 2)} at most"
        )
    else:
        how = "the loss of score when a token is left out"
    caption = (
        f"Blue raises {what}, vermilion lowers it, each text on its own scale: {how}. Grey text is "
        "beyond the tokens that were coloured."
    )
    words = [f"{each.head}: {each.text}" for each in drawn]
    few = len(rows) - len(worst)
    lead = (
        f"{few} random {evidence.rows_called} and the {len(worst)} with the largest "
        f"{evidence.loss_name}, coloured by what the prediction depends on."
    )
    figure = Figure(draw_texts(drawn), caption, f"Coloured texts. {' '.join(words)}"[:1_000])
    notes = ["The first network of the ensemble is explained."] if len(networks) > 1 else []
    return Section("Coloured texts", lead, [figure, *(Text(note, "note") for note in notes)])


def _has_classes(evidence: Evidence) -> bool:
    return evidence.classes is not None


def _explained(evidence: Evidence, row: int, loss: float) -> _Explained:
    model: Any = evidence.model
    trained, tokens = model.posterior.networks[0], model.encoder.tokens
    text = str(evidence.X.texts[row])
    found = tokens.tokenizer.encode(text)
    many = min(MOST, model.encoder.length)
    codes = torch.tensor(found.ids[:many])
    head = (
        f"predicted {prediction_words(evidence, row, 40)}, "
        f"true {outcome_words(evidence, row, 40)}, "
        f"{evidence.loss_name} {number(loss, 3)}"
    )
    if not len(codes):
        nothing = TokenAttributions(torch.zeros(0), None)
        return _Explained(Coloured(head, text, np.zeros(len(text)), 0), nothing)
    shares = token_attributions(trained.network, codes, _score(evidence, row))
    spans = found.offsets[: len(codes)]
    end = max((stop for _, stop in spans), default=0)
    return _Explained(Coloured(head, text, _by_letter(text, spans, shares.value), end), shares)


def _score(evidence: Evidence, row: int) -> Any:
    """The log odds of the predicted class; of numbers the prediction."""
    model: Any = evidence.model
    trained = model.posterior.networks[0]
    objective = trained.objective

    def raw(y: Tensor) -> Predictive:
        whole = objective.attach(y.double(), None)
        found: Predictive = model.outcome.serve(Predictive(trained.likelihood, whole))
        return found

    if not _has_classes(evidence):
        return lambda y: trained.likelihood.point(raw(y).raw).reshape(len(y), -1).sum(1)
    with torch.no_grad():
        probs = model.of_classes.probabilities(model.predictive(evidence.X[[row]], notes=[]))
    code = int(probs[0].argmax())

    def odds(y: Tensor) -> Tensor:
        found: Tensor = model.of_classes.probabilities(raw(y)).clamp(min=1e-300).log()  # (B, K)
        others = torch.cat([found[:, :code], found[:, code + 1 :]], 1)
        return found[:, code] - others.logsumexp(1)

    return odds


def _by_letter(text: str, spans: list[tuple[int, int]], value: Tensor) -> NDArray[np.float64]:
    """The share of every letter's token; tokens that are bytes of one letter add up."""
    found = np.zeros(len(text))
    for (start, stop), share in zip(spans, value.tolist(), strict=True):
        found[start:stop] += share
    return found
