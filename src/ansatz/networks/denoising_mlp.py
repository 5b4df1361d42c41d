"""The perceptron of diffusion models of vectors."""

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.networks.time_embedding import TimeEmbedding, waves
from ansatz.spec import Inputs, InputSpec


class DenoisingMLP(nn.Module):
    r"""A residual perceptron that sees the time in every block.

    .. math:: h \leftarrow h + V \phi\bigl(W ((1 + a(e)) \odot \mathrm{norm}(h) + b(e))\bigr),
              \qquad e = \phi(E(t) + C c)

    Layer normalisation, :math:`\phi` the swish; a and b are affine in what is known of the time and
    the condition c. A condition of zeros is left out.

    Args:
        inputs: features of x, :math:`D`.
        outputs: :math:`P`.
        width: hidden units.
        blocks: number of blocks.
        classes: numbers of the condition, :math:`G`; 0 for none.
        dropout: within blocks.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``.
        - t: ``(B,)``, from 0 to 1,000.
        - given: ``(B, G)``.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import DenoisingMLP
        >>> DenoisingMLP(5, 5, width=32)(torch.randn(3, 5), torch.rand(3) * 1000).shape
        torch.Size([3, 5])

    References:
        Peebles and Xie (2023), Scalable diffusion models with transformers, section 3.2: the
        modulation. https://arxiv.org/abs/2212.09748
    """

    name = "denoising_mlp"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 256,
        blocks: int = 3,
        classes: int = 0,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        if spec.structure != "vector" or spec.cardinalities:
            raise UsageError(
                "denoising_mlp takes vectors of numbers, got inputs of structure "
                f"'{spec.structure}'."
            )
        require_whole("width of denoising_mlp", width, low=2)
        require_whole("blocks of denoising_mlp", blocks, low=0)
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of denoising_mlp must be in [0, 1), got {dropout}.")
        self.features, self.classes, self.width = spec.features, classes, width
        self.input = affine(spec.features, width, init="lecun_normal", generator=generator)
        self.time_embedding = TimeEmbedding(width, width, generator=generator)
        self.condition = None
        if classes:
            self.condition = affine(classes, width, bias=None, generator=generator)
        self.blocks = nn.ModuleList(
            _ModulatedBlock(width, dropout, generator) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width)
        self.output = affine(width, outputs, init="lecun_normal", gain=0.1, generator=generator)

    def forward(self, x: Tensor, t: Tensor, given: Tensor | None = None) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.features:
            raise UsageError(
                f"denoising_mlp needs x of shape (B, {self.features}), got {tuple(x.shape)}."
            )
        if (given is None) != (self.condition is None):
            raise UsageError(
                "this denoising_mlp was built without a condition (classes=0)."
                if self.condition is None
                else f"this denoising_mlp needs a condition of {self.classes} numbers."
            )
        e = self.time_embedding(waves(t, self.width).to(x.dtype))
        if given is not None and self.condition is not None:
            e = e + self.condition(given.to(x.dtype))
        h, e = self.input(x), silu(e)
        for block in self.blocks:
            h = block(h, e)
        return self.output(silu(self.norm(h)))


class _ModulatedBlock(nn.Module):
    def __init__(self, width: int, dropout: float, generator: torch.Generator | None) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = affine(width, 2 * width, gain=0.1, generator=generator)
        self.hidden = affine(width, 2 * width, generator=generator)
        self.back = affine(2 * width, width, gain=0.3, generator=generator)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, e: Tensor) -> Tensor:
        scale, shift = self.modulation(e).chunk(2, 1)
        inner = torch.addcmul(shift, 1 + scale, self.norm(h))
        return h + self.back(self.dropout(silu(self.hidden(inner))))
