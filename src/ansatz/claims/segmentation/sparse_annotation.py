"""A volume with a few labelled slices: voxels without a label do not enter the loss."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.data import Batch
from ansatz.likelihoods import Bernoulli
from ansatz.networks import UNet3d
from ansatz.training import Supervised


def measure(generator: torch.Generator, *, side: int = 8, slices: int = 2) -> Finding:
    """The loss and gradients of a 3-D U-Net whose labels are known in a few slices."""
    network = UNet3d(1, 1, depth=1, width=2, norm=None, generator=generator).double()
    x = torch.randn(2, 1, side, side, side, generator=generator, dtype=torch.float64)
    y = (torch.rand(2, side, side, side, generator=generator) < 0.5).double()
    known = torch.zeros_like(y)
    known[:, :slices] = 1
    missing = torch.where(known > 0, y, torch.nan)  # nobody labelled these voxels
    answer = network(x).detach().requires_grad_()
    total, count = Supervised(Bernoulli(), axis=1)(
        lambda _: answer, Batch.of(x, missing, weight=known)
    )
    (slope,) = torch.autograd.grad(total / count, answer)
    seen = answer[:, 0, :slices]
    direct = binary_cross_entropy_with_logits(seen, y[:, :slices])
    as_zero = binary_cross_entropy_with_logits(answer[:, 0], y * known)
    other = torch.where(known > 0, y, 1 - y)
    of_weights = [gradient(network, x, labels, known) for labels in (missing, other)]
    checks = [
        Check(
            "loss over the labelled voxels",
            float((total / count).detach()),
            float(direct.detach()),
            8 * EPS,
            "rounding of a mean in another order",
            wrong=Wrong("no label taken as background", predicted=float(as_zero.detach())),
        ),
        Check(
            "largest gradient at a voxel without a label",
            float(slope[:, :, slices:].abs().max()),
            0.0,
            0.0,
            "it is in no term",
            wrong=Wrong("at a labelled voxel", measured=float(slope[:, :, :slices].abs().max())),
        ),
        Check(
            "largest change of the weights' gradient if the unknown labels are other ones",
            max(float((a - b).abs().max()) for a, b in zip(*of_weights, strict=True)),
            0.0,
            0.0,
            "they are in no term",
            wrong=Wrong(
                "if known ones are",
                measured=max(
                    float((a - b).abs().max())
                    for a, b in zip(of_weights[0], gradient(network, x, 1 - y, known), strict=True)
                ),
            ),
        ),
        Check("voxels that count", float(count), 2 * slices * side**2, 0, "whole numbers"),
    ]
    table = Table(["voxels", "number", "largest gradient"], [
        ["labelled", int(known.sum()), float(slope[:, :, :slices].abs().max())],
        ["not labelled", int((1 - known).sum()), float(slope[:, :, slices:].abs().max())],
    ])  # fmt: skip
    return Finding(checks, table)


def gradient(network: UNet3d, x: Tensor, y: Tensor, known: Tensor) -> tuple[Tensor, ...]:
    """Of the mean loss in all weights of the network."""
    total, count = Supervised(Bernoulli(), axis=1)(network, Batch.of(x, y, weight=known))
    return torch.autograd.grad(total / count, list(network.parameters()))


claim = Claim(
    id="sparse-annotation",
    title="Volumes with a few labelled slices",
    statement=(
        "A 3-D U-Net can be trained on volumes of which only a few slices are labelled. Voxels "
        "without a label have weight 0 and no gradient, whatever their value, even nan, and the "
        "loss is the mean over the labelled voxels. Taking unlabelled voxels as background would "
        "be another loss."
    ),
    formula=(
        r"\ell = \frac{\sum_v w_v \, \ell(r_v, y_v)}{\sum_v w_v}, \qquad "
        r"w_v = 0 \Rightarrow \frac{\partial \ell}{\partial r_v} = 0"
    ),
    sources=("M236",),
    measure=measure,
    reference="Çiçek et al. (2016), 3D U-Net, section 2. https://arxiv.org/abs/1606.06650",
    full={"side": 24, "slices": 3},
)
