"""Moving images: warps by displacement fields, and smooth invertible fields from velocities."""

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from ansatz.errors import UsageError


def identity_grid(size: tuple[int, ...], like: Tensor) -> Tensor:
    """The place of every pixel in pixels, ``(d, *size)``."""
    axes = [torch.arange(n, dtype=like.dtype, device=like.device) for n in size]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"))


def warp(image: Tensor, displacement: Tensor, *, nearest: bool = False) -> Tensor:
    r"""Moves an image: each pixel takes the value at its displaced place.

    .. math:: (I \circ \phi)(p) = I(p + u(p))

    by linear interpolation; beyond the border the nearest pixel of the border counts.

    Args:
        image: ``(B, C, H, W)`` or ``(B, C, D, H, W)``.
        displacement: u in pixels, ``(B, d, *size)``, one channel for each axis in its order.
        nearest: take the nearest pixel, as labels need.

    Returns:
        Like ``image``.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import warp
        >>> image = torch.arange(4.0).reshape(1, 1, 1, 4)
        >>> shift = torch.zeros(1, 2, 1, 4)
        >>> shift[:, 1] = 1.0  # along the last axis
        >>> warp(image, shift)
        tensor([[[[1., 2., 3., 3.]]]])

    References:
        Jaderberg et al. (2015), Spatial transformer networks, eq. 5.
        https://arxiv.org/abs/1506.02025
    """
    size = tuple(image.shape[2:])
    if len(size) not in (2, 3):
        raise UsageError(
            f"warp takes images and volumes, got a tensor of shape {tuple(image.shape)}."
        )
    if tuple(displacement.shape) != (len(image), len(size), *size):
        raise UsageError(
            f"the displacement of images {tuple(image.shape)} has shape "
            f"{(len(image), len(size), *size)}, got {tuple(displacement.shape)}."
        )
    place = identity_grid(size, displacement) + displacement
    scale = [2 / max(n - 1, 1) for n in size]
    unit = [place[:, k] * scale[k] - 1 for k in range(len(size))]
    grid = torch.stack(unit[::-1], -1)  # torch lists the last axis first
    mode = "nearest" if nearest else "bilinear"
    return grid_sample(image, grid, mode, padding_mode="border", align_corners=True)


def integrate(velocity: Tensor, steps: int = 7) -> Tensor:
    r"""Integrates a stationary velocity field over unit time by scaling and squaring.

    .. math:: \frac{d\phi}{dt} = v(\phi), \qquad \phi_{1} = \phi_{1/2^K}^{2^K}, \qquad
              u \leftarrow u + u \circ (\mathrm{id} + u)

    The map is smooth and invertible where v is smooth; its inverse is the integral of -v.

    Args:
        velocity: v in pixels per unit of time, ``(B, d, *size)``.
        steps: K, doublings.

    Returns:
        The displacement u, ``(B, d, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import integrate
        >>> constant = torch.full((1, 2, 4, 4), 0.5)
        >>> torch.equal(integrate(constant), constant)
        True

    References:
        Arsigny et al. (2006), A log-Euclidean framework for statistics on diffeomorphisms.
    """
    if steps < 0:
        raise UsageError(f"steps of integrate must be 0 or more, got {steps}.")
    field: Tensor = velocity / 2**steps
    for _ in range(steps):
        field = field + warp(field, field)
    return field


def jacobian_determinant(displacement: Tensor) -> Tensor:
    r"""Computes :math:`\det(I + \nabla u)` by central differences; at most 0 where space folds.

    Args:
        displacement: u in pixels, ``(B, d, *size)``.

    Returns:
        ``(B, *size)`` without the outermost pixels: two fewer along each axis.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import jacobian_determinant
        >>> u = torch.zeros(1, 2, 5, 5)
        >>> u[:, 0] = 0.5 * torch.arange(5.0).reshape(5, 1)  # stretches the first axis
        >>> jacobian_determinant(u)[0, 0, 0].item()
        1.5
    """
    d = displacement.ndim - 2
    rows = []
    for axis in range(d):
        slope = displacement
        for k in range(d):
            n = displacement.shape[k + 2]
            if k == axis:
                slope = slope.narrow(k + 2, 2, n - 2) - slope.narrow(k + 2, 0, n - 2)
            else:
                slope = slope.narrow(k + 2, 1, n - 2)
        rows.append(slope / 2)
    matrix = torch.stack(rows, -1).movedim(1, -2)  # (B, *size, component, axis)
    found: Tensor = torch.linalg.det(matrix + torch.eye(d).to(matrix))
    return found


def local_correlation(first: Tensor, second: Tensor, window: int = 9) -> Tensor:
    r"""Computes the mean squared correlation of two images within windows, one number per image.

    .. math:: \frac{1}{|\Omega|} \sum_p \frac{\mathrm{cov}_p(I, J)^2}
              {\mathrm{var}_p(I)\, \mathrm{var}_p(J)}

    It ignores the brightness and contrast of both, at every place anew.

    Args:
        first: ``(B, 1, *size)``.
        second: the same shape.
        window: pixels along each axis, odd.

    Returns:
        ``(B,)``, between 0 and 1.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import local_correlation
        >>> x = torch.rand(1, 1, 12, 12)
        >>> round(local_correlation(x, 5 - 2 * x, 5).item(), 2)
        1.0

    References:
        Balakrishnan et al. (2019), VoxelMorph, eq. 6. https://arxiv.org/abs/1809.05231
    """
    if window < 3 or window % 2 == 0:
        raise UsageError(f"window of local_correlation must be odd and at least 3, got {window}.")
    pool = torch.nn.functional.avg_pool2d if first.ndim == 4 else torch.nn.functional.avg_pool3d

    def mean(x: Tensor) -> Tensor:
        return pool(x, window, 1, window // 2, count_include_pad=False)

    a, b = mean(first), mean(second)
    covariance = mean(first * second) - a * b
    variance = (mean(first**2) - a**2) * (mean(second**2) - b**2)
    seen = variance > 1e-8
    ratio = torch.where(seen, covariance**2 / torch.where(seen, variance, 1.0), 0.0)
    return ratio.flatten(1).sum(1) / seen.flatten(1).sum(1).clamp(min=1)


def roughness(field: Tensor) -> Tensor:
    """The mean squared difference of neighbouring vectors of a field, one number per example."""
    total = torch.zeros(len(field), dtype=field.dtype, device=field.device)
    d = field.ndim - 2
    for axis in range(2, field.ndim):
        total = total + field.diff(dim=axis).square().flatten(1).mean(1) / d
    return total


def dice(first: Tensor, second: Tensor) -> Tensor:
    r"""Computes :math:`2 |A \cap B| / (|A| + |B|)` of two masks, one number per example.

    Example:
        >>> import torch
        >>> from ansatz.generative.registration import dice
        >>> a, b = torch.tensor([[True, True, False]]), torch.tensor([[True, False, False]])
        >>> round(dice(a, b).item(), 3)
        0.667
    """
    a, b = first.flatten(1).double(), second.flatten(1).double()
    mass = a.sum(1) + b.sum(1)
    return torch.where(mass > 0, 2 * (a * b).sum(1) / mass.clamp(min=1e-12), math.nan)
