"""The inputs of networks on sets: elements one behind the other, with codes and sizes."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.embedding import CategoryEmbedding
from ansatz.spec import Inputs, InputSpec

MOST = 256  # indicators of one column


class Entered(NamedTuple):
    """What a network on sets works with.

    Args:
        x: ``(E, D')`` numbers of the elements, those of their codes among them.
        offsets: ``(B + 1,)``.
        beside: ``(B, 1 + U)`` the log size and the numbers of each set.
        kind: ``(E,)`` from 0 on; None where elements are of one kind.
    """

    x: Tensor
    offsets: Tensor
    beside: Tensor
    kind: Tensor | None


class SetInputs(nn.Module):
    r"""Embeds the codes of elements, and puts the log size of each set beside its own numbers.

    .. math:: s_b = (\log(1 + n_b) - c) / d

    with c and d the mean and standard deviation over the training sets; 0 and 1 until
    :meth:`observe` has seen them.

    Args:
        owner: the network's name, for messages.
        inputs: of sets: ``InputSpec.set(D, ...)``; of points; or a number of features.
        embeds_kinds: whether kinds of elements become numbers too, where a network has no other
            use for them.
        one_hot: whether codes become indicators, which share a column modulo 256, not vectors.
        generator: where vectors of codes are drawn from.

    Shapes:
        - values ``(E, D)``, offsets ``(B + 1,)``, codes ``(E, C)``, beside ``(B, U)``.
    """

    center: Tensor
    scale: Tensor

    def __init__(
        self,
        owner: str,
        inputs: Inputs,
        *,
        embeds_kinds: bool = True,
        one_hot: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_set(owner, inputs)
        self.owner, self.features, self.sizes = owner, spec.features, spec.graph_features
        self.kinds, self.embeds_kinds = spec.relations, embeds_kinds and spec.relations > 0
        self.levels = None
        self.out_features = spec.features + (spec.relations if self.embeds_kinds else 0)
        self.indicators = [min(n + 1, MOST) for n in spec.cardinalities] if one_hot else []
        if spec.cardinalities and not one_hot:
            self.levels = CategoryEmbedding(spec.cardinalities, generator=generator)
            self.out_features += self.levels.out_features
        self.out_features += sum(self.indicators)
        self.codes = len(spec.cardinalities) + (spec.relations > 0)
        self.beside = 1 + spec.graph_features
        self.register_buffer("center", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def observe(self, offsets: Tensor) -> None:
        """Shows the sizes of the training sets."""
        size = offsets.diff().double().log1p()
        spread = size.std(correction=0) if len(size) else size.new_zeros(())
        self.center.copy_(size.mean() if len(size) else size.new_zeros(()))
        self.scale.copy_(torch.where(spread > 1e-9, spread, 1.0))

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        codes: Tensor | None = None,
        beside: Tensor | None = None,
    ) -> Entered:
        if values.ndim != 2 or values.shape[1] != self.features:
            raise UsageError(
                f"{self.owner} needs values of shape (E, {self.features}), the elements of all "
                f"sets, got {tuple(values.shape)}."
            )
        given = 0 if codes is None else codes.shape[1]
        if given != self.codes:
            raise UsageError(f"{self.owner} was built for {self.codes} codes per element.")
        size = (offsets.diff().to(values.dtype).log1p() - self.center) / self.scale
        own = size.unsqueeze(1)
        if self.sizes:
            if beside is None or beside.shape[1] != self.sizes:
                raise UsageError(f"{self.owner} was built for {self.sizes} numbers of each set.")
            own = torch.cat([own, beside], 1)
        parts, kind = [values], None
        if codes is not None and self.kinds:
            kind, codes = codes[:, -1] - 1, codes[:, :-1]
            if self.embeds_kinds:
                parts.append(functional.one_hot(kind, self.kinds).to(values.dtype))
        for column, width in enumerate(self.indicators):
            assert codes is not None
            parts.append(functional.one_hot(codes[:, column] % width, width).to(values.dtype))
        if self.levels is not None:
            parts.append(self.levels(codes))
        return Entered(torch.cat(parts, 1) if len(parts) > 1 else values, offsets, own, kind)


def read_set(owner: str, inputs: Inputs) -> InputSpec:
    """The spec of sets or points; others are refused."""
    spec = InputSpec.of(inputs)
    if spec.structure == "vector":  # a number of features: those of an element
        return InputSpec.set(spec.features, cardinalities=spec.cardinalities)
    if spec.structure not in ("set", "points"):
        raise UsageError(f"{owner} takes sets, got inputs of structure '{spec.structure}'.")
    return spec


def read_points(owner: str, inputs: Inputs) -> InputSpec:
    """The spec of points, with three coordinates at least."""
    spec = read_set(owner, inputs)
    if spec.features < 3:
        spec = InputSpec("points", 3, rows=spec.rows)
    return spec
