"""Small real images to train small networks on, and the descent that trains them."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ansatz.data import load


class Images(NamedTuple):
    """Images ``(N, C, H, W)`` with their classes: training images and test images."""

    x: Tensor
    y: Tensor
    new: Tensor
    truth: Tensor


def images(name: str, rows: int, held_out: int, generator: torch.Generator) -> Images:
    """Draws training and test images of a named data set, standardised by the training images."""
    found = load(name)
    if found.grids is None:  # the digits are a table of 8 x 8 columns
        pixels = found.frame.drop(columns=found.target).to_numpy(np.float32, copy=True)
        x = torch.as_tensor(pixels).unflatten(1, (1, 8, 8))
    else:
        x = found.grids.load().float()
    y = torch.as_tensor(np.unique(found.frame[found.target].to_numpy(), return_inverse=True)[1])
    order = torch.randperm(len(x), generator=generator)
    train, test = order[:rows], order[rows : rows + held_out]
    x = (x - x[train].mean()) / x[train].std()
    return Images(x[train], y[train], x[test], y[test])


def descend(
    network: nn.Module,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    steps: int,
    rate: float,
    batch: int = 64,
) -> list[float]:
    """Trains by momentum 0.9 at a rate that falls to 0; the loss of every step."""
    network.train()
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    speed = [torch.zeros_like(weight) for weight in weights]
    losses = []
    for step in range(steps):
        rows = torch.randint(len(x), (batch,), generator=generator)
        loss = cross_entropy(network(x[rows]), y[rows])
        slopes = torch.autograd.grad(loss, weights)
        losses.append(float(loss.detach()))
        with torch.no_grad():
            for weight, v, slope in zip(weights, speed, slopes, strict=True):
                weight.sub_(v.mul_(0.9).add_(slope), alpha=rate * (1 - step / steps))
    return losses


def answers(network: nn.Module, x: Tensor) -> Tensor:
    """The network's outputs for each image, in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(part) for part in x.split(500)])
