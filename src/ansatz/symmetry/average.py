"""Networks made symmetric by averaging over a group."""

from typing import Any

from torch import Tensor, nn

from ansatz.symmetry.certificate import Kind
from ansatz.symmetry.group import Group
from ansatz.symmetry.registry import create


class GroupAverage(nn.Module):
    r"""The mean of a network's answers over the elements of a finite group.

    .. math:: \bar{f}(x) = \frac{1}{|G|} \sum_{g \in G} g^{-1} f(g x) \quad \text{(equivariant)},
        \qquad \bar{f}(x) = \frac{1}{|G|} \sum_{g \in G} f(g x) \quad \text{(invariant)}

    It is exactly symmetric whatever f is: :math:`\bar{f}(h x) = h \bar{f}(x)`, as g h runs
    through the group with g. And it is no worse a predictor in the mean, for outcomes whose
    likelihood has the symmetry and a loss that is convex in the answer (Jensen). It takes
    :math:`|G|` times as long, and no training: a network that was trained on rotated and flipped
    examples knows all the answers that are averaged.

    Args:
        network: any module on ``(B, C, *size)``; it is not copied.
        group: or its name; one whose elements can be listed: flips, rotations by 90 degrees, both.
        kind: whether answers move with the inputs, as masks do, or not, as classes.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: what the network gives.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import GroupAverage, certify
        >>> layer, x = torch.nn.Conv2d(1, 2, 3, padding=1), torch.randn(2, 1, 8, 8)
        >>> certify(layer, x, "dihedral", kind="equivariant").largest > 0.1
        True
        >>> average = GroupAverage(layer, "dihedral")
        >>> certify(average, x, "dihedral", kind="equivariant").largest < 1e-5
        True

    References:
        Isensee et al. (2021), nnU-Net, mirrored images at prediction.
        https://doi.org/10.1038/s41592-020-01008-z; Elesedy and Zaidi (2021), Provably strict
        generalisation benefit for equivariant models, section 3. https://arxiv.org/abs/2102.10333
    """

    def __init__(
        self, network: nn.Module, group: Group | str, *, kind: Kind = "equivariant"
    ) -> None:
        super().__init__()
        if kind not in ("invariant", "equivariant"):
            raise ValueError(
                f"kind of GroupAverage must be invariant or equivariant, got {kind!r}."
            )
        self.network, self.kind = network, kind
        self.group = create(group) if isinstance(group, str) else group

    def forward(self, x: Tensor) -> Tensor:
        others = self.group.others(x)
        if others is None:
            raise ValueError(f"{self.group.name} has too many elements to average over all.")
        total = self._answer(self.group.identity(x), x)
        for element in others:
            total = total + self._answer(element, x)
        return total / (1 + len(others))

    def _answer(self, element: Any, x: Tensor) -> Tensor:
        found = self.network(self.group.act(element, x))
        if not isinstance(found, Tensor):
            raise TypeError(f"GroupAverage averages tensors, got {type(found).__name__}.")
        if self.kind == "invariant":
            return found
        return self.group.act(self.group.inverse(element), found)
