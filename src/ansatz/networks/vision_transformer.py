"""Vision transformers: an image as a sequence of patches."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.schemes import draw_normal
from ansatz.layers.transformer_block import TransformerBlock
from ansatz.networks.grid_inputs import read_grid, require_size
from ansatz.networks.grid_layers import convolution, readout
from ansatz.spec import Inputs


class _Encoder(nn.Module):
    def __init__(
        self, tokens: int, width: int, blocks: list[nn.Module], generator: torch.Generator | None
    ) -> None:
        super().__init__()
        places = draw_normal(torch.empty(1, tokens, width), 0.02, generator)
        self.pos_embedding = nn.Parameter(places)
        self.layers = nn.Sequential()
        for number, block in enumerate(blocks):
            self.layers.add_module(f"encoder_layer_{number}", block)
        self.ln = nn.LayerNorm(width, 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.ln(self.layers(x + self.pos_embedding))


class ViTB16(nn.Module):
    r"""The vision transformer ViT-B/16: patches of 16 x 16 pixels as tokens, and a class token.

    .. math:: y = W \,\mathrm{LN}(h_{[\mathrm{class}]}) + b

    An image of 224 x 224 has 196 patches. It has 86,567,656 parameters for 3 channels and 1,000
    outputs. Names, shapes and computation are torchvision's.

    Args:
        inputs: images whose height and width are multiples of the patch.
        outputs: :math:`P`.
        patch: pixels along each side of a patch.
        width: numbers of a token.
        depth: blocks.
        heads: attentions of a block.
        hidden: units of a block's network; 4 times the width when not given.
        dropout: probability that a number is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, H, W)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import ViTB16
        >>> ViTB16((3, 32, 32), 10, width=8, depth=1, heads=2)(torch.randn(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    References:
        Dosovitskiy et al. (2021), An image is worth 16x16 words, table 1.
        https://arxiv.org/abs/2010.11929
    """

    name = "vit_b_16"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        hidden: int | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.grid = grid = read_grid(
            self.name, inputs, dimensions=(2,), least=patch, needs_size=True
        )
        if any(length % patch for length in grid.size):
            size = " x ".join(str(length) for length in grid.size)
            raise UsageError(
                f"the size of x must be a multiple of the {patch} pixels of a patch, got {size}; "
                f"resize x, or choose another patch of {self.name}."
            )
        tokens = 1 + grid.pixels // patch**2
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = convolution(
            2, grid.channels, width, patch, stride=patch, generator=generator
        )
        blocks: list[nn.Module] = [
            TransformerBlock(
                width, heads, hidden=hidden, dropout=dropout, eps=1e-6, generator=generator
            )
            for _ in range(depth)
        ]
        self.encoder = _Encoder(tokens, width, blocks, generator)
        self.heads = nn.Sequential()
        self.heads.add_module("head", readout(width, outputs, generator))

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: patches, encoder, last map."""
        return [[self.conv_proj], [self.encoder], [self.heads]]

    def forward(self, x: Tensor) -> Tensor:
        require_size(self.name, self.grid, x, network=self)
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)  # (B, N, width)
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), patches], 1)
        return self.heads(self.encoder(tokens)[:, 0])


class ViTTiny(ViTB16):
    """A vision transformer for small images: patches of 4 x 4 pixels, four blocks of width 64.

    Its arguments are those of :class:`ViTB16`.

    Example:
        >>> import torch
        >>> from ansatz.networks import ViTTiny
        >>> ViTTiny((1, 28, 28), 10)(torch.randn(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """

    name = "vit_tiny"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        patch: int = 4,
        width: int = 64,
        depth: int = 4,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs, outputs, patch=patch, width=width, depth=depth, heads=heads, hidden=hidden,
            dropout=dropout, generator=generator,
        )  # fmt: skip
