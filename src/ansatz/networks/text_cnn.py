"""Convolutions over the words of a text, and the greatest answer over time."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.layers.dense import drop
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.networks.inputs import check_widths
from ansatz.networks.sequence_inputs import present, read_sequence
from ansatz.spec import Inputs


class TextCNN(nn.Module):
    r"""Filters over windows of neighbouring words, each by its greatest answer in the text.

    .. math:: f(x) = W [\max_t \phi(F_k [e_t, \dots, e_{t+k-1}] + c_k)]_{k} + b

    with :math:`e_t` the embedding of word t and k the width of a window. A window may reach beyond
    the last word, where zeros stand, but begins within the text.

    Args:
        inputs: sequences.
        outputs: :math:`P`.
        width: numbers of an embedding.
        windows: the widths k.
        filters: for each width.
        dropout: share of the filters' answers dropped in training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T)`` codes or ``(B, T, D)``.
        - mask: ``(B, T)`` bool, True where a step is there.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import TextCNN
        >>> from ansatz.spec import InputSpec
        >>> TextCNN(InputSpec.sequence(features=2), 1)(torch.randn(4, 7, 2)).shape
        torch.Size([4, 1])

    References:
        Kim (2014), Convolutional neural networks for sentence classification.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        windows: Sequence[int] = (3, 4, 5),
        filters: int = 100,
        dropout: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("width of text_cnn", width)
        require_whole("filters of text_cnn", filters)
        self.windows = check_widths("text_cnn", windows)
        spec = read_sequence("text_cnn", inputs)
        self.embedding = None
        size = spec.features
        if spec.vocabulary:
            size, count = width, spec.vocabulary
            start = torch.empty(count, width).uniform_(-0.25, 0.25, generator=generator)
            self.embedding = nn.Embedding(count, width, _weight=start)
        self.filters = nn.ModuleList(
            affine(k * size, filters, generator=generator) for k in self.windows
        )
        self.drop = drop(dropout)
        self.output = affine(filters * len(self.windows), outputs, gain=0.1, generator=generator)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        values, mask = present(values, mask)
        x = values if self.embedding is None else self.embedding(values)
        x = x * mask.unsqueeze(-1)  # (B, T, D)
        found = []
        for k, each in zip(self.windows, self.filters, strict=True):
            window = nn.functional.pad(x, (0, 0, 0, k - 1)).unfold(1, k, 1)  # (B, T, D, k)
            answers = torch.relu(each(window.flatten(2))) * mask.unsqueeze(-1)  # none below 0
            found.append(answers.amax(1))
        return self.output(self.drop(torch.cat(found, -1)))
