"""Ways to make maps larger again: all but one are transposed convolutions."""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv_transpose2d

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.layers import BedOfNails
from ansatz.networks import transposed_convolution


def measure(generator: torch.Generator, *, size: int = 8) -> Finding:
    """Maps that were pooled, made large by each of the ways."""
    a = torch.rand(1, 1, size, size, generator=generator, dtype=torch.float64)
    pooled, places = nn.MaxPool2d(2, return_indices=True)(a)
    back = nn.MaxUnpool2d(2)(pooled, places)
    nails, nearest = BedOfNails(2)(pooled), nn.Upsample(scale_factor=2)(pooled)
    corner, ones = torch.zeros(2, 2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)
    corner[0, 0] = 1
    linear = transposed_convolution(2, 1, 1, 2, init="linear").double()
    bilinear = nn.Upsample(scale_factor=2, mode="bilinear")(pooled)
    inner = (slice(None), slice(None), slice(1, -1), slice(1, -1))
    flat = torch.ones_like(pooled)
    kept = [
        gap(layer(flat)[inner], flat.new_ones(()))
        for layer in (nn.Upsample(scale_factor=2), linear)
    ]
    errors = {
        "max-unpooling, pooled again": gap(nn.MaxPool2d(2)(back), pooled),
        "bed of nails, kernel with a single 1": gap(enlarged(pooled, corner), nails),
        "nearest, kernel of ones": gap(enlarged(pooled, ones), nearest),
        "bilinear away from the border, kernel of a tent": gap(
            linear(pooled)[inner], bilinear[inner]
        ),
    }
    rounding = "rounding: 8 eps, numbers below 1"
    checks = [
        Check(
            "largest change of pooled maps by max-unpooling and pooling again",
            errors["max-unpooling, pooled again"],
            0.0,
            0.0,
            "every maximum is put back as it was",
            wrong=Wrong("the maps before pooling, restored", measured=gap(back, a)),
        ),
        Check(
            "largest difference of fixed unpooling from a transposed convolution",
            max(list(errors.values())[1:]),
            0.0,
            8 * EPS,
            rounding,
            wrong=Wrong("kernels exchanged", measured=gap(enlarged(pooled, ones), nails)),
        ),
        Check(
            "largest change of a constant map by interpolation",
            max(kept),
            0.0,
            8 * EPS,
            rounding,
            wrong=Wrong(
                "by a bed of nails", measured=float((BedOfNails(2)(flat)[inner] - 1).abs().max())
            ),
        ),
        Check(
            "share of the sum that max-unpooling keeps",
            float(back.sum() / pooled.sum()),
            1.0,
            8 * size * EPS,
            "rounding of a sum in another order",
            wrong=Wrong("by nearest neighbours", measured=float(nearest.sum() / pooled.sum())),
        ),
    ]
    return Finding(checks, Table(["way", "largest difference"], list(errors.items())))


def enlarged(x: Tensor, kernel: Tensor) -> Tensor:
    """By a transposed convolution of stride 2."""
    return conv_transpose2d(x, kernel[None, None], stride=2)


def gap(a: Tensor, b: Tensor) -> float:
    """The largest difference."""
    return float((a - b).detach().abs().max())


claim = Claim(
    id="unpooling",
    title="Ways to unpool",
    statement=(
        "Max-unpooling puts each number back where the maximum was; pooling undoes it, but it does "
        "not restore the maps before pooling. The bed of nails, nearest neighbours and bilinear "
        "interpolation are transposed convolutions with stride 2 and fixed kernels, so that a "
        "learnable one may become any of them; interpolation keeps constant maps, the bed of nails "
        "does not."
    ),
    formula=(
        r"\mathrm{pool}(\mathrm{unpool}(y, i)) = y, \qquad "
        r"\mathrm{up}(y)_{2i + j} = y_i\, k_j: \; k = e_0 \text{ (nails)}, \; "
        r"k = \mathbf{1} \text{ (nearest)}"
    ),
    sources=("M198", "M199", "M200", "M201"),
    measure=measure,
    reference=(
        "Noh, Hong and Han (2015), Learning deconvolution network for semantic segmentation. "
        "https://arxiv.org/abs/1505.04366"
    ),
    full={"size": 256},
)
