"""The U-Net of diffusion models: what is under the noise, given the time and a condition."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad, scaled_dot_product_attention, silu

from ansatz.errors import ModelError, UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import channels_last, read_grid, require_grid
from ansatz.networks.grid_layers import convolution, crop, pad_to_multiple
from ansatz.networks.time_embedding import TimeEmbedding, waves
from ansatz.spec import Inputs, InputSpec


class DenoisingUNet(nn.Module):
    r"""The U-Net that diffusion trains: residual blocks that see the time, attention where coarse.

    .. math:: h' = \mathrm{conv}(\phi(\mathrm{norm}(h))) + W e, \quad
              \mathrm{block}(h, e) = S h + \mathrm{conv}(\phi(\mathrm{norm}(h'))), \quad
              e = \phi(E(t) + c)

    with group normalisation, :math:`\phi` the swish and S a map of channels where their number
    changes. E is a perceptron of sines and cosines of the time. c is the row of the condition's
    class in a table; a condition ``(B, classes)`` of numbers is multiplied by that table, so that
    zeros leave it out. Levels that attend have self-attention over all pixels after each block.

    In two dimensions the weights have the names of diffusers' ``UNet2DModel``:
    :meth:`from_config` reads its ``config.json``, and ``load_state_dict(strict=True)`` its weights.

    Args:
        inputs: a signal, an image or a volume.
        outputs: channels of the output, :math:`P`.
        widths: channels of each level; each halves the grid of the one before.
        blocks: residual blocks per level, on the way down.
        attention: whether each level attends; the coarsest alone by default.
        head_dim: channels of an attention head; None for a single head.
        groups: of the normalisation.
        classes: number of classes or of numbers of the condition; 0 for none.
        patch: pixels along each axis that are joined to one with more channels.
        details: ``dropout`` within blocks; ``eps`` of the normalisation; ``cosine_first`` and
            ``frequency_shift`` (0 or 1) of the time's features; ``even_padding``, zeros on all
            sides before the grid is halved, or at the end alone; ``mid_attention``, whether the
            middle attends; ``generator``, where weights are drawn from (torch's global one).

    Shapes:
        - x: ``(B, C, *size)``.
        - t: ``(B,)``, from 0 to 1,000.
        - given: ``(B,)`` codes or ``(B, classes)``.
        - returns: ``(B, P, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import DenoisingUNet
        >>> from ansatz.spec import InputSpec
        >>> network = DenoisingUNet(InputSpec.grid(1, 28, 28), 1, widths=(16, 32), groups=8)
        >>> network(torch.randn(2, 1, 28, 28), torch.tensor([10.0, 900.0])).shape
        torch.Size([2, 1, 28, 28])

    References:
        Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, appendix B.
        https://arxiv.org/abs/2006.11239
    """

    name = "denoising_unet"

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: Sequence[int] = (64, 128),
        blocks: int = 1,
        attention: Sequence[bool] | None = None,
        head_dim: int | None = 32,
        groups: int = 16,
        classes: int = 0,
        patch: int = 1,
        **details: Any,
    ) -> None:
        super().__init__()
        options = _Details(**details)
        self.grid = grid = read_grid(self.name, inputs, dimensions=(1, 2, 3))
        widths = [require_whole("a width of denoising_unet", width) for width in widths]
        attends = [False] * (len(widths) - 1) + [True] if attention is None else list(attention)
        require_whole("blocks of denoising_unet", blocks)
        require_whole("patch of denoising_unet", patch)
        if not widths or len(attends) != len(widths):
            raise UsageError(
                f"attention of denoising_unet has one entry per width, got {len(attends)} for "
                f"{len(widths)}."
            )
        if any(width % groups for width in widths):
            raise UsageError(
                f"widths of denoising_unet are multiples of groups={groups}, got {widths}."
            )
        d, self.patch, self.classes, self.options = grid.dimensions, patch, classes, options
        self.depth, made = len(widths) - 1, options.generator
        channels = grid.channels * patch**d
        size = 4 * widths[0]

        def conv(into: int, out: int, *, gain: float = 1.0) -> nn.Module:
            init = "lecun_normal"
            return convolution(d, into, out, 3, padding=1, init=init, gain=gain, generator=made)

        def block(into: int, out: int) -> _Block:
            return _Block(conv, d, into, out, size, groups, options)

        def attend(width: int) -> _Attention:
            return _Attention(width, head_dim, groups, options)

        self.conv_in = conv(channels, widths[0])
        self.time_embedding = TimeEmbedding(widths[0], size, generator=made)
        self.class_embedding = None
        if classes:
            blank = torch.empty(classes, size)  # without a draw from torch's global generator
            self.class_embedding = nn.Embedding(classes, size, _weight=blank)
            nn.init.normal_(self.class_embedding.weight, 0, 0.5, generator=made)
        self.down_blocks, self.up_blocks = nn.ModuleList(), nn.ModuleList()
        last = widths[0]
        for level, width in enumerate(widths):
            down = nn.Module()
            down.resnets = nn.ModuleList(
                block(last if n == 0 else width, width) for n in range(blocks)
            )
            if attends[level]:
                down.attentions = nn.ModuleList(attend(width) for _ in range(blocks))
            if level < self.depth:
                down.downsamplers = nn.ModuleList([_Halved(d, width, options)])
            self.down_blocks.append(down)
            last = width
        middle = self.mid_block = nn.Module()
        middle.resnets = nn.ModuleList([block(last, last), block(last, last)])
        if options.mid_attention:
            middle.attentions = nn.ModuleList([attend(last)])
        for level in reversed(range(len(widths))):
            width, finer = widths[level], widths[max(level - 1, 0)]
            up = nn.Module()
            up.resnets = nn.ModuleList(
                block((last if n == 0 else width) + (finer if n == blocks else width), width)
                for n in range(blocks + 1)
            )
            if attends[level]:
                up.attentions = nn.ModuleList(attend(width) for _ in range(blocks + 1))
            if level:
                rise = nn.Module()
                rise.conv = conv(width, width)
                up.upsamplers = nn.ModuleList([rise])
            self.up_blocks.append(up)
            last = width
        self.conv_norm_out = nn.GroupNorm(groups, last, eps=options.eps)
        self.conv_out = conv(last, outputs * patch**d, gain=0.1)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "DenoisingUNet":
        """Makes the network that a ``config.json`` of diffusers' ``UNet2DModel`` describes.

        Raises:
            ModelError: it has a part that this network has not.
        """
        plain = {
            "_class_name": "UNet2DModel", "center_input_sample": False, "act_fn": "silu",
            "time_embedding_type": "positional", "mid_block_scale_factor": 1,
            "downsample_type": "conv", "upsample_type": "conv", "class_embed_type": None,
            "resnet_time_scale_shift": "default", "mid_block_type": "UNetMidBlock2D",
            "time_embedding_dim": None, "attn_norm_num_groups": None,
        }  # fmt: skip
        for key, value in plain.items():
            if config.get(key, value) != value:
                raise ModelError(f"denoising_unet has no {key}={config[key]!r}, only {value!r}.")
        down = list(config["down_block_types"])
        known = {"DownBlock2D": False, "AttnDownBlock2D": True}
        twins = [name.replace("Down", "Up") for name in reversed(down)]
        if not set(down) <= set(known) or list(config["up_block_types"]) != twins:
            raise ModelError(
                "denoising_unet has the blocks DownBlock2D and AttnDownBlock2D, and their mirror "
                f"on the way up; got {down} and {list(config['up_block_types'])}."
            )
        size = config.get("sample_size") or ()
        size = (size, size) if isinstance(size, int) else tuple(size)
        return cls(
            (config["in_channels"], *size) if size else InputSpec.grid(config["in_channels"]),
            config["out_channels"],
            widths=config["block_out_channels"],
            blocks=config.get("layers_per_block", 2),
            attention=[known[name] for name in down],
            head_dim=config.get("attention_head_dim", 8),
            groups=config.get("norm_num_groups", 32),
            classes=config.get("num_class_embeds") or 0,
            dropout=config.get("dropout", 0.0),
            eps=config.get("norm_eps", 1e-5),
            cosine_first=config.get("flip_sin_to_cos", True),
            frequency_shift=config.get("freq_shift", 0),
            even_padding=config.get("downsample_padding", 1) == 1,
            mid_attention=config.get("add_attention", True),
        )

    def embed(self, x: Tensor, t: Tensor, given: Tensor | None) -> Tensor:
        """What every block sees of the time and the condition, ``(B, 4 widths[0])``."""
        shift, first = self.options.frequency_shift, self.options.cosine_first
        width = self.conv_in.weight.shape[0]  # type: ignore[index]
        time = waves(t, int(width), shift=shift, cosine_first=first).to(x.dtype)
        found: Tensor = self.time_embedding(time)
        if self.class_embedding is None:
            if given is not None:
                raise UsageError("this denoising_unet was built without a condition (classes=0).")
        elif given is None:
            raise UsageError(f"this denoising_unet needs a condition of {self.classes} classes.")
        elif given.is_floating_point():
            found = found + given.to(x.dtype) @ self.class_embedding.weight
        else:
            found = found + self.class_embedding(given)
        return silu(found)

    def forward(self, x: Tensor, t: Tensor, given: Tensor | None = None) -> Tensor:
        require_grid(self.name, self.grid, x, network=self)
        size = x.shape[2:]
        x = pad_to_multiple(x, self.patch * 2**self.depth)
        e = self.embed(x, t, given)
        h = channels_last(_joined(x, self.patch))
        h = self.conv_in(h)
        skips = [h]
        for down in self.down_blocks:
            for n, block in enumerate(down.resnets):  # type: ignore[arg-type]
                h = block(h, e)
                if hasattr(down, "attentions"):
                    h = down.attentions[n](h)  # type: ignore[index,operator]
                skips.append(h)
            if hasattr(down, "downsamplers"):
                h = down.downsamplers[0](h)  # type: ignore[index,operator]
                skips.append(h)
        first, second = self.mid_block.resnets  # type: ignore[misc]
        h = first(h, e)
        if hasattr(self.mid_block, "attentions"):
            h = self.mid_block.attentions[0](h)  # type: ignore[index,operator]
        h = second(h, e)
        for up in self.up_blocks:
            for n, block in enumerate(up.resnets):  # type: ignore[arg-type]
                h = block(torch.cat([h, skips.pop()], 1), e)
                if hasattr(up, "attentions"):
                    h = up.attentions[n](h)  # type: ignore[index,operator]
            if hasattr(up, "upsamplers"):
                h = interpolate(h, scale_factor=2.0, mode="nearest")
                h = up.upsamplers[0].conv(h)  # type: ignore[index,union-attr]
        h = self.conv_out(silu(self.conv_norm_out(h)))
        return crop(_split(h, self.patch), size)


class _Details:
    """Options that few change, with their checks."""

    def __init__(
        self,
        *,
        dropout: float = 0.0,
        eps: float = 1e-5,
        cosine_first: bool = True,
        frequency_shift: float = 0,
        even_padding: bool = True,
        mid_attention: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of denoising_unet must be in [0, 1), got {dropout}.")
        self.dropout, self.eps, self.even_padding = dropout, eps, even_padding
        self.cosine_first, self.frequency_shift = cosine_first, frequency_shift
        self.mid_attention = mid_attention
        self.generator = generator


class _Block(nn.Module):
    """Two convolutions around what the time adds, and a way past them."""

    def __init__(
        self, conv: Any, d: int, into: int, out: int, size: int, groups: int, options: _Details
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.GroupNorm(groups, c, eps=options.eps) for c in (into, out))
        self.conv1, self.conv2 = conv(into, out), conv(out, out, gain=0.1)
        self.time_emb_proj = affine(size, out, init="lecun_normal", generator=options.generator)
        self.dropout = nn.Dropout(options.dropout)
        self.conv_shortcut = None
        if into != out:
            made = options.generator
            self.conv_shortcut = convolution(d, into, out, 1, init="lecun_normal", generator=made)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        h = self.conv1(silu(self.norm1(x)))
        shift = self.time_emb_proj(e)
        h = h + shift.reshape(*shift.shape, *[1] * (h.ndim - 2))
        h = self.conv2(self.dropout(silu(self.norm2(h))))
        return h + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class _Attention(nn.Module):
    """Self-attention over all pixels, added to them."""

    def __init__(self, width: int, head_dim: int | None, groups: int, options: _Details) -> None:
        super().__init__()
        if head_dim is not None and width % head_dim:
            raise UsageError(f"head_dim of denoising_unet must divide {width}, got {head_dim}.")
        self.heads = 1 if head_dim is None else width // head_dim
        self.group_norm = nn.GroupNorm(groups, width, eps=options.eps)

        def linear(gain: float = 1.0) -> nn.Linear:
            made = options.generator
            return affine(width, width, init="lecun_normal", gain=gain, generator=made)

        self.to_q, self.to_k, self.to_v = linear(), linear(), linear()
        self.to_out = nn.ModuleList([linear(0.1)])

    def forward(self, x: Tensor) -> Tensor:
        h = self.group_norm(x).flatten(2).transpose(1, 2)  # (B, N, C)
        parts = (
            layer(h).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        h = scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
        return x + self.to_out[0](h).transpose(1, 2).reshape(x.shape)


class _Halved(nn.Module):
    """A convolution of stride 2."""

    def __init__(self, d: int, width: int, options: _Details) -> None:
        super().__init__()
        self.even, made = options.even_padding, options.generator
        self.conv = convolution(
            d,
            width,
            width,
            3,
            stride=2,
            padding=int(self.even),
            init="lecun_normal",
            generator=made,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x if self.even else pad(x, (0, 1) * (x.ndim - 2)))


def _joined(x: Tensor, patch: int) -> Tensor:
    """Tiles of patch pixels along each axis as channels of one pixel."""
    if patch == 1:
        return x
    d = x.ndim - 2
    size = [part for n in x.shape[2:] for part in (n // patch, patch)]
    order = [0, 1, *(3 + 2 * i for i in range(d)), *(2 + 2 * i for i in range(d))]
    parts = x.reshape(*x.shape[:2], *size).permute(order)
    return parts.reshape(len(x), x.shape[1] * patch**d, *[n // patch for n in x.shape[2:]])


def _split(x: Tensor, patch: int) -> Tensor:
    """Undoes :func:`_joined`."""
    if patch == 1:
        return x
    d = x.ndim - 2
    channels = x.shape[1] // patch**d
    parts = x.reshape(len(x), channels, *[patch] * d, *x.shape[2:])
    order = [0, 1, *(axis for i in range(d) for axis in (2 + d + i, 2 + i))]
    return parts.permute(order).reshape(len(x), channels, *[n * patch for n in x.shape[2:]])
