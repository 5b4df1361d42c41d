"""PointNet: the same map of every point, learned transforms, and a maximum over the cloud."""

from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import drop
from ansatz.layers.init import affine
from ansatz.layers.ragged import rows_of, segment_max
from ansatz.networks.set_inputs import read_points
from ansatz.spec import Inputs

PENALTY = 0.001  # of the 64 x 64 transform: Qi et al. (2017), section 4.2


class _Layers(nn.Module):
    """Affine maps, batch normalisation and ReLU, point by point."""

    def __init__(
        self, sizes: tuple[int, ...], generator: torch.Generator | None, *, last: bool = True
    ) -> None:
        super().__init__()
        self.maps, self.norms, self.last = nn.ModuleList(), nn.ModuleList(), last
        for k in range(len(sizes) - 1):
            made = affine(sizes[k], sizes[k + 1], init="he_normal", generator=generator)
            self.maps.append(made)
            self.norms.append(nn.BatchNorm1d(sizes[k + 1]))

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.maps, self.norms, strict=True):
            x = norm(layer(x)).relu()
        return x


class TNet(nn.Module):
    r"""A matrix for each cloud, from a small PointNet of its own; the identity before training.

    .. math:: T(X) = I + W \, \operatorname{mlp}\Big(\max_i \operatorname{mlp}(x_i)\Big) + B

    with W and B 0 at the start. T may become any matrix: what keeps it near the rotations is a
    penalty :math:`\| I - T T^\top \|_F^2`, and even then it is not a rotation.

    Args:
        features: :math:`K`, the matrix is K x K.
        width: units of the first layer; then twice and 16 times as many.
        generator: of the weights.

    Shapes:
        - x: ``(E, K)``; offsets ``(B + 1,)``; returns ``(B, K, K)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import TNet
        >>> TNet(3, 8)(torch.randn(5, 3), torch.tensor([0, 2, 5]))[0].tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

    References:
        Qi et al. (2017), PointNet, section 4.2 and supplement C. https://arxiv.org/abs/1612.00593
    """

    def __init__(
        self, features: int, width: int = 64, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.features = features
        self.points = _Layers((features, width, 2 * width, 16 * width), generator)
        self.cloud = _Layers((16 * width, 8 * width, 4 * width), generator)
        self.output = affine(4 * width, features**2, init="zeros", generator=generator)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        found = self.output(self.cloud(segment_max(self.points(x), offsets)))
        eye = torch.eye(self.features, dtype=found.dtype, device=found.device)
        made: Tensor = found.reshape(-1, self.features, self.features) + eye
        return made


class _Last:
    """The penalty of the last batch; a copy of a network has none."""

    value: Tensor | None = None

    def __deepcopy__(self, memo: Any) -> "_Last":
        return _Last()


class PointNet(nn.Module):
    r"""A map of each point, a maximum over the cloud, and a map of that.

    .. math:: f(X) = \rho\Big(\max_i h(T_2 \, g(T_1 x_i))\Big)

    with T-Nets :math:`T_1` (3 x 3, on coordinates) and :math:`T_2` (64 x 64, on features),
    :math:`g` of 64, 64 and :math:`h` of 64, 128, 1024 units, :math:`\rho` of 512, 256. For outcomes
    of points, each of them sees its 64 local numbers and the 1024 of the cloud, through 512, 256,
    128 and 128 units. In training :math:`0.001 \| I - T_2 T_2^\top \|_F^2` is added to each cloud's
    loss. It sees the order of nothing; the pose of a cloud it learns at best to ignore.

    Args:
        inputs: of points, 3 coordinates first; or the numbers of a point.
        outputs: :math:`P`.
        width: 64 in the paper; all other widths are multiples of it.
        transforms: whether there are T-Nets.
        dropout: of :math:`\rho`'s last hidden layer, in training.
        penalty: of the second transform.
        output_scale: factor on the initial weights of the last map.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values ``(E, 3 + C)``, offsets ``(B + 1,)``; codes and beside are empty; chosen ``(R,)``.
        - returns: ``(B, P)``; of points ``(R, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import PointNet
        >>> PointNet(3, 10, width=8).eval()(torch.randn(7, 3), torch.tensor([0, 3, 7])).shape
        torch.Size([2, 10])

    References:
        Qi et al. (2017), PointNet: deep learning on point sets for 3D classification and
        segmentation. https://arxiv.org/abs/1612.00593
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        transforms: bool = True,
        dropout: float = 0.3,
        penalty: float = PENALTY,
        output_scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_points("pointnet", inputs)
        if width < 1:
            raise UsageError(f"width of pointnet must be 1 or more, got {width}.")
        self.features, self.each = spec.features, spec.rows == "elements"
        self.penalty_weight = penalty
        g, w = generator, width
        self.align = TNet(3, w, generator=g) if transforms else None
        self.local = _Layers((spec.features, w, w), g)
        self.turn = TNet(w, w, generator=g) if transforms else None
        self.whole = _Layers((w, w, 2 * w, 16 * w), g)
        sizes = (17 * w, 8 * w, 4 * w, 2 * w, 2 * w) if self.each else (16 * w, 8 * w, 4 * w)
        self.head = _Layers(sizes, g)
        self.dropout = drop(dropout)
        self.output = affine(sizes[-1], outputs, gain=output_scale, generator=g)
        self._last = _Last()

    def penalty(self) -> Tensor | None:
        """What the last batch adds to the mean loss in training; given once."""
        found, self._last.value = self._last.value, None
        return found

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        codes: Tensor | None = None,
        beside: Tensor | None = None,
        chosen: Tensor | None = None,
    ) -> Tensor:
        if values.ndim != 2 or values.shape[1] != self.features:
            raise UsageError(
                f"pointnet needs points (E, {self.features}), got {tuple(values.shape)}."
            )
        row = rows_of(offsets, len(values))
        if self.align is not None:
            turned = _turn(values[:, :3], self.align(values[:, :3], offsets), row, offsets)
            values = torch.cat([turned, values[:, 3:]], 1)
        local = self.local(values)  # (E, 64)
        if self.turn is not None:
            matrix = self.turn(local, offsets)
            local = _turn(local, matrix, row, offsets)
            if self.training and self.penalty_weight and torch.is_grad_enabled():
                eye = torch.eye(matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
                off = (eye - matrix @ matrix.mT).square().sum((1, 2))
                self._last.value = self.penalty_weight * off.mean()
        pooled = segment_max(self.whole(local), offsets)  # (B, 1024)
        if self.each:
            pooled = torch.cat([local, pooled[row]], 1)
            pooled = pooled if chosen is None else pooled[chosen]
        answer: Tensor = self.output(self.dropout(self.head(pooled)))
        return answer


def _turn(x: Tensor, matrix: Tensor, row: Tensor, offsets: Tensor) -> Tensor:
    """Each point times the matrix of its cloud."""
    count, exporting = len(matrix), torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling()
    if not exporting and count and bool((offsets.diff() * count == len(x)).all()):
        return torch.bmm(x.reshape(count, -1, x.shape[1]), matrix).reshape(x.shape)
    return torch.einsum("ek,ekl->el", x, matrix[row])
