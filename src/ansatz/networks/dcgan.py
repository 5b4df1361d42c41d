"""The networks of a game on images: one paints from noise, the other looks at patches."""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu
from torch.nn.utils.parametrizations import spectral_norm as with_spectral_norm

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.schemes import draw_normal
from ansatz.spec import Inputs, InputSpec

_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_SD = 0.02  # of all weights, as in the paper


class DCGAN(nn.Module):
    r"""Paints a signal, an image or a volume from a vector of noise.

    An affine map gives a coarse picture of many channels; each transposed convolution doubles its
    size and halves its channels. Numbers are in [-1, 1]. Groups of channels are normalised within
    an example, where the paper normalises over the batch: an example does not depend on others.

    Args:
        inputs: numbers of the noise, :math:`L`.
        outputs: channels, :math:`C`.
        size: of the picture, ``(L,)``, ``(H, W)`` or ``(D, H, W)``.
        width: channels before the last map.
        depth: doublings of the size; by default until the coarse picture has at most 7 pixels.
        classes: numbers of a condition that is joined to the noise, :math:`G`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - z: ``(B, L)``.
        - given: ``(B, G)``, or None.
        - returns: ``(B, C, *size)`` in (-1, 1).

    Example:
        >>> import torch
        >>> from ansatz.networks import DCGAN
        >>> DCGAN(64, 1, size=(28, 28), width=8)(torch.randn(2, 64)).shape
        torch.Size([2, 1, 28, 28])

    References:
        Radford, Metz and Chintala (2016), Unsupervised representation learning with deep
        convolutional generative adversarial networks. https://arxiv.org/abs/1511.06434
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        size: tuple[int, ...] = (28, 28),
        width: int = 32,
        depth: int | None = None,
        classes: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.latents, self.classes, self.size = InputSpec.of(inputs).features, classes, tuple(size)
        require_whole("numbers of the noise of dcgan", self.latents)
        require_whole("width of dcgan", width)
        if not 1 <= len(self.size) <= 3:
            raise UsageError(f"size of dcgan has one to three axes, got {self.size}.")
        depth = max(1, (max(self.size) - 1).bit_length() - 3) if depth is None else depth
        require_whole("depth of dcgan", depth)
        self.coarse = tuple(-(-each // 2**depth) for each in self.size)
        channels = [width * 2**k for k in reversed(range(depth))]
        first = channels[0] * _product(self.coarse)
        self.entrance = affine(self.latents + classes, first, generator=generator)
        conv, up = _CONV[len(size) - 1], _TRANSPOSED[len(size) - 1]
        self.norms = nn.ModuleList(_group_norm(each) for each in channels)
        self.ups = nn.ModuleList(
            up(each, max(each // 2, width), 4, stride=2, padding=1) for each in channels
        )
        self.last_norm = _group_norm(width)
        self.output = conv(width, outputs, 3, padding=1)
        _draw(self, generator)

    def forward(self, z: Tensor, given: Tensor | None = None) -> Tensor:
        z = z if given is None else torch.cat([z, given], 1)
        if z.ndim != 2 or z.shape[1] != self.latents + self.classes:
            raise UsageError(
                f"dcgan needs noise of shape (B, {self.latents}) and {self.classes} numbers of a "
                f"condition, got {tuple(z.shape)} in all."
            )
        x = self.entrance(z).reshape(len(z), -1, *self.coarse)
        for norm, up in zip(self.norms, self.ups, strict=True):
            x = up(torch.relu(norm(x)))
        x = x[(..., *(slice(0, each) for each in self.size))]
        return torch.tanh(self.output(torch.relu(self.last_norm(x))))


class PatchGAN(nn.Module):
    r"""Looks at overlapping patches of a signal, an image or a volume, and answers for each.

    Convolutions of stride 2 with leaky rectifiers, then two of stride 1. A patch is the receptive
    field of an answer: 46 pixels wide at ``depth=3``.

    Args:
        inputs: channels and size, ``InputSpec.grid(C, *size)`` or ``(C, *size)``.
        outputs: numbers per patch, :math:`P`.
        width: channels of the first layer; each further one has twice as many.
        depth: halvings of the size.
        classes: numbers of a condition, :math:`G`: each answer gains its inner product with the
            features of the patch (a projection discriminator).
        spectral_norm: divides every weight by its largest singular value.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``.
        - given: ``(B, G)``, or None.
        - returns: ``(B, P, *patches)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import PatchGAN
        >>> PatchGAN((1, 28, 28), 1, width=8)(torch.randn(2, 1, 28, 28)).shape
        torch.Size([2, 1, 3, 3])

    References:
        Isola et al. (2017), Image-to-image translation with conditional adversarial networks.
        https://arxiv.org/abs/1611.07004; Miyato and Koyama (2018), cGANs with projection
        discriminator. https://arxiv.org/abs/1802.05637
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int = 3,
        classes: int = 0,
        spectral_norm: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        if spec.structure != "grid" or not spec.size:
            raise UsageError(
                f"patchgan takes grids, got inputs of structure '{spec.structure}'; say (C, H, W)."
            )
        require_whole("width of patchgan", width)
        require_whole("depth of patchgan", depth)
        if min(spec.size) < 2**depth:
            raise UsageError(
                f"patchgan halves {min(spec.size)} pixels {depth} times: take a smaller depth."
            )
        conv, channels = _CONV[len(spec.size) - 1], [width * 2**k for k in range(depth)]
        layers = [
            conv(before, after, 4, stride=2, padding=1)
            for before, after in zip([spec.features, *channels], channels, strict=False)
        ]
        layers.append(conv(channels[-1], channels[-1], 3, padding=1))
        self.output = conv(channels[-1], outputs, 3, padding=1)
        self.condition = affine(classes, channels[-1], bias=None) if classes else None
        self.layers = nn.ModuleList(layers)
        _draw(self, generator)
        if spectral_norm:
            for layer in (*self.layers, self.output):
                with_spectral_norm(layer)

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = leaky_relu(layer(x), 0.2)
        answer = self.output(x)
        if given is None or self.condition is None:
            return answer
        wanted = self.condition(given).reshape(len(x), -1, *(1,) * (x.ndim - 2))
        return answer + (x * wanted).sum(1, keepdim=True) / x.shape[1] ** 0.5


def _group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(next(each for each in (8, 4, 2, 1) if channels % each == 0), channels)


def _draw(network: nn.Module, generator: torch.Generator | None) -> None:
    """Convolutions begin at N(0, 0.02^2), their biases at 0."""
    for part in network.modules():
        if isinstance(part, (*_CONV, *_TRANSPOSED)):
            draw_normal(part.weight, _SD, generator)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def _product(sizes: tuple[int, ...]) -> int:
    found = 1
    for each in sizes:
        found *= each
    return found
