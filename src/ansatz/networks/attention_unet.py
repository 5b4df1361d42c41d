"""The U-Net whose skip connections are gated by what is seen below."""

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ansatz.layers.mode import evaluation_mode
from ansatz.networks.grid_layers import LINEAR, convolution, crop
from ansatz.networks.unet import Norm, UNet, Up
from ansatz.spec import Inputs


class AttentionUNet(UNet):
    r"""A U-Net in which the coarse level decides which places of the fine one pass.

    .. math:: u_l = G_l([\alpha_l h_l, \mathrm{up}(u_{l+1})]), \qquad
              \alpha_l = \mathrm{gate}(h_l, u_{l+1})

    with the U-Net's levels (see :class:`UNet`) and one :class:`AttentionGate` per skip connection,
    whose :math:`\alpha` in (0, 1) is one number per place. ``attention`` gives the
    :math:`\alpha_l` of an image, to look at.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P` per pixel.
        depth: how often the grid is halved.
        width: channels of the first level.
        padded: whether the output has the size of x.
        norm: ``"batch"`` normalises each convolution before its ReLU; None for none.
        up: ``"transposed"`` convolutions, or linear interpolation (``"upsample"``).
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: ``(B, P, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import AttentionUNet
        >>> network = AttentionUNet(3, 2, depth=2, width=4)
        >>> [alpha.shape[2:] for alpha in network.attention(torch.randn(1, 3, 8, 12))]
        [torch.Size([8, 12]), torch.Size([4, 6])]

    References:
        Oktay et al. (2018), Attention U-Net: learning where to look for the pancreas, eq. 1 and 2.
        https://arxiv.org/abs/1804.03999
    """

    name = "attention_unet"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        depth: int = 4,
        width: int = 64,
        padded: bool = True,
        norm: Norm | None = "batch",
        up: Up = "transposed",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs,
            outputs,
            depth=depth,
            width=width,
            padded=padded,
            norm=norm,
            up=up,
            generator=generator,
        )
        self.gates = nn.ModuleList(
            AttentionGate(
                self.grid.dimensions, width * 2**i, width * 2 ** (i + 1), generator=generator
            )
            for i in range(depth)
        )

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: level by level down, up again, last map."""
        groups = super().layer_groups()
        for level, gate in enumerate(self.gates):
            groups[-2 - level].append(gate)
        return groups

    def skip(self, level: int, fine: Tensor, coarse: Tensor) -> Tensor:
        """The features of a level, each place times its alpha."""
        gated: Tensor = self.gates[level](fine, coarse)
        return gated

    def attention(self, x: Tensor) -> list[Tensor]:
        """The alpha of each skip connection, ``(B, 1, *size)``, the finest first.

        Without padding those of the pixels that pass. The network is in evaluation mode meanwhile.
        """
        found: list[Tensor] = []

        def keep(gate: nn.Module, given: tuple[Tensor, Tensor], _: Tensor) -> None:
            assert isinstance(gate, AttentionGate)
            found.append(gate.alpha(*given))

        hooks = [gate.register_forward_hook(keep) for gate in self.gates]
        try:
            with evaluation_mode(self), torch.no_grad():
                self(x)
        finally:
            for hook in hooks:
                hook.remove()
        found.reverse()
        if not self.padded:
            return found
        sizes = [[-(-n // 2**level) for n in x.shape[2:]] for level in range(self.depth)]
        return [crop(alpha, size) for alpha, size in zip(found, sizes, strict=True)]


class AttentionGate(nn.Module):
    r"""An additive gate: which places of x matter, given the coarser g.

    .. math:: \alpha = \sigma\!\left(\psi^T \mathrm{ReLU}(W_x x + W_g g + b_g) + b_\psi\right),
              \qquad \hat x = \alpha x

    :math:`W_x` has kernel and stride 2, which brings x to the grid of g; :math:`W_g` and
    :math:`\psi` act on each place alone; :math:`\alpha` is interpolated linearly to the grid of x
    before it multiplies all channels.

    Args:
        dimensions: number of axes of the grid.
        fine: channels of x.
        coarse: channels of g.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, fine, *size)``, twice as many pixels along each axis as g.
        - g: ``(B, coarse, *[n // 2 for n in size])``.
        - returns: the shape of x.

    Example:
        >>> import torch
        >>> from ansatz.networks import AttentionGate
        >>> AttentionGate(2, 4, 8)(torch.randn(1, 4, 6, 6), torch.randn(1, 8, 3, 3)).shape
        torch.Size([1, 4, 6, 6])

    References:
        Oktay et al. (2018), Attention U-Net, eq. 1 and 2. https://arxiv.org/abs/1804.03999
    """

    def __init__(
        self,
        dimensions: int,
        fine: int,
        coarse: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d, inner = dimensions, max(fine // 2, 1)
        self.mode = LINEAR[d]
        self.fine = convolution(d, fine, inner, 2, stride=2, bias=False, generator=generator)
        self.coarse = convolution(d, coarse, inner, 1, generator=generator)
        self.score = convolution(d, inner, 1, 1, init="lecun_normal", generator=generator)

    def alpha(self, x: Tensor, g: Tensor) -> Tensor:
        """``(B, 1, *size)``: how much of each place of x passes."""
        score = self.score(torch.relu(self.fine(x) + self.coarse(g)))
        return interpolate(torch.sigmoid(score), size=x.shape[2:], mode=self.mode)

    def forward(self, x: Tensor, g: Tensor) -> Tensor:
        return self.alpha(x, g) * x
