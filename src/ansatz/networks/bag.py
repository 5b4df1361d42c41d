"""A bag of words and pairs of words."""

import torch
from torch import Tensor, nn

from ansatz.layers.dense import drop
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.networks.sequence_inputs import pair_count, present, read_sequence, words_and_pairs
from ansatz.spec import Inputs


class Bag(nn.Module):
    r"""The mean of the embeddings of a text's words and pairs of neighbours, and a linear map.

    .. math:: f(x) = W \bar{e} + \frac{s}{\sqrt{n}} \sum_g r_g + b, \qquad
              \bar{e} = \frac{1}{n} \sum_g e_g

    over the n words and pairs g of the text; pairs share ``pairs`` embeddings by their hash. The
    ratios :math:`r_g` are one number per output. :meth:`begin` begins them at what each word or
    pair alone says about the outcome: for two classes the log-odds of naive Bayes, to first order.
    Where steps are numbers, :math:`e_g` is a layer of a step or of two neighbours, without ratios,
    and a layer of the last step is added.

    Args:
        inputs: sequences.
        outputs: :math:`P`.
        width: numbers of an embedding.
        pairs: embeddings that pairs share; 0 for words alone; by default four for each word.
        dropout: share of words and pairs left out in training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T)`` codes or ``(B, T, D)``.
        - mask: ``(B, T)`` bool, True where a step is there.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Bag
        >>> from ansatz.spec import InputSpec
        >>> Bag(InputSpec.sequence(vocabulary=9), 2)(torch.tensor([[3, 4], [5, 0]])).shape
        torch.Size([2, 2])

    References:
        Joulin et al. (2017), Bag of tricks for efficient text classification.
        Wang & Manning (2012), Baselines and bigrams: simple, good sentiment and topic
        classification: the log-count ratios.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 32,
        pairs: int | None = None,
        dropout: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("width of bag", width)
        spec = read_sequence("bag", inputs)
        pairs = pair_count("bag", spec.vocabulary, pairs)
        self.vocabulary, self.pairs, self.outputs = spec.vocabulary, pairs, outputs
        drop(dropout)  # refuses what is not a share
        self.dropout = float(dropout)
        if spec.vocabulary:
            count = spec.vocabulary + pairs
            start = torch.empty(count, width).uniform_(-1 / width, 1 / width, generator=generator)
            self.embedding = nn.Embedding(count, width, _weight=start)
            self.ratios = nn.Embedding(count, outputs, _weight=torch.zeros(count, outputs))
            self.scale = nn.Parameter(torch.tensor(0.5))
        else:
            self.step = affine(spec.features, width, generator=generator)
            self.pair = affine(2 * spec.features, width, generator=generator)
            self.last = affine(spec.features, width, generator=generator)
        self.output = affine(width, outputs, gain=0.1, generator=generator)

    def begin(self, values: Tensor, mask: Tensor, slopes: Tensor) -> None:
        """Begins the ratios at one Newton step of each word and pair alone.

        Args:
            values: ``(N, T)`` codes of the training texts.
            mask: ``(N, T)``.
            slopes: ``(N, P)``, of the loss in the outputs at the constant model.
        """
        if not self.vocabulary:
            return
        found = words_and_pairs(values, mask, self.vocabulary, self.pairs)
        row, place = found.nonzero(as_tuple=True)
        numbers = found[row, place]
        size = slopes.square().mean(0).clamp(min=1e-12)  # the Fisher information
        sums = slopes.new_zeros(self.ratios.num_embeddings, self.outputs)
        sums.index_add_(0, numbers, slopes[row])
        counts = torch.bincount(numbers, minlength=len(sums)).unsqueeze(1)
        with torch.no_grad():
            self.ratios.weight.copy_(-sums / (size * (counts + 1)))

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        values, mask = present(values, mask)
        if not self.vocabulary:
            return self.output(self._signal(values, mask))
        found = words_and_pairs(values, mask, self.vocabulary, self.pairs)
        share = (found > 0).to(self.output.weight.dtype)  # (B, L)
        if self.training and self.dropout:
            share = share * (torch.rand_like(share) >= self.dropout)
        count = share.sum(1, keepdim=True).clamp(min=1)
        mean = (share.unsqueeze(1) @ self.embedding(found)).squeeze(1) / count
        ratios = (share.unsqueeze(1) @ self.ratios(found)).squeeze(1) / count.sqrt()
        return self.output(mean) + self.scale * ratios

    def _signal(self, x: Tensor, mask: Tensor) -> Tensor:
        """The mean over steps, over pairs of neighbours, and the last step, ``(B, width)``."""
        each = nn.functional.silu(self.step(x)) * mask.unsqueeze(-1)
        both = mask[:, 1:].unsqueeze(-1)
        pairs = nn.functional.silu(self.pair(torch.cat([x[:, :-1], x[:, 1:]], -1))) * both
        count = mask.sum(1, keepdim=True)
        mean = each.sum(1) / count.clamp(min=1) + pairs.sum(1) / (count - 1).clamp(min=1)
        end = (count - 1).clamp(min=0).unsqueeze(-1).expand(-1, 1, x.shape[-1])
        mean = mean + nn.functional.silu(self.last(x.gather(1, end).squeeze(1)))
        return nn.functional.dropout(mean, self.dropout / 5, self.training)
