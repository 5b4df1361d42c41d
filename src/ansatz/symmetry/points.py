"""Motions of point clouds: translations, rotations, reflections, and all of them."""

import torch
from torch import Tensor

from ansatz.symmetry.group import Group, normal


def haar_orthogonal(
    dimension: int,
    *,
    proper: bool = False,
    samples: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Draws a rotation or reflection uniformly (Haar).

    .. math:: Z = Q R, \quad Z_{ij} \sim N(0, 1), \qquad
        G = Q \operatorname{diag}(\operatorname{sign} R_{ii})

    The signs make the factorisation unique, without which the likelihood would be the algorithm's.
    For a proper rotation one column of an improper one is turned round, which keeps it uniform.

    Args:
        dimension: :math:`D`.
        proper: rotations only, :math:`\det G = 1`.
        samples: None for one matrix, else their number.
        generator: of random numbers.

    Shapes:
        - returns: ``(D, D)`` or ``(S, D, D)`` in float64.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import haar_orthogonal
        >>> G = haar_orthogonal(3, proper=True)
        >>> bool(torch.linalg.det(G).sub(1).abs() < 1e-12)
        True

    References:
        Mezzadri (2007), How to generate random matrices from the classical compact groups,
        section 5. https://arxiv.org/abs/math-ph/0609050
    """
    count = 1 if samples is None else samples
    q, r = torch.linalg.qr(normal(count, dimension, dimension, generator=generator))
    sign = r.diagonal(dim1=-2, dim2=-1).sign()  # (S, D), never 0 but with probability 0
    if proper:
        sign[:, 0] *= torch.linalg.det(q * sign[:, None, :]).sign()
    q = q * sign[:, None, :]
    return q[0] if samples is None else q


class Translation(Group):
    r"""Translations of point clouds.

    .. math:: (g x)_i = x_i + t, \qquad t \sim N(0, \sigma^2 I)

    with :math:`\sigma` = ``scale``: the group is not compact, so no likelihood on it is uniform.

    Args:
        scale: the standard deviation of what is added to each coordinate.

    Shapes:
        - x: ``(..., D)``.
        - element: ``(D,)``.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Translation
        >>> Translation().act(torch.tensor([1.0, 2.0]), torch.zeros(1, 1, 2))
        tensor([[[1., 2.]]])

    References:
        Satorras et al. (2021), E(n) equivariant graph neural networks, section 2.1.
    """

    name = "translation"

    def __init__(self, *, scale: float = 1.0) -> None:
        if not scale > 0:
            raise ValueError(f"scale of {self.name} must be above 0, got {scale}.")
        self.scale = scale

    def identity(self, x: Tensor) -> Tensor:
        return torch.zeros(x.shape[-1], dtype=torch.float64)

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.scale * normal(x.shape[-1], generator=generator)

    def act(self, element: Tensor, x: Tensor) -> Tensor:
        _check(self.name, len(element), x)
        return x + element.to(x.device, x.dtype)

    def inverse(self, element: Tensor) -> Tensor:
        return -element

    def compose(self, first: Tensor, second: Tensor) -> Tensor:
        return first + second


class Orthogonal(Group):
    r"""Rotations and reflections of point clouds about the origin: :math:`O(D)`.

    .. math:: (g x)_i = G x_i, \qquad G^\top G = I

    Elements are uniform (:func:`haar_orthogonal`).

    Shapes:
        - x: ``(..., D)``.
        - element: ``(D, D)``.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Orthogonal
        >>> x = torch.randn(1, 5, 3)
        >>> moved = Orthogonal().act(Orthogonal().sample(x), x)
        >>> bool((moved.norm(dim=-1) - x.norm(dim=-1)).abs().max() < 1e-5)
        True

    References:
        Mezzadri (2007), How to generate random matrices from the classical compact groups.
        https://arxiv.org/abs/math-ph/0609050
    """

    name = "orthogonal"
    proper = False

    def identity(self, x: Tensor) -> Tensor:
        return torch.eye(x.shape[-1], dtype=torch.float64)

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return haar_orthogonal(x.shape[-1], proper=self.proper, generator=generator)

    def act(self, element: Tensor, x: Tensor) -> Tensor:
        _check(self.name, len(element), x)
        return x @ element.to(x.device, x.dtype).mT

    def inverse(self, element: Tensor) -> Tensor:
        return element.mT

    def compose(self, first: Tensor, second: Tensor) -> Tensor:
        return first @ second


class PointRotation(Orthogonal):
    r"""Rotations of point clouds about the origin: :math:`SO(D)`.

    .. math:: (g x)_i = G x_i, \qquad G^\top G = I, \quad \det G = 1

    Shapes:
        - x: ``(..., D)``.
        - element: ``(D, D)``, uniform (:func:`haar_orthogonal`).

    Example:
        >>> import torch
        >>> from ansatz.symmetry import PointRotation
        >>> bool(torch.linalg.det(PointRotation().sample(torch.zeros(1, 4, 3))) > 0)
        True

    References:
        Mezzadri (2007), How to generate random matrices from the classical compact groups.
        https://arxiv.org/abs/math-ph/0609050
    """

    name = "point_rotation"
    proper = True


class RigidMotion(Group):
    r"""Rotations and translations of point clouds: :math:`SE(D)`; with reflections, :math:`E(D)`.

    .. math:: (g x)_i = G x_i + t, \qquad (G, t) (H, s) = (G H, G s + t)

    Args:
        scale: the standard deviation of each coordinate of :math:`t`.
        reflections: reflections too.

    Shapes:
        - x: ``(..., D)``.
        - element: (G, t), ``(D, D)`` and ``(D,)``.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import RigidMotion
        >>> x = torch.randn(1, 4, 3, dtype=torch.float64)
        >>> moved = RigidMotion().act(RigidMotion().sample(x), x)
        >>> bool((torch.cdist(moved, moved) - torch.cdist(x, x)).abs().max() < 1e-6)
        True

    References:
        Satorras et al. (2021), E(n) equivariant graph neural networks, section 2.1.
    """

    name = "rigid_motion"

    def __init__(self, *, scale: float = 1.0, reflections: bool = False) -> None:
        self.turns = Orthogonal() if reflections else PointRotation()
        self.steps = Translation(scale=scale)

    def identity(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.turns.identity(x), self.steps.identity(x)

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        return self.turns.sample(x, generator), self.steps.sample(x, generator)

    def act(self, element: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        turn, step = element
        return self.steps.act(step, self.turns.act(turn, x))

    def inverse(self, element: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        turn, step = element
        return turn.mT, -turn.mT @ step

    def compose(
        self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        (G, t), (H, s) = first, second
        return G @ H, G @ s + t


def _check(name: str, dimension: int, x: Tensor) -> None:
    if x.shape[-1:] != (dimension,):
        raise ValueError(
            f"{name} moves points of {dimension} coordinates on the last axis, got "
            f"{tuple(x.shape)}. For outputs of another shape give output_action."
        )
