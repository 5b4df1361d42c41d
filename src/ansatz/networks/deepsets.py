"""Deep Sets: a function of a set is a function of a sum over its elements."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.layers.dense import Dense
from ansatz.layers.equivariant import EquivariantLinear
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_mean, spread
from ansatz.layers.registry import activations
from ansatz.layers.set_pool import Pool, SetPool
from ansatz.networks.inputs import check_widths
from ansatz.networks.set_inputs import SetInputs, read_set
from ansatz.spec import Inputs


class DeepSets(nn.Module):
    r"""A map of each element, a pool over the set, and a map of the pooled vector.

    .. math:: f(X) = \rho\Big(\operatorname{pool}_{i} \varphi(x_i),\ \log(1 + n),\ u\Big)

    with n the number of elements and u the numbers of the set itself. :math:`\varphi` and
    :math:`\rho` are multilayer perceptrons. Any continuous function of sets of at most M numbers
    has this form with a sum and M hidden channels; with fewer there are functions that it cannot
    approximate. For outcomes of elements (``rows="elements"``) the answer at element i is

    .. math:: f(X)_i = \rho\Big(h_i,\ \operatorname{pool}_j h_j,\ \log(1 + n),\ u\Big)

    with h the result of layers :math:`h \mapsto \sigma(\Lambda h_i + \Gamma \bar h + b)`, which
    commute with permutations (:class:`~ansatz.layers.EquivariantLinear`).

    Args:
        inputs: ``InputSpec.set(D, ...)``, or the number of features of an element.
        outputs: :math:`P`.
        widths: units of the layers of :math:`\varphi`.
        head: units of the hidden layers of :math:`\rho`.
        pool: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"``.
        activation: a name from ``ansatz.layers.activations``.
        dropout: probability that a hidden unit of :math:`\rho` is dropped while training.
        output_scale: factor on the initial weights of the last map.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values ``(E, D)``, offsets ``(B + 1,)``, codes ``(E, C)``, beside ``(B, U)``; chosen
          ``(R,)`` positions of elements.
        - returns: ``(B, P)``; for elements ``(R, P)``, of all of them without ``chosen``.

    Example:
        >>> import torch
        >>> from ansatz.networks import DeepSets
        >>> DeepSets(3, 2)(torch.randn(5, 3), torch.tensor([0, 2, 5])).shape
        torch.Size([2, 2])

    References:
        Zaheer et al. (2017), Deep Sets, theorem 2 and eq. 4. https://arxiv.org/abs/1703.06114;
        Wagstaff et al. (2019), On the limitations of representing functions on sets.
        https://arxiv.org/abs/1901.09006
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: Sequence[int] = (128, 128),
        head: Sequence[int] = (128,),
        pool: Pool = "mean",
        activation: str = "silu",
        dropout: float = 0.1,
        output_scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_set("deepsets", inputs)
        widths, head = check_widths("deepsets", widths), check_widths("deepsets", head)
        self.each = spec.rows == "elements"
        self.inputs = SetInputs("deepsets", spec, generator=generator)
        self.elements = nn.ModuleList()
        size = self.inputs.out_features
        for width in widths:
            made: nn.Module = (
                EquivariantLinear(size, width, generator=generator)
                if self.each
                else affine(size, width, generator=generator)
            )
            self.elements.append(made)
            size = width
        self.activation = activations.create(activation)
        self.pool = SetPool(size, pool, generator=generator)
        size = (2 if self.each else 1) * size + self.inputs.beside
        self.head = nn.ModuleList()
        for width in head:
            layer = Dense(size, width, activation=activation, dropout=dropout, generator=generator)
            self.head.append(layer)
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
        chosen: Tensor | None = None,
    ) -> Tensor:
        h, offsets, own, _ = self.inputs(values, offsets, codes, beside)
        for layer in self.elements:
            h = self.activation(layer(h, offsets) if self.each else layer(h))
        pooled = torch.cat([self.pool(h, offsets), own], 1)
        if self.each:
            pooled = torch.cat([h, spread(pooled, offsets, len(h))], 1)
            pooled = pooled if chosen is None else pooled[chosen]
        for layer in self.head:
            pooled = layer(pooled)
        answer: Tensor = self.output(pooled)
        return answer


class LinearSet(nn.Module):
    r"""A linear map of the mean of a set's features, its log size and its own numbers.

    .. math:: f(X) = W \bar{x} + w \log(1 + n) + V u + b

    of elements :math:`f(X)_i = U x_i + W \bar{x} + w \log(1 + n) + V u + b`. All coefficients start
    at 0: the constant model.

    Args:
        inputs: ``InputSpec.set(D, ...)``, or the number of features of an element.
        outputs: :math:`P`.
        generator: accepted like every network's; nothing is drawn.

    Shapes:
        - as those of :class:`DeepSets`.

    Example:
        >>> import torch
        >>> from ansatz.networks import LinearSet
        >>> LinearSet(3, 2)(torch.randn(5, 3), torch.tensor([0, 2, 5])).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """

    heads: tuple[str, ...] = ("output",)

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        spec = read_set("linear_set", inputs)
        self.each = spec.rows == "elements"
        self.inputs = SetInputs("linear_set", spec, one_hot=True, generator=generator)
        size = (2 if self.each else 1) * self.inputs.out_features + self.inputs.beside
        self.output = affine(size, outputs, init="zeros", generator=generator)

    def begin(self, values: Tensor, offsets: Tensor, *others: Tensor, slopes: Tensor) -> None:
        """Shows the sizes of the training sets."""
        self.inputs.observe(offsets)

    def features(
        self,
        values: Tensor,
        offsets: Tensor,
        codes: Tensor | None = None,
        beside: Tensor | None = None,
        chosen: Tensor | None = None,
    ) -> Tensor:
        """What the map is linear in, ``(B, F)`` or ``(R, F)``."""
        x, offsets, own, _ = self.inputs(values, offsets, codes, beside)
        found = torch.cat([segment_mean(x, offsets), own], 1)
        if self.each:
            found = torch.cat([x, spread(found, offsets, len(x))], 1)
            found = found if chosen is None else found[chosen]
        return found

    def forward(self, *inputs: Tensor) -> Tensor:
        answer: Tensor = self.output(self.features(*inputs))
        return answer
