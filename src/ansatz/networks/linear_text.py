"""The linear model of a text's words and pairs of words."""

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.networks.sequence_inputs import pair_count, present, read_sequence, words_and_pairs
from ansatz.spec import Inputs


class LinearText(nn.Module):
    r"""The linear predictor in the tf-idf weights of words and pairs of neighbours.

    .. math:: f(x) = W z + b, \qquad z_g = \frac{n_g \, w_g}{\sqrt{\sum_h n_h^2 w_h^2}}, \qquad
              w_g = 1 + \log \frac{1 + N}{1 + N_g}

    with :math:`n_g` the number of times that g is in the text and :math:`N_g` the number of the N
    training texts that hold it; pairs share ``pairs`` numbers by their hash. Where steps are
    numbers, z holds each one's mean, standard deviation, least, greatest and last value. W and b
    start at 0: the constant model.

    Args:
        inputs: sequences.
        outputs: :math:`P`.
        pairs: numbers that pairs share; 0 for words alone; by default four for each word.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - values: ``(B, T)`` codes or ``(B, T, D)``.
        - mask: ``(B, T)`` bool, True where a step is there.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import LinearText
        >>> from ansatz.spec import InputSpec
        >>> LinearText(InputSpec.sequence(vocabulary=9), 2)(torch.tensor([[3, 4]]))
        tensor([[0., 0.]], grad_fn=<AddBackward0>)

    References:
        Salton & Buckley (1988), Term-weighting approaches in automatic text retrieval.
    """

    weights: Tensor

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        pairs: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_sequence("linear_text", inputs)
        pairs = pair_count("linear_text", spec.vocabulary, pairs)
        self.vocabulary, self.pairs = spec.vocabulary, pairs
        self.size = spec.vocabulary + pairs if spec.vocabulary else 5 * spec.features
        self.output = affine(self.size, outputs, init="zeros", generator=generator)
        if spec.vocabulary:
            self.register_buffer("weights", torch.ones(self.size))

    def begin(self, values: Tensor, mask: Tensor, slopes: Tensor | None = None) -> None:
        """Sets the weights :math:`w_g` by the training texts."""
        if not self.vocabulary:
            return
        _, number, _ = self.counts(values, mask)
        holds = torch.bincount(number, minlength=self.size)
        self.weights.copy_(1 + ((1 + len(values)) / (1 + holds)).log())

    def counts(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row, number and count of each word and pair that is in a text."""
        found = words_and_pairs(values, mask, self.vocabulary, self.pairs)
        row, place = found.nonzero(as_tuple=True)
        keys, count = (row * self.size + found[row, place]).unique(return_counts=True)
        return keys // self.size, keys % self.size, count

    def terms(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row, number and value of each z of a text that is not 0."""
        row, number, count = self.counts(values, mask)
        z = count * self.weights[number]
        squares = z.new_zeros(len(values)).index_add_(0, row, z.square())
        return row, number, z / squares[row].sqrt()

    def design(self, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row, number and value of each z that is not 0."""
        if self.vocabulary:
            return self.terms(values, mask)
        found = self.summaries(*present(values, mask))
        row, number = found.nonzero(as_tuple=True)
        return row, number, found[row, number]

    def summaries(self, x: Tensor, mask: Tensor) -> Tensor:
        """The z of a signal, ``(B, 5 D)``."""
        there, count = mask.unsqueeze(-1), mask.sum(1, keepdim=True)
        mean = x.sum(1) / count.clamp(min=1)
        off = (x - mean.unsqueeze(1)).square() * there
        sd = (off.sum(1) / count.clamp(min=1) + 1e-12).sqrt()
        some = count > 0
        least = torch.where(some, x.masked_fill(~there, torch.inf).amin(1), 0)
        most = torch.where(some, x.masked_fill(~there, -torch.inf).amax(1), 0)
        last = (count - 1).clamp(min=0).unsqueeze(-1).expand(-1, 1, x.shape[-1])
        return torch.cat([mean, sd, least, most, x.gather(1, last).squeeze(1)], -1)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        values, mask = present(values, mask)
        if not self.vocabulary:
            return self.output(self.summaries(values, mask))
        row, number, z = self.terms(values, mask)
        added = self.output.weight.T[number] * z.unsqueeze(1)
        start = added.new_zeros(len(values), added.shape[1])
        return start.index_add(0, row, added) + self.output.bias
