"""Partial permutation invariance: elements of several kinds, each without an order of its own."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import Dense
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_mean, segment_sum
from ansatz.layers.registry import activations
from ansatz.networks.inputs import check_widths
from ansatz.networks.set_inputs import SetInputs, read_set
from ansatz.spec import Inputs


class Pine(nn.Module):
    r"""A map of its own for each kind of elements, sums within kinds, and a map of all sums.

    .. math:: f(X) = h\Big(\sum_{x \in X_1} g_1(x), \dots, \sum_{x \in X_K} g_K(x),\ \log(1 + n),
        u\Big)

    Elements of one kind may be exchanged, elements of different kinds not. Every continuous
    function with this symmetry is approximated. Every sum here is divided by the number of the
    kind's elements, which stands beside it as :math:`\log(1 + n_k)`: the same functions, with
    numbers that do not grow with the set.

    Args:
        inputs: ``InputSpec.set(D, kinds=K, ...)``; the last code of an element is its kind.
        outputs: :math:`P`.
        widths: units of the layers of each :math:`g_k`.
        head: units of the hidden layers of h.
        activation: a name from ``ansatz.layers.activations``.
        dropout: probability that a hidden unit of h is dropped while training.
        output_scale: factor on the initial weights of the last map.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values ``(E, D)``, offsets ``(B + 1,)``, codes ``(E, C)``, beside ``(B, U)``; returns
          ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Pine
        >>> from ansatz.spec import InputSpec
        >>> kinds = torch.tensor([[1], [2], [1]])
        >>> network = Pine(InputSpec.set(4, kinds=2), 1)
        >>> network(torch.randn(3, 4), torch.tensor([0, 2, 3]), kinds).shape
        torch.Size([2, 1])

    References:
        Gui et al. (2021), PINE: universal deep embedding for graph nodes via partial permutation
        invariant set functions, theorem 3. https://arxiv.org/abs/1909.12903
    """

    heads: tuple[str, ...] = ("output",)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: Sequence[int] = (64, 64),
        head: Sequence[int] = (128,),
        activation: str = "silu",
        dropout: float = 0.1,
        output_scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_set("pine", inputs)
        if spec.relations < 1:
            raise UsageError(
                "pine needs the kind of each element: name its column (--part COL), or "
                "InputSpec.set(D, kinds=K)."
            )
        if spec.rows == "elements":
            raise UsageError("pine answers for sets; for elements take deepsets.")
        widths, head = check_widths("pine", widths), check_widths("pine", head)
        self.inputs = SetInputs("pine", spec, embeds_kinds=False, generator=generator)
        self.activation = activations.create(activation)
        self.kinds = nn.ModuleList()
        size = self.inputs.out_features
        for _ in range(spec.relations):
            sizes = [size, *widths]
            self.kinds.append(
                nn.ModuleList(affine(a, b, generator=generator) for a, b in pairwise(sizes))
            )
        size = spec.relations * ((widths or (size,))[-1] + 1) + self.inputs.beside
        self.head = nn.ModuleList()
        for width in head:
            self.head.append(
                Dense(size, width, activation=activation, dropout=dropout, generator=generator)
            )
            size = width
        self.output = affine(size, outputs, gain=output_scale, generator=generator)

    def begin(self, values: Tensor, offsets: Tensor, *others: Tensor, slopes: Tensor) -> None:
        """Shows the sizes of the training sets."""
        self.inputs.observe(offsets)

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        codes: Tensor | None = None,
        beside: Tensor | None = None,
    ) -> Tensor:
        x, offsets, own, kind = self.inputs(values, offsets, codes, beside)
        assert kind is not None
        pooled = []
        for number, layers in enumerate(self.kinds):
            mine = kind == number
            place = mine.nonzero().squeeze(1)
            before = torch.cat([place.new_zeros(1), mine.long().cumsum(0)])
            ends = before[offsets]  # of this kind's elements alone
            h = x[place]
            for layer in layers:  # type: ignore[attr-defined]  # a list of layers
                h = self.activation(layer(h))
            count = segment_sum(h.new_ones(len(h), 1), ends)
            pooled += [segment_mean(h, ends), count.log1p()]
        h = torch.cat([*pooled, own], 1)
        for layer in self.head:
            h = layer(h)
        answer: Tensor = self.output(h)
        return answer
