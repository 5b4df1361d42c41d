"""Tiles that overlap by the receptive field give the outputs of the whole image."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import mirror_pad
from ansatz.networks import UNet, predict_tiles, receptive_field
from ansatz.spec import InputSpec


def measure(
    generator: torch.Generator, *, size: int = 64, core: int = 16, depth: int = 2
) -> Finding:
    """A U-Net on an image as a whole, and on tiles with more and more of their surroundings."""
    network = UNet(1, 1, depth=depth, width=2, generator=generator).double().eval()
    x = torch.randn(1, 1, size, size, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        whole = network(x)
    scale, stride, far = float(whole.abs().max()), network.stride, radius(network, size)
    overlaps = list(range(0, far + 2 * stride, stride))
    errors = [
        worst(whole, predict_tiles(network, x, tile=core + 2 * n, overlap=n, border="keep"))
        for n in overlaps
    ]
    enough = next(n for n in overlaps if n >= far)
    shifted = predict_tiles(
        network, x, tile=core + 2 * enough - 1, overlap=enough, border="keep"
    )  # cores of 15 pixels: other pixels meet in a pool
    tolerance = 64 * EPS * max(scale, 1.0)
    paper, mirrored = unpadded(generator, x)
    checks = [
        Check(
            f"largest difference of tiles that overlap by {enough} pixels from the whole",
            errors[overlaps.index(enough)],
            0.0,
            tolerance,
            "rounding: 64 eps times the largest output",
            wrong=Wrong(f"overlap of {stride} pixels", measured=errors[1]),
        ),
        Check(
            "the same with tiles at given multiples of 4 pixels",
            worst(
                whole,
                predict_tiles(
                    network, x, tile=core + 2 * enough, overlap=far, multiple=stride, border="keep"
                ),
            ),
            0.0,
            tolerance,
            "rounding: 64 eps times the largest output",
            wrong=Wrong("tiles at multiples of 15", measured=worst(whole, shifted)),
        ),
        Check(
            "the same of the unpadded U-Net on a mirrored image",
            worst(paper, mirrored),
            0.0,
            tolerance,
            "rounding: 64 eps times the largest output",
        ),
    ]
    table = Table(["overlap", "largest difference"], list(zip(overlaps, errors, strict=True)))
    data = {"overlaps": overlaps, "errors": np.array(errors), "reach": far, "scale": scale}
    return Finding(checks, table, data)


def radius(network: UNet, size: int) -> int:
    """The radius of the receptive field of a unit in the middle."""
    units = receptive_field(network, InputSpec.grid(1, size, size)).units[0]
    middle = range(size // 2 - network.stride, size // 2 + network.stride)
    return max(max(i - units[i][0], units[i][1] - i) for i in middle)


def worst(a: Tensor, b: Tensor) -> float:
    """The largest difference at any pixel."""
    return float((a - b).abs().max())


def unpadded(generator: torch.Generator, x: Tensor) -> tuple[Tensor, Tensor]:
    """The network of the paper: the mirrored image as a whole, and by tiles."""
    network = UNet(1, 1, depth=1, width=2, padded=False, generator=generator).double().eval()
    size = x.shape[2]
    lost = (size - network.output_size(size)[0]) // 2
    with torch.no_grad():
        whole = network(mirror_pad(x, ((lost, lost),) * 2))
    tile = 16 + 2 * lost
    return whole, predict_tiles(network, x, tile=tile, overlap=lost)


def draw(paper: Figure, finding: Finding) -> None:
    """The largest difference over the overlap."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    floor = 1e-16
    axes.plot(data["overlaps"], np.maximum(data["errors"], floor), "o-", color=MODEL, lw=0.8,
              label="tiles against the whole image")  # fmt: skip
    axes.axvline(data["reach"], color=INK, lw=1, label="radius of the receptive field")
    axes.axhline(data["scale"], color=LINEAR, ls="--", lw=1, label="largest output")
    axes.set_ylim(3e-17, 100)
    logarithmic(axes.yaxis)
    axes.set(xlabel="overlap, pixels on either side of a tile", ylabel="largest difference")
    axes.set_title("tiles have no seams once they overlap by the receptive field")
    axes.legend(loc="lower left")


claim = Claim(
    id="overlap-tiles",
    title="Tiles without seams",
    statement=(
        "An image too large for memory may be cut into tiles: if they overlap by at least the "
        "receptive field's radius and begin at multiples of the network's stride, the outputs are "
        "exactly those of the whole image. The unpadded U-Net needs the image mirrored at its "
        "border, since it loses that radius on every side."
    ),
    formula=(
        r"\text{overlap} \ge r, \; 2^L \mid \text{step} \;\Rightarrow\; "
        r"f(x)_i = f(x_{\text{tile}})_{i - \text{start}} \;\forall i \in \text{core}"
    ),
    sources=("M235",),
    measure=measure,
    reference=(
        "Ronneberger, Fischer and Brox (2015), U-Net: convolutional networks for biomedical image "
        "segmentation, section 2, figure 2. https://arxiv.org/abs/1505.04597"
    ),
    full={"size": 256, "core": 32, "depth": 3},
    draw=draw,
)
