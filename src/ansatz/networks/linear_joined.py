"""The linear model of examples of several kinds."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.networks.linear import LinearGrid
from ansatz.networks.linear_text import LinearText
from ansatz.networks.part_inputs import cut_inputs
from ansatz.spec import Inputs, InputSpec

PIXELS = 256  # means of an image that the weights see


class LinearJoined(nn.Module):
    r"""One linear map of the plainest features of all parts.

    .. math:: f(x) = W \, [z_1(x_1), \dots, z_m(x_m)] + b

    with z the numbers of a table's columns and an indicator for each level; the tf-idf weights of
    a text, or the summaries of a signal, as in ``linear_text``; the means of an image's blocks of
    pixels, as in ``linear_grid``. W and b start at 0.

    Args:
        inputs: a spec with parts, :meth:`InputSpec.joined`.
        outputs: :math:`P`.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - inputs: the tensors of the first part, then those of the second, and so on.
        - returns: ``(B, P)``.
    """

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.spec = InputSpec.of(inputs)
        if not self.spec.parts:
            raise UsageError("linear_joined needs inputs of several parts.")
        self.parts = nn.ModuleDict()
        sizes: list[int] = []
        for name, part in self.spec.parts:
            made = _PLAIN.get(part.structure, _Columns)(part)
            sizes.append(made.size)
            self.parts[name] = made
        self.sizes, self.size = sizes, sum(sizes)
        self.output = affine(self.size, outputs, init="zeros", generator=generator)

    def begin(self, *inputs: Tensor, slopes: Tensor | None = None) -> None:
        """Sets the weights of words by the training texts."""
        for own, part in zip(self._cut(inputs), self.parts.values(), strict=True):
            part.begin(*own)  # type: ignore[operator]

    def design(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row, number and value of each z that is not 0."""
        found, first = [], 0
        for own, part, size in zip(self._cut(inputs), self.parts.values(), self.sizes, strict=True):
            row, number, z = part.design(*own)  # type: ignore[operator]
            found.append((row, number + first, z))
            first += size
        row, number, z = (torch.cat(each) for each in zip(*found, strict=True))
        return row, number, z

    def forward(self, *inputs: Tensor) -> Tensor:
        row, number, z = self.design(*inputs)
        weight = self.output.weight
        added = weight.T[number] * z.to(weight.dtype).unsqueeze(1)
        start = added.new_zeros(len(inputs[0]), added.shape[1])
        return start.index_add(0, row, added) + self.output.bias

    def _cut(self, inputs: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
        return cut_inputs("linear_joined", self.spec, inputs)


class _Text(LinearText):
    """The z of a text or a signal."""

    def __init__(self, spec: InputSpec) -> None:
        super().__init__(spec, 1)
        del self.output


class _Columns(nn.Module):
    """The numbers of columns, and an indicator for each level."""

    def __init__(self, spec: InputSpec) -> None:
        super().__init__()
        self.features, self.levels = spec.features, spec.cardinalities
        self.size = spec.features + sum(spec.cardinalities)

    def begin(self, *inputs: Tensor) -> None:
        pass

    def design(self, x: Tensor, codes: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        row, number = x.nonzero(as_tuple=True)
        z = x[row, number]
        if codes is None:
            return row, number, z
        first = self.features + torch.tensor((0, *self.levels[:-1])).cumsum(0)
        levels = (codes + first).flatten()
        rows = torch.arange(len(codes)).repeat_interleave(codes.shape[1])
        ones = torch.ones_like(levels, dtype=x.dtype)
        return torch.cat([row, rows]), torch.cat([number, levels]), torch.cat([z, ones])


class _Pixels(nn.Module):
    """The means of blocks of pixels."""

    def __init__(self, spec: InputSpec) -> None:
        super().__init__()
        self.plain = LinearGrid(spec, 1, limit=PIXELS)
        self.size = self.plain.output.in_features
        del self.plain.output

    def begin(self, *inputs: Tensor) -> None:
        pass

    def design(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.plain.pool(x).flatten(1)
        row, number = found.nonzero(as_tuple=True)
        return row, number, found[row, number]


_PLAIN: dict[str, type[_Columns | _Text | _Pixels]] = {
    "vector": _Columns,
    "sequence": _Text,
    "grid": _Pixels,
}
