"""Text from a language model: one token after another, each given those before it."""

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole


class Generator(Protocol):
    """The contract of a network that continues texts: a state, and a step from one to the next.

    Attributes:
        length: the most tokens that it reads; None for any number.
    """

    length: int | None
    training: bool

    def advance(
        self, values: Tensor, mask: Tensor | None = None, state: Any = None
    ) -> tuple[Tensor, Any]:
        """Reads ``(B, T)`` further tokens; gives the logits of the next and the state after them.

        ``mask`` covers all tokens so far, those of the state included. The state is a tensor with
        a row for each text, a list or tuple of states, an object with a method ``select(rows)``,
        or None before the first token.
        """
        ...


def select_rows(state: Any, rows: Tensor) -> Any:
    """The states of some of the texts."""
    if state is None or isinstance(state, Tensor):
        return state if state is None else state[rows]
    if isinstance(state, tuple | list):
        return type(state)(select_rows(each, rows) for each in state)
    state.select(rows)
    return state


def next_token_distribution(
    logits: Tensor, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> Tensor:
    r"""Computes the probabilities that the next token is drawn with.

    .. math:: p_k \propto \exp(z_k / \tau)

    on the ``top_k`` most probable tokens, and of these on the fewest whose sum reaches ``top_p``.

    Args:
        logits: raw scores z.
        temperature: :math:`\tau > 0`; small ones favour the most probable token.
        top_k: number of tokens to draw from; 0 for all.
        top_p: their least total probability.

    Shapes:
        - logits: ``(B, V)``; returns ``(B, V)``, rows that sum to 1.

    Example:
        >>> import torch
        >>> from ansatz.networks import next_token_distribution
        >>> next_token_distribution(torch.tensor([[0.0, 0.0, -1.0]]), top_k=2)
        tensor([[0.5000, 0.5000, 0.0000]])

    References:
        Holtzman et al. (2020), The curious case of neural text degeneration, section 3.
        https://arxiv.org/abs/1904.09751
    """
    if not temperature > 0 or not 0 < top_p <= 1:
        raise UsageError(
            "temperature must be positive and top_p in (0, 1], got "
            f"temperature={temperature} and top_p={top_p}."
        )
    scores = logits / temperature
    if top_k:
        least = scores.topk(min(top_k, scores.shape[-1])).values[..., -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    p = scores.softmax(-1)
    if top_p < 1:
        ordered, order = p.sort(dim=-1, descending=True, stable=True)
        beyond = ordered.cumsum(-1) - ordered >= top_p  # the sum before it is enough already
        p = torch.zeros_like(p).scatter(-1, order, ordered.masked_fill(beyond, 0))
        p = p / p.sum(-1, keepdim=True)
    return p


def stream_tokens(
    network: Any,
    prompts: Tensor,
    tokens: int = 20,
    *,
    mask: Tensor | None = None,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    end: int | None = None,
    cache: bool = True,
    generator: torch.Generator | None = None,
) -> Iterator[Tensor]:
    """Yields one new token for each text at a time, ``(B,)``, as soon as it is known.

    The arguments are those of :func:`generate`. A text that has ended continues with 0.

    Example:
        >>> import torch
        >>> from ansatz.networks import GPT, stream_tokens
        >>> from ansatz.spec import InputSpec
        >>> tokens = InputSpec.sequence(vocabulary=9, length=8)
        >>> model = GPT(tokens, 9, width=8, heads=2, each=True)
        >>> len(list(stream_tokens(model, torch.ones(1, 3, dtype=torch.long), 4)))
        4
    """
    values, mask = _prompt(network, prompts, mask, tokens)
    state: Any = None
    running, new = torch.ones(len(values), dtype=torch.bool, device=values.device), values
    for _ in range(tokens):
        logits, state = _last(network, new if cache else values, mask, state if cache else None)
        if temperature == 0:
            chosen = logits.argmax(-1)
        else:
            p = next_token_distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
            chosen = torch.multinomial(p, 1, generator=generator).squeeze(-1)
        if end is not None:
            chosen = torch.where(running, chosen, 0)
            running = running & (chosen != end)
        yield chosen
        if end is not None and not running.any():
            return
        new = chosen.unsqueeze(1)
        if not cache:
            values = torch.cat([values, new], 1)
        if mask is not None:
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)


def generate(
    network: Any,
    prompts: Tensor,
    tokens: int = 20,
    *,
    mask: Tensor | None = None,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    beams: int = 1,
    end: int | None = None,
    cache: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continues texts by the tokens that a language model finds probable.

    Args:
        network: a language model with one output for each token: ``GPT``, a recurrent network or
            ``NGram``, with ``each=True``.
        prompts: codes to continue; present tokens on the right (padding on the left).
        tokens: the greatest number of new tokens.
        mask: True where a token of the prompts is present; all when not given.
        temperature: 0 takes the most probable token each time; otherwise tokens are drawn, see
            :func:`next_token_distribution`.
        top_k: number of tokens to draw from; 0 for all.
        top_p: their least total probability.
        beams: above 1, the number of continuations that a beam search follows; it returns the one
            of the largest log probability.
        end: the code that ends a text; 0 follows it.
        cache: keep the state after earlier tokens (of an attention their keys and values): the same
            result in less time.
        generator: where tokens are drawn from; torch's global one when not given.

    Shapes:
        - prompts, mask: ``(B, T)``; returns the new codes ``(B, up to tokens)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import GPT, generate
        >>> from ansatz.spec import InputSpec
        >>> vocabulary = InputSpec.sequence(vocabulary=9, length=8)
        >>> model = GPT(vocabulary, 9, width=8, heads=2, each=True)
        >>> generate(model, torch.ones(2, 3, dtype=torch.long), 4).shape
        torch.Size([2, 4])
    """
    if require_whole("beams", beams, high=1_000) > 1:
        if temperature or end is not None:
            raise UsageError("a beam search takes neither a temperature nor an end.")
        return _search(network, prompts, tokens, mask, beams)
    steps = stream_tokens(
        network, prompts, tokens, mask=mask, temperature=temperature, top_k=top_k, top_p=top_p,
        end=end, cache=cache, generator=generator,
    )  # fmt: skip
    return torch.stack(list(steps), 1)


def _last(network: Any, values: Tensor, mask: Tensor | None, state: Any) -> tuple[Tensor, Any]:
    """Logits of the next token, ``(B, V)``, without dropout, and the state after the values."""
    training = network.training
    if training:
        network.eval()
    try:
        with torch.inference_mode():
            logits, state = network.advance(values, mask, state)
    finally:
        if training:
            network.train()
    return logits.clone(), state  # a tensor like any other


def _prompt(
    network: Any, prompts: Tensor, mask: Tensor | None, tokens: int
) -> tuple[Tensor, Tensor | None]:
    """The prompts, and their mask where any token is absent."""
    if not hasattr(network, "advance") or not getattr(network, "each", True):
        raise UsageError("generate needs a language model: gpt with each=True, outputs=vocabulary.")
    if prompts.shape[1] == 0 or (mask is not None and not mask[:, -1].all()):
        raise UsageError("each prompt needs a last token; put the padding on the left.")
    total = prompts.shape[1] + require_whole("tokens", tokens) - 1
    if network.length is not None and total > network.length:
        raise UsageError(
            f"the network has positions for {network.length} tokens, {total} are needed; ask for "
            "fewer tokens or shorten the prompts."
        )
    return prompts, None if mask is None or mask.all() else mask


def _search(network: Any, prompts: Tensor, tokens: int, mask: Tensor | None, beams: int) -> Tensor:
    """The best of ``beams`` continuations that are followed side by side."""
    new, mask = _prompt(network, prompts, mask, tokens)
    B, state = len(new), None
    scores = new.new_zeros(B, 1, dtype=torch.float64)  # one beam at first: all are the prompt
    found = new.new_zeros(B, 1, 0)
    for _ in range(tokens):
        logits, state = _last(network, new, mask, state)
        V = logits.shape[-1]
        steps = logits.log_softmax(-1).view(B, -1, V)
        totals = (scores.unsqueeze(-1) + steps).flatten(1)  # (B, beams V)
        scores, picked = totals.topk(min(beams, totals.shape[1]))
        parent, token = picked // V, picked % V  # (B, beams)
        rows = (torch.arange(B, device=new.device).unsqueeze(1) * found.shape[1] + parent).flatten()
        state = select_rows(state, rows)
        found = found.flatten(0, 1)[rows].view(B, picked.shape[1], -1)
        found = torch.cat([found, token.unsqueeze(-1)], -1)
        if mask is not None:
            mask = torch.cat([mask[rows], torch.ones_like(mask[rows, :1])], 1)
        new = token.flatten().unsqueeze(1)
    return found[:, 0]
