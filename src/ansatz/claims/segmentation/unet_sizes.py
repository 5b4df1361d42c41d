"""The sizes of the U-Net: 572 pixels in, 388 out, and skips that concatenate channels."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.networks import UNet
from ansatz.spec import InputSpec

DOWN, UP = (568, 280, 136, 64, 28), (52, 100, 196, 388)  # after each block of two convolutions
CHANNELS = (64, 128, 256, 512, 1024)


def measure(generator: torch.Generator, *, size: int = 572) -> Finding:
    """Follows the shapes of networks of the published depth; counts the published weights."""
    spec = InputSpec.grid(1, size, size)
    thin = UNet(spec, 2, width=1, padded=False, norm=None, generator=generator)
    padded = UNet(InputSpec.grid(1, size), 2, width=1, norm=None, generator=generator)
    shapes = follow(thin, torch.zeros(1, 1, size, size))
    down = [shapes[f"down.{level}"] for level in range(5)]
    up = [shapes[f"merge.{level}"] for level in reversed(range(4))]
    sizes = [shape[2] for shape in (*down, *up)]
    with torch.device("meta"):
        network = UNet(spec, 2, padded=False, norm=None)
    weights = sum(weight.numel() for weight in network.parameters())
    channels = [kernel(network, f"down.{level}").shape[0] for level in range(5)]
    joined = kernel(network, "merge.0").shape[1]
    axes = [voxels(n, generator) for n in (132, 132, 116)]
    checks = [
        Check(
            "pixels out along an axis",
            sizes[-1],
            388,
            0,
            "whole numbers",
            wrong=Wrong(
                "with zeros around the maps", measured=padded(torch.zeros(1, 1, size)).shape[2]
            ),
        ),
        Check(
            "largest difference of the sizes on the way from 568, 280, 136, 64, 28, 52, ..., 388",
            max(abs(a - b) for a, b in zip(sizes, (*DOWN, *UP), strict=True)),
            0,
            0,
            "whole numbers: 4 less per block, half per pool, twice per up-convolution",
            wrong=Wrong(
                "2 less per block",
                measured=max(abs(a - b) for a, b in zip(sizes, chain(size, 2), strict=True)),
            ),
        ),
        Check(
            "largest difference of the channels from 64, 128, 256, 512, 1024",
            max(abs(a - b) for a, b in zip(channels, CHANNELS, strict=True)),
            0,
            0,
            "whole numbers",
        ),
        Check(
            "channels that meet at the finest skip: those of both, side by side",
            joined,
            128,
            0,
            "whole numbers",
            wrong=Wrong("added, as in a residual network", predicted=64),
        ),
        Check(
            "weights",
            weights,
            counted(2),
            0,
            "whole numbers, from the figure of the paper",
            wrong=Wrong("skips added", predicted=counted(1)),
        ),
        Check(
            "voxels out of 132 x 132 x 116 by the 3-D U-Net, axis by axis",
            math.prod(axes),
            44 * 44 * 28,
            0,
            "whole numbers",
            wrong=Wrong("the 2-D network's four halvings", predicted=four_halvings()),
        ),
    ]
    names = [*(f"down {k}" for k in range(5)), *(f"up {k}" for k in (3, 2, 1, 0))]
    rows = [
        [name, 64 * shape[1], shape[2]] for name, shape in zip(names, (*down, *up), strict=True)
    ]
    return Finding(
        checks, Table(["block", "channels", "pixels along an axis"], rows), {"sizes": sizes}
    )


def follow(network: nn.Module, x: Tensor) -> dict[str, torch.Size]:
    """The shape that every part gives."""
    shapes = dict[str, torch.Size]()

    def note(name: str) -> Any:
        return lambda _, __, output: shapes.update({name: output.shape})

    hooks = [part.register_forward_hook(note(name)) for name, part in network.named_modules()]
    with torch.no_grad():
        network(x)
    for hook in hooks:
        hook.remove()
    return shapes


def kernel(network: nn.Module, block: str) -> Tensor:
    """The weights of the first convolution of a block."""
    convolutions = (
        part for part in network.get_submodule(block).modules() if isinstance(part, nn.Conv2d)
    )
    return next(convolutions).weight


def voxels(length: int, generator: torch.Generator) -> int:
    """The output size of the 3-D network along an axis; its operations treat every axis alike."""
    spec = InputSpec.grid(1, length)
    network = UNet(spec, 1, depth=3, width=1, padded=False, doubling="before", generator=generator)
    with torch.no_grad():
        return network.eval()(torch.zeros(1, 1, length)).shape[2]


def chain(size: int, taken: int) -> list[int]:
    """Sizes after each block that removes that many pixels, down and up again."""
    found = [size - taken]
    for _ in range(4):
        found.append(found[-1] // 2 - taken)
    for _ in range(4):
        found.append(found[-1] * 2 - taken)
    return found


def counted(parts: int) -> int:
    """Weights of the figure, for a factor of the channels that meet at a skip."""
    total, before = 0, 1
    for c in CHANNELS:
        total += 9 * before * c + c + 9 * c * c + c
        before = c
    for c in reversed(CHANNELS[:-1]):
        total += 4 * (2 * c) * c + c  # 2 x 2 up-convolution, half of the channels
        total += 9 * (parts * c) * c + c + 9 * c * c + c
    return total + 64 * 2 + 2


def four_halvings() -> int:
    """Voxels that would be left of 132 x 132 x 116."""
    sides = [chain(n, 4)[-1] for n in (132, 132, 116)]
    return max(sides[0], 0) * max(sides[1], 0) * max(sides[2], 0)


def draw(paper: Figure, finding: Finding) -> None:
    """Sizes along the network, beside those of blocks that keep them."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, sizes = paper.subplots(), finding.data["sizes"]
    places = range(len(sizes))
    axes.plot(
        places, chain(576, 0), "--", color=LINEAR, lw=1, label="with padding: 576 inside, 572 out"
    )
    axes.plot(places, [*DOWN, *UP], color=INK, lw=1, label="4 less per block, halved and doubled")
    axes.plot(places, sizes, "o", color=MODEL, label="measured")
    for place, value in zip(places, sizes, strict=True):
        axes.annotate(str(value), (place, value), (-6, -13), textcoords="offset points",
                      ha="center", fontsize=8)  # fmt: skip
    axes.set_xticks(
        list(places), [*(f"down {k}" for k in range(5)), *(f"up {k}" for k in (3, 2, 1, 0))]
    )
    axes.set(ylabel="pixels along an axis", ylim=(-60, 640), xlim=(-0.4, 8.4))
    axes.set_title("572 pixels in, 388 out: every block of the U-Net takes 4 off")
    axes.legend(loc="upper center")


claim = Claim(
    id="unet-sizes",
    title="The sizes of the U-Net",
    statement=(
        "The U-Net removes 4 pixels per block of two unpadded convolutions: 572 pixels in, 568, "
        "280, 136, 64, 28 on the way down, 388 out, with 64 to 1024 channels. Its skips "
        "concatenate channels; they are sometimes called residual, which would add them. The 3-D "
        "U-Net halves three times: 132 x 132 x 116 voxels give 44 x 44 x 28."
    ),
    formula=(
        r"n_{l+1} = \tfrac{n_l}{2} - 4, \quad n_0 = 572 - 4, \qquad m_l = 2 m_{l+1} - 4, \qquad "
        r"u_l = G_l([h_l, \mathrm{up}(u_{l+1})])"
    ),
    sources=("M235", "M236"),
    measure=measure,
    reference=(
        "Ronneberger, Fischer and Brox (2015), U-Net: convolutional networks for biomedical image "
        "segmentation, figure 1. https://arxiv.org/abs/1505.04597"
    ),
    draw=draw,
)
