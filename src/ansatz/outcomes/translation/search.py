"""Translations by a posterior: a beam search, source by source of similar length."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from ansatz.data.sequences.pairs import Pairs
from ansatz.networks import beam_search

AT_ONCE = 64  # sources that are translated at once


class Translation(NamedTuple):
    """A text and its log-probability given its source."""

    text: str
    log_prob: float


def translations(posterior: Any, rows: Pairs, *, beams: int = 5) -> list[Translation]:
    """The translation of each source."""
    own = getattr(posterior, "translate", None)
    if own is not None:
        found: list[Translation] = own(rows)
        return found
    answers = [Translation("", 0.0)] * len(rows)
    order, texts = list(range(len(rows))), getattr(rows.source, "texts", None)
    if texts is not None:  # an empty text stays empty
        order = sorted((k for k in order if texts[k].strip()), key=lambda k: len(texts[k]))
    for first in range(0, len(order), AT_ONCE):
        part = order[first : first + AT_ONCE]
        for place, each in zip(part, _search(posterior, rows[part], beams), strict=True):
            answers[place] = each
    return answers


def stream(posterior: Any, rows: Pairs, *, beams: int = 5) -> Iterator[Translation]:
    """The same one after another, as soon as each is known."""
    for first in range(0, len(rows), 8):
        yield from translations(posterior, rows[slice(first, first + 8)], beams=beams)


@torch.no_grad()
def _search(posterior: Any, rows: Pairs, beams: int) -> list[Translation]:
    encoder, network = posterior.encoder, posterior.networks[0].network
    memory = network.remember(list(encoder.read(rows, notes=[])))
    codes, mask, log_prob = beam_search(network, memory, length=encoder.length, beams=beams)
    texts = encoder.texts(codes, mask)
    return [Translation(*each) for each in zip(texts, log_prob.tolist(), strict=True)]
