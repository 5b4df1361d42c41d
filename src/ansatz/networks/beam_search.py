"""Writes a text after a source: the most probable one that a beam search finds."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ansatz.layers.limits import require_whole


class Written(NamedTuple):
    """The codes of texts without boundaries, their mask, and their log-probabilities."""

    codes: Tensor  # (B, T)
    mask: Tensor  # (B, T)
    log_prob: Tensor  # (B,), the last boundary included


@torch.no_grad()
def beam_search(
    network: Any, memory: Any, *, length: int, beams: int = 5, penalty: float = 1.0
) -> Written:
    r"""Finds for each source a text of large normalised log-probability.

    .. math:: \arg\max_y \frac{\log p(y \mid x)}{|y|^\alpha}

    where :math:`|y|` counts the tokens with the last boundary. ``beams`` unfinished texts are
    followed side by side; a finished one leaves its beam to the next best. A search ends with as
    many finished texts as beams, or when no unfinished one could still win, if its tokens to come
    had probability 1. One beam is the greedy choice of each token.

    Args:
        network: a ``TeacherForced`` network, or any with ``boundary``,
            ``begin`` and ``step``.
        memory: what ``network.remember`` gave, of B sources.
        length: the greatest number of tokens, the last boundary not counted.
        beams: texts that are followed.
        penalty: :math:`\alpha`; 0 compares the probabilities themselves.

    Example:
        >>> import torch
        >>> from ansatz.networks import EncoderDecoder, beam_search
        >>> from ansatz.spec import InputSpec
        >>> words = InputSpec.sequence(vocabulary=9)
        >>> network = EncoderDecoder(InputSpec.joined(source=words, target=words), 3, width=8)
        >>> memory = network.eval().remember([torch.ones(2, 5).long(), torch.ones(2, 5).bool()])
        >>> beam_search(network, memory, length=4).log_prob.shape
        torch.Size([2])

    References:
        Wu et al. (2016), Google's neural machine translation system, section 7.
        https://arxiv.org/abs/1609.08144
    """
    K, end = require_whole("beams", beams, high=1_000), network.boundary
    state = network.begin(memory)
    B, device = len(memory[0]), memory[0].device
    new = torch.full((B,), end, device=device)
    texts = new.new_zeros(B, 1, 0)  # (B, beams, tokens)
    totals = torch.zeros(B, 1, dtype=torch.float64, device=device)  # log p of unfinished texts
    best = torch.full((B,), -torch.inf, dtype=torch.float64, device=device)  # normalised
    found, finished = [new.new_zeros(0)] * B, torch.zeros(B, dtype=torch.long, device=device)
    chance = best.clone()
    place = torch.arange(B, device=device)  # the source of each row that is still running
    for step in range(length + 1):
        state, logits = network.step(state, new)
        k = texts.shape[1]
        log_p = logits.log_softmax(-1).double().view(len(place), k, -1)
        V = log_p.shape[-1]
        ended = totals + log_p[..., end]  # (b, k)
        candidates = totals.unsqueeze(-1) + log_p
        if step == length:  # no further token: the boundary is all that is left
            candidates[..., :end] = -torch.inf
        value, order = candidates.flatten(1).topk(min(K, k * V))
        # A text ends only where its end is among the best K continuations.
        is_end = (order % V == end) & value.isfinite()
        finished[place] += is_end.sum(1)
        rank = torch.where(is_end, value, -torch.inf).max(1)
        score = rank.values / (step + 1) ** penalty
        better = score > best[place]
        for row in better.nonzero().flatten().tolist():
            source = int(place[row])
            beam = int(order[row, rank.indices[row]]) // V
            best[source], chance[source] = score[row], ended[row, beam]
            found[source] = texts[row, beam]
        candidates[..., end] = -torch.inf
        totals, picked = candidates.flatten(1).topk(min(K, k * (V - 1)))
        # The best that an unfinished text can still reach: no token costs anything.
        bound = totals[:, 0] / (length + 1) ** penalty
        running = (bound > best[place]) & totals[:, 0].isfinite() & (finished[place] < K)
        if step == length or not bool(running.any()):
            break
        keep = running.nonzero().flatten()
        parent, token = picked[keep] // V, picked[keep] % V
        rows = (keep.unsqueeze(1) * k + parent).flatten()
        state.select(rows)
        texts = torch.cat([texts.flatten(0, 1)[rows].view(*token.shape, -1), token[..., None]], -1)
        totals, place, new = totals[keep], place[keep], token.flatten()
    longest = max([1, *(len(text) for text in found)])
    codes = new.new_zeros(B, longest)
    mask = torch.zeros(B, longest, dtype=torch.bool, device=device)
    for row, text in enumerate(found):
        codes[row, : len(text)], mask[row, : len(text)] = text, True
    return Written(codes, mask, chance)
