"""What the score of a text owes to each of its tokens."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ansatz.attribution import integrated_gradients
from ansatz.layers.mode import evaluation_mode

STEPS = 16  # points of the integral
Score = Callable[[Tensor], Tensor]  # of outputs (B, P), (B,)


class TokenAttributions(NamedTuple):
    """The share of each token in a score.

    Args:
        value: ``(T,)``.
        gap: what the shares fail the difference of scores by; None where tokens were left out.
    """

    value: Tensor
    gap: float | None


def token_attributions(network: nn.Module, codes: Tensor, score: Score) -> TokenAttributions:
    r"""Integrated gradients over the embeddings of a text's tokens, from embeddings of zero.

    .. math:: a_t = \sum_d e_{td} \int_0^1 \frac{\partial s}{\partial e_{td}}(u\, e) \, du

    Where a network embeds pairs of neighbours as well, each of the two gets half of the pair's.
    Of a network without embeddings :math:`a_t` is the loss of score when token t is left out.

    Args:
        network: on ``(values, mask)``.
        codes: ``(T,)`` of one text.
        score: from outputs to the number that is explained.
    """
    mask = torch.ones(1, len(codes), dtype=torch.bool)
    with evaluation_mode(network):
        tables = _tables(network, codes.unsqueeze(0), mask)
        if not tables:
            return TokenAttributions(_left_out(network, codes, score), None)
        return _integrated(network, codes, tables, score)


class _Table(NamedTuple):
    module: nn.Embedding
    vectors: Tensor  # (1, L, D) of the text's tokens, and of pairs of them behind


def _tables(network: nn.Module, codes: Tensor, mask: Tensor) -> list[_Table]:
    """The embeddings that read the codes themselves: not those of positions or segments."""
    found: list[_Table] = []

    def look(module: Any, given: Any, vectors: Tensor) -> None:
        (index,) = given
        start = index[:, : codes.shape[1]] if index.ndim == 2 else index
        if start.shape == codes.shape and torch.equal(start, codes):
            found.append(_Table(module, vectors.detach()))

    parts = [part for part in network.modules() if isinstance(part, nn.Embedding)]
    hooks = [part.register_forward_hook(look) for part in parts]
    try:
        with torch.no_grad():
            network(codes, mask)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _integrated(
    network: nn.Module, codes: Tensor, tables: Sequence[_Table], score: Score
) -> TokenAttributions:
    sizes = [table.vectors.numel() for table in tables]
    start = torch.cat([table.vectors.flatten() for table in tables]).unsqueeze(0)

    def answer(x: Tensor) -> Tensor:
        shapes = [(len(x), *table.vectors.shape[1:]) for table in tables]
        given = [part.reshape(s) for part, s in zip(x.split(sizes, 1), shapes, strict=True)]
        hooks = [
            table.module.register_forward_hook(lambda *_, value=value: value)
            for table, value in zip(tables, given, strict=True)
        ]
        try:
            many = codes.expand(len(x), -1)
            found: Tensor = network(many, torch.ones_like(many, dtype=torch.bool))
            return found
        finally:
            for hook in hooks:
                hook.remove()

    shares = integrated_gradients(answer, start, score, steps=STEPS, batch_size=STEPS)
    with torch.no_grad():
        ends = score(answer(torch.cat([start, 0 * start])))
    total = torch.zeros(len(codes), dtype=shares.dtype)
    for part, table in zip(shares.split(sizes, 1), tables, strict=True):
        each = part.reshape(table.vectors.shape).sum(-1)[0]  # (L,)
        pairs = each[len(codes) :]
        total += each[: len(codes)]
        total[: len(pairs)] += pairs / 2
        total[1 : len(pairs) + 1] += pairs / 2
    return TokenAttributions(total, float((total.sum() - ends[0] + ends[1]).abs()))


def _left_out(network: nn.Module, codes: Tensor, score: Score) -> Tensor:
    many = codes.expand(len(codes) + 1, -1)
    mask = ~torch.eye(len(codes) + 1, len(codes), dtype=torch.bool)  # the last row has all
    with torch.no_grad():
        found = score(network(many, mask))
    return found[-1] - found[:-1]
