"""Recurrent networks on sequences of numbers or of tokens."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers import GRU, LRU, LSTM, Bidirectional, Elman, MinGRU, MinLSTM, Recurrent
from ansatz.layers.code_embedding import CodeEmbedding
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.recurrent import State, last_present
from ansatz.layers.schemes import draw_normal
from ansatz.networks.window import WindowLevel, window_parts
from ansatz.spec import Inputs, InputSpec


class RecurrentNetwork(nn.Module):
    r"""Recurrent layers above one another, then one answer for a sequence or for each step.

    Tokens are embedded first, numbers mapped to the width. Above the first layer each reads the sum
    of input and output of the one below (a residual connection), normalised. One answer for the
    sequence is a linear map of the mean over the steps, their largest numbers, and the last state:
    the mean sees all steps alike, the maximum finds a rare word, the last state keeps the order.

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: :math:`P`.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` numbers or ``(B, T)`` codes; padding may hold anything.
        - mask: ``(B, T)`` bool, True where a step is present; padding is at the end.
        - returns: ``(B, P)``, or ``(B, P, T)`` with ``each``, zero where a step is absent.

    Of windows of series it takes ``(values, ahead, level)``: a linear map of what is known ahead
    is added, and :class:`~ansatz.networks.WindowLevel` brings the answer to the window's level.
    """

    heads: tuple[str, ...] = ("output",)
    layer: ClassVar[type[Recurrent]]
    name: ClassVar[str]

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        depth: int = 2,
        bidirectional: bool = False,
        dropout: float = 0.1,
        each: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        name, spec = self.name, InputSpec.of(inputs)
        if spec.structure != "sequence":
            raise UsageError(
                f"{name} takes sequences, got inputs of structure '{spec.structure}'; say "
                "InputSpec.sequence(features=D) or InputSpec.sequence(vocabulary=V)."
            )
        require_whole(f"width of {name}", width)
        require_whole(f"depth of {name}", depth, high=1024)
        if bidirectional and width % 2:
            raise UsageError(f"bidirectional {name} needs an even width, got {width}.")
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of {name} must be in [0, 1), got {dropout}.")
        self.spec, self.each, self.length = spec, each, None
        self.entrance: nn.Module
        if spec.vocabulary:
            start = draw_normal(torch.empty(spec.vocabulary, width), 1.0, generator)
            self.entrance = nn.Embedding(spec.vocabulary, width, _weight=start)
        elif spec.cardinalities:
            self.entrance = CodeEmbedding(spec.cardinalities, width, generator=generator)
        else:
            require_whole(f"features of {name}", spec.features)
            self.entrance = affine(spec.features, width, init="lecun_normal", generator=generator)
        self.layers = nn.ModuleList(
            self._layer(width, bidirectional, generator) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.dropout = nn.Dropout(dropout)
        self.output = affine(
            width if each else 3 * width, outputs, init="lecun_normal", gain=0.1,
            generator=generator,
        )  # fmt: skip
        if "ahead" in dict(spec.parts):  # a window of a series
            _, ahead, horizon = window_parts(name, spec)
            self.ahead = affine(ahead, outputs, init="lecun_normal", gain=0.1, generator=generator)
            self.level = WindowLevel(outputs, horizon)

    def _layer(
        self, width: int, bidirectional: bool, generator: torch.Generator | None
    ) -> Recurrent:
        make = self.layer
        if not bidirectional:
            return make(width, width, generator=generator)  # type: ignore[call-arg]
        half = [make(width, width // 2, generator=generator) for _ in "12"]  # type: ignore[call-arg]
        return Bidirectional(*half)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome."""
        pairs = zip(self.layers, self.norms, strict=True)
        return [[self.entrance], *([*pair] for pair in pairs), [self.output]]

    def advance(
        self, values: Tensor, mask: Tensor | None = None, state: Sequence[State] | None = None
    ) -> tuple[Tensor, list[State]]:
        """The answer after the last step, ``(B, P)``, and the state of each layer after it.

        The last step is present; padding is in front. ``mask`` may cover earlier steps too.
        """
        self._check(values)
        mask = None if mask is None else mask[:, -values.shape[1] :]
        if mask is not None:
            values = torch.where(mask if self.spec.vocabulary else mask.unsqueeze(-1), values, 0)
        h, states = self.entrance(values), []
        before = [None] * len(self.layers) if state is None else state
        for layer, norm, old in zip(self.layers, self.norms, before, strict=True):
            y, new = layer(self.dropout(norm(h)), mask, old)
            h = h + y
            states.append(new)
        return self.output(self.dropout(h[:, -1])), states

    def forward(
        self, values: Tensor, mask: Tensor | None = None, level: Tensor | None = None
    ) -> Tensor:
        if level is not None:  # the mask's place holds what is known of the time ahead
            assert mask is not None
            found: Tensor = self.level(self.answer(values, None) + self.ahead(mask), level)
            return found
        return self.answer(values, mask)

    def answer(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """One answer for each sequence or each step of it."""
        self._check(values)
        if mask is None:
            mask = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
        present = mask.unsqueeze(-1)
        absent = mask if self.spec.vocabulary else present
        h = self.entrance(torch.where(absent, values, 0))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = h + layer(self.dropout(norm(h)), mask)[0]
        h = torch.where(present, h, 0)
        if self.each:
            return torch.where(present, self.output(self.dropout(h)), 0).transpose(1, 2)
        mean = h.sum(1) / present.sum(1).clamp(min=1)
        largest = torch.where(present, h, -torch.inf).amax(1)
        largest = torch.where(mask.any(1, keepdim=True), largest, 0)  # of an empty sequence
        last = last_present(h, mask, torch.zeros_like(mean))
        return self.output(self.dropout(torch.cat([mean, largest, last], -1)))

    def _check(self, values: Tensor) -> None:
        D = self.spec.features or len(self.spec.cardinalities)
        tokens = bool(self.spec.vocabulary)
        if values.ndim != (2 if tokens else 3) or (not tokens and values.shape[-1] != D):
            kind = "values" if self.spec.features else "codes"
            wanted = f"{kind} of shape (B, T{'' if tokens else f', {D}'})"
            raise UsageError(f"{self.name} needs {wanted}, got {tuple(values.shape)}.")


class ElmanNetwork(RecurrentNetwork):
    r"""A network of plain recurrent layers, for short sequences.

    Options, shapes and the pooling of steps are those of ``RecurrentNetwork``; the layer is
    ``ansatz.layers.Elman``.

    .. math:: h^{(l)} = h^{(l-1)} + \mathrm{Elman}(\mathrm{LN}(h^{(l-1)})), \qquad
              f(x) = W [\mathrm{mean}_t h_t, \max_t h_t, h_T] + b

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: raw numbers per sequence or per step.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` or ``(B, T)`` codes; mask: ``(B, T)``; returns ``(B, P)``, or
          ``(B, P, T)`` with ``each``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("rnn", InputSpec.sequence(features=3), 2, width=16)
        >>> network(torch.randn(4, 10, 3), torch.ones(4, 10, dtype=torch.bool)).shape
        torch.Size([4, 2])

    References:
        Elman (1990), Finding structure in time.
    """

    layer, name = Elman, "rnn"


class LSTMNetwork(RecurrentNetwork):
    r"""A network of long short-term memory, for sequences of up to a few hundred steps.

    Options, shapes and the pooling of steps are those of ``RecurrentNetwork``; the layer is
    ``ansatz.layers.LSTM``.

    .. math:: h^{(l)} = h^{(l-1)} + \mathrm{LSTM}(\mathrm{LN}(h^{(l-1)})), \qquad
              f(x) = W [\mathrm{mean}_t h_t, \max_t h_t, h_T] + b

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: raw numbers per sequence or per step.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` or ``(B, T)`` codes; mask: ``(B, T)``; returns ``(B, P)``, or
          ``(B, P, T)`` with ``each``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("lstm", InputSpec.sequence(features=3), 2, width=16)
        >>> network(torch.randn(4, 10, 3), torch.ones(4, 10, dtype=torch.bool)).shape
        torch.Size([4, 2])

    References:
        Hochreiter & Schmidhuber (1997), Long short-term memory.
    """

    layer, name = LSTM, "lstm"


class GRUNetwork(RecurrentNetwork):
    r"""A network of gated recurrent units, for sequences of up to a few hundred steps.

    Options, shapes and the pooling of steps are those of ``RecurrentNetwork``; the layer is
    ``ansatz.layers.GRU``.

    .. math:: h^{(l)} = h^{(l-1)} + \mathrm{GRU}(\mathrm{LN}(h^{(l-1)})), \qquad
              f(x) = W [\mathrm{mean}_t h_t, \max_t h_t, h_T] + b

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: raw numbers per sequence or per step.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` or ``(B, T)`` codes; mask: ``(B, T)``; returns ``(B, P)``, or
          ``(B, P, T)`` with ``each``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gru", InputSpec.sequence(features=3), 2, width=16)
        >>> network(torch.randn(4, 10, 3), torch.ones(4, 10, dtype=torch.bool)).shape
        torch.Size([4, 2])

    References:
        Cho et al. (2014), Learning phrase representations using RNN encoder-decoder.
        https://arxiv.org/abs/1406.1078
    """

    layer, name = GRU, "gru"


class MinGRUNetwork(RecurrentNetwork):
    r"""A network of minGRU layers, computed by a scan, for long sequences.

    Options, shapes and the pooling of steps are those of ``RecurrentNetwork``; the layer is
    ``ansatz.layers.MinGRU``.

    .. math:: h^{(l)} = h^{(l-1)} + \mathrm{MinGRU}(\mathrm{LN}(h^{(l-1)})), \qquad
              f(x) = W [\mathrm{mean}_t h_t, \max_t h_t, h_T] + b

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: raw numbers per sequence or per step.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` or ``(B, T)`` codes; mask: ``(B, T)``; returns ``(B, P)``, or
          ``(B, P, T)`` with ``each``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("mingru", InputSpec.sequence(features=3), 2, width=16)
        >>> network(torch.randn(4, 10, 3), torch.ones(4, 10, dtype=torch.bool)).shape
        torch.Size([4, 2])

    References:
        Feng et al. (2024), Were RNNs all we needed? https://arxiv.org/abs/2410.01201
    """

    layer, name = MinGRU, "mingru"


class MinLSTMNetwork(RecurrentNetwork):
    r"""A network of minLSTM layers, computed by a scan, for long sequences.

    Options, shapes and the pooling of steps are those of ``RecurrentNetwork``; the layer is
    ``ansatz.layers.MinLSTM``.

    .. math:: h^{(l)} = h^{(l-1)} + \mathrm{MinLSTM}(\mathrm{LN}(h^{(l-1)})), \qquad
              f(x) = W [\mathrm{mean}_t h_t, \max_t h_t, h_T] + b

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: raw numbers per sequence or per step.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` or ``(B, T)`` codes; mask: ``(B, T)``; returns ``(B, P)``, or
          ``(B, P, T)`` with ``each``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("minlstm", InputSpec.sequence(features=3), 2, width=16)
        >>> network(torch.randn(4, 10, 3), torch.ones(4, 10, dtype=torch.bool)).shape
        torch.Size([4, 2])

    References:
        Feng et al. (2024), Were RNNs all we needed? https://arxiv.org/abs/2410.01201
    """

    layer, name = MinLSTM, "minlstm"


class LRUNetwork(RecurrentNetwork):
    r"""A network of linear recurrent units, computed by a scan, for very long sequences.

    Options, shapes and the pooling of steps are those of ``RecurrentNetwork``; the layer is
    ``ansatz.layers.LRU``.

    .. math:: h^{(l)} = h^{(l-1)} + \mathrm{LRU}(\mathrm{LN}(h^{(l-1)})), \qquad
              f(x) = W [\mathrm{mean}_t h_t, \max_t h_t, h_T] + b

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: raw numbers per sequence or per step.
        width: numbers per step between the layers.
        depth: number of layers.
        bidirectional: read in both directions, each with half of the width.
        dropout: the probability that an input of a layer, or of the answer, is dropped in training.
        each: one answer for each step instead of one for the sequence.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` or ``(B, T)`` codes; mask: ``(B, T)``; returns ``(B, P)``, or
          ``(B, P, T)`` with ``each``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("lru", InputSpec.sequence(features=3), 2, width=16)
        >>> network(torch.randn(4, 10, 3), torch.ones(4, 10, dtype=torch.bool)).shape
        torch.Size([4, 2])

    References:
        Orvieto et al. (2023), Resurrecting recurrent neural networks for long sequences.
        https://arxiv.org/abs/2303.06349
    """

    layer, name = LRU, "lru"
