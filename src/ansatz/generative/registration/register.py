"""Registration of a pair of images or volumes, by a network or by descent on the pair alone."""

from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.errors import DataError, UsageError
from ansatz.generative.registration.warp import (
    integrate,
    jacobian_determinant,
    local_correlation,
    roughness,
    warp,
)
from ansatz.networks.unet import UNet
from ansatz.training.objectives import Loss, weighted

Similarity = Literal["mse", "correlation"]


class Registered(NamedTuple):
    """A moved image, with the map that moved it.

    Args:
        warped: the moving image on the grid of the fixed one, ``(B, C, *size)``.
        displacement: in pixels, ``(B, d, *size)``.
        inverse: the displacement of the inverse map.
        velocity: whose integral both are.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import Registered
        >>> shift = torch.full((1, 2, 5, 5), 0.5)
        >>> Registered(torch.zeros(1, 1, 5, 5), shift, -shift, shift).folding
        0.0
    """

    warped: Tensor
    displacement: Tensor
    inverse: Tensor
    velocity: Tensor

    @property
    def folding(self) -> float:
        """The share of pixels at which the map folds space: a determinant of at most 0."""
        return float((jacobian_determinant(self.displacement) <= 0).double().mean())

    @property
    def inverse_error(self) -> float:
        """The mean distance in pixels from where there and back leads, away from the border."""
        back = self.inverse + warp(self.displacement, self.inverse)
        for axis in range(2, back.ndim):
            back = back.narrow(axis, 1, back.shape[axis] - 2)
        return float(back.norm(dim=1).mean())


class RegistrationNetwork(nn.Module):
    """A U-Net that gives the velocity that moves one image onto another.

    Args:
        size: pixels along each axis.
        channels: of an image.
        width: of the U-Net's first level.
        depth: how often the grid is halved.
        generator: where weights are drawn from.

    Shapes:
        - moving, fixed: ``(B, C, *size)``.
        - returns: ``(B, d, *size)``, zero at the start of the training.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import RegistrationNetwork
        >>> RegistrationNetwork((16, 16))(*torch.rand(2, 3, 1, 16, 16)).abs().max().item()
        0.0

    References:
        Dalca et al. (2018), Unsupervised learning for fast probabilistic diffeomorphic
        registration. https://arxiv.org/abs/1805.04605
    """

    def __init__(
        self,
        size: tuple[int, ...],
        channels: int = 1,
        *,
        width: int = 16,
        depth: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(size) not in (2, 3):
            raise UsageError(f"registration takes images and volumes, got a size of {size}.")
        self.size, self.channels = tuple(size), channels
        self.settings = {"size": list(size), "channels": channels, "width": width, "depth": depth}
        self.unet = UNet(
            (2 * channels, *size), len(size), width=width, depth=depth, norm=None, up="upsample",
            generator=generator,
        )  # fmt: skip
        last: Any = self.unet.output
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, moving: Tensor, fixed: Tensor) -> Tensor:
        found: Tensor = self.unet(torch.cat([moving, fixed], 1))
        return found


class Registration(nn.Module):
    r"""The objective of a registration: unlike images and rough velocities cost.

    .. math:: \mathrm{dissimilarity}(M \circ \phi_v, F) + \lambda \|\nabla v\|^2

    The dissimilarity is the mean squared difference over the variance of the fixed image, or one
    minus the local correlation.

    Args:
        similarity: ``"mse"`` or ``"correlation"``.
        smoothness: :math:`\lambda`.
        window: of the correlation.

    Shapes:
        - batch.inputs: moving and fixed images ``(B, C, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.generative.registration import Registration, RegistrationNetwork
        >>> x = torch.rand(2, 1, 8, 8)
        >>> loss = Registration()(RegistrationNetwork((8, 8)), Batch.of((x, x), x))
        >>> round(loss.total.item(), 6)
        0.0
    """

    def __init__(
        self, similarity: Similarity = "mse", smoothness: float = 0.05, *, window: int = 9
    ) -> None:
        super().__init__()
        if similarity not in get_args(Similarity):
            raise UsageError(f"similarity must be 'mse' or 'correlation', got {similarity!r}.")
        if not smoothness >= 0:
            raise UsageError(f"smoothness must be at least 0, got {smoothness}.")
        self.similarity, self.smoothness, self.window = similarity, smoothness, window

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss of pairs."""
        moving, fixed = batch.inputs
        return weighted(self.of(network(moving, fixed), moving, fixed), batch.weight)

    def of(self, velocity: Tensor, moving: Tensor, fixed: Tensor) -> Tensor:
        """Computes the loss of each pair under a velocity."""
        warped = warp(moving, integrate(velocity))
        if self.similarity == "mse":
            scale = fixed.flatten(1).var(1).clamp(min=1e-6)
            apart = (warped - fixed).square().flatten(1).mean(1) / scale
        else:
            apart = 1 - local_correlation(warped, fixed, self.window)
        return apart + self.smoothness * roughness(velocity)


def registered(velocity: Tensor, moving: Tensor) -> Registered:
    """Moves images by the integral of a velocity."""
    displacement, inverse = integrate(velocity), integrate(-velocity)
    return Registered(warp(moving, displacement), displacement, inverse, velocity)


def register(
    moving: Tensor,
    fixed: Tensor,
    *,
    similarity: Similarity = "mse",
    smoothness: float = 0.05,
    spacing: int = 2,
    steps: int = 200,
    rate: float = 0.1,
) -> Registered:
    r"""Moves one image onto another without training: gradient descent on the pair alone.

    The velocity lives on a grid that is ``spacing`` times as coarse, and is interpolated.

    Args:
        moving: ``(B, C, H, W)`` or ``(B, C, D, H, W)``.
        fixed: the same shape.
        similarity: ``"mse"``, or ``"correlation"`` where brightness differs.
        smoothness: weight of the roughness of the velocity.
        spacing: pixels from one vector of the velocity to the next.
        steps: of Adam.
        rate: its learning rate, in pixels.

    Raises:
        DataError: the images differ in shape, are of one brightness, or are not finite.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import register
        >>> place = torch.arange(24.0)
        >>> blob = lambda c: torch.exp(-((place - c) ** 2) / 20)
        >>> fixed = (blob(12).unsqueeze(1) * blob(12)).reshape(1, 1, 24, 24)
        >>> moving = (blob(14).unsqueeze(1) * blob(12)).reshape(1, 1, 24, 24)
        >>> found = register(moving, fixed, steps=60)
        >>> round(found.displacement[0, 0, 12, 12].item()), found.folding
        (2, 0.0)
    """
    check_pair(moving, fixed)
    objective = Registration(similarity, smoothness)
    size = tuple(fixed.shape[2:])
    coarse = [max(2, -(-n // spacing)) for n in size]
    field = torch.zeros(len(fixed), len(size), *coarse, dtype=fixed.dtype, requires_grad=True)
    optimizer = torch.optim.Adam([field], lr=rate)
    mode = "bilinear" if len(size) == 2 else "trilinear"

    def velocity() -> Tensor:
        return nn.functional.interpolate(field, size, mode=mode, align_corners=True)

    with torch.enable_grad():
        for _ in range(steps):
            optimizer.zero_grad()
            objective.of(velocity(), moving, fixed).sum().backward()
            optimizer.step()
    with torch.no_grad():
        return registered(velocity(), moving)


def check_pair(moving: Tensor, fixed: Tensor) -> None:
    """Refuses images that cannot be moved onto each other."""
    if moving.shape != fixed.shape:
        raise DataError(
            f"the moving image has shape {tuple(moving.shape)}, the fixed one "
            f"{tuple(fixed.shape)}: resample one of them."
        )
    for name, image in (("moving", moving), ("fixed", fixed)):
        if not bool(image.isfinite().all()):
            raise DataError(f"the {name} image has numbers that are not finite.")
        if bool((image.flatten(1).amax(1) == image.flatten(1).amin(1)).any()):
            raise DataError(f"the {name} image is of one brightness: there is nothing to match.")
