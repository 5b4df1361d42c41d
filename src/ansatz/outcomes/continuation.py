"""A fitted language model as what continues texts: probabilities of the next token."""

from typing import Any

import torch
from torch import Tensor

from ansatz.errors import ModelError, UsageError
from ansatz.fitting.model import Model, Trained


class Continuation:
    """The probabilities of the next token by a fitted model, from the state of its network.

    A network with a limit to its positions reads the last tokens: past its length, the window moves
    on by quarters of it, with state or without it alike. Several networks are averaged.

    Args:
        model: a fitted language model.
    """

    training, each, length = False, True, None

    def __init__(self, model: Model) -> None:
        self.networks = list(model.posterior.networks)
        odd = [each for each in self.networks if not hasattr(each.network, "advance")]
        if odd or not self.networks:
            name = odd[0].name if odd else model.posterior.name
            raise UsageError(
                f"{name} does not continue texts: it has no step from one token to the next "
                "(gpt, mingru, gru, lstm, lru, rnn and ngram have)."
            )

    def eval(self) -> None:
        """Nothing to do: the networks are in evaluation mode."""

    def train(self, mode: bool = True) -> None:
        """Refused: the networks stay in evaluation mode."""
        if mode:
            raise ModelError("a fitted model does not train here.")

    @torch.no_grad()
    def advance(
        self, values: Tensor, mask: Tensor | None = None, state: Any = None
    ) -> tuple[Tensor, Any]:
        """Log probabilities of the next token, ``(B, V)``, and the state after the values."""
        before, states = (None, [None] * len(self.networks)) if state is None else state
        codes = values if before is None else torch.cat([before, values], 1)
        if mask is None:
            mask = torch.ones_like(codes, dtype=torch.bool)
        found, after = [], []
        for trained, own in zip(self.networks, states, strict=True):
            logits, new = _advance(trained, codes, mask, values.shape[1], own)
            found.append(trained.objective.attach(logits).double().log_softmax(-1))
            after.append(new)
        mean = torch.stack(found).logsumexp(0) if len(found) > 1 else found[0]
        return mean.log_softmax(-1), (codes, after)


def _advance(
    trained: Trained, codes: Tensor, mask: Tensor, new: int, state: Any
) -> tuple[Tensor, Any]:
    network: Any = trained.network
    if network.length is None:
        values = codes if state is None else codes[:, -new:]
        return network.advance(values, mask, state)  # type: ignore[no-any-return]
    total = codes.shape[1]
    first, old = _window(total, network.length), _window(total - new, network.length)
    if state is None or first != old:
        return network.advance(codes[:, first:], mask[:, first:], None)  # type: ignore[no-any-return]
    return network.advance(codes[:, -new:], mask[:, first:], state)  # type: ignore[no-any-return]


def _window(total: int, length: int) -> int:
    """Where the tokens begin that a network of ``length`` positions reads."""
    stride = max(1, length // 4)
    return max(0, -(-(total - length) // stride)) * stride
