"""Networks on point clouds that no motion changes, and the linear model of clouds."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import Dense
from ansatz.layers.init import affine
from ansatz.layers.ragged import rows_of, segment_mean, spread
from ansatz.layers.registry import activations
from ansatz.layers.set_pool import Pool, SetPool
from ansatz.networks.inputs import check_widths
from ansatz.networks.set_inputs import read_points
from ansatz.spec import Inputs

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # of the quantiles of the radius


class InvariantPoints(nn.Module):
    r"""Deep Sets on the distances between points: no rotation or translation changes it.

    .. math:: f(X) = \rho\Big(\operatorname{pool}_i \psi(h_i)\Big), \qquad
        h_i = \frac{1}{n} \sum_j \varphi(\|x_i - x_j\|)

    with :math:`\varphi(d)_r = \max(0, 1 - |d / \delta - r|)` for r = 0, ..., R - 1: what
    follows the mean is linear in it, so each channel of :math:`\psi`'s first layer is a sum over j
    of a piecewise linear function of the distance with R knots. Distances determine a cloud up to
    motions and reflections. The cost is n² distances of each cloud. Features of the points, which
    motions do not change, stand beside :math:`h_i`. For outcomes of points :math:`\rho` takes
    :math:`\psi(h_i)` as well.

    Args:
        inputs: of points, 3 coordinates first; or the numbers of a point.
        outputs: :math:`P`.
        widths: units of the layers of :math:`\psi`.
        head: units of the hidden layers of :math:`\rho`.
        knots: R.
        pool: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"``.
        activation: a name from ``ansatz.layers.activations``.
        dropout: probability that a hidden unit of :math:`\rho` is dropped while training.
        output_scale: factor on the initial weights of the last map.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - as those of :class:`PointNet`.

    Example:
        >>> import torch
        >>> from ansatz.networks import InvariantPoints
        >>> network, x = InvariantPoints(3, 2).double().eval(), torch.randn(5, 3).double()
        >>> far = network(x + 1, torch.tensor([0, 5])) - network(x, torch.tensor([0, 5]))
        >>> bool(far.abs().max() < 1e-9)
        True

    References:
        Zaheer et al. (2017), Deep Sets. https://arxiv.org/abs/1703.06114; Villar et al. (2021),
        Scalars are universal. https://arxiv.org/abs/2106.06610
    """

    heads: tuple[str, ...] = ("output",)
    spacing: Tensor

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: Sequence[int] = (128, 128),
        head: Sequence[int] = (128,),
        knots: int = 32,
        pool: Pool = "mean",
        activation: str = "silu",
        dropout: float = 0.1,
        output_scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_points("invariant_points", inputs)
        widths, head = (check_widths("invariant_points", each) for each in (widths, head))
        if knots < 2:
            raise UsageError(f"knots of invariant_points must be 2 or more, got {knots}.")
        self.features, self.each, self.knots = spec.features, spec.rows == "elements", knots
        self.register_buffer("spacing", torch.tensor(4.0 / (knots - 1)))
        size = knots + spec.features - 3
        self.points = nn.ModuleList()
        for width in widths:
            self.points.append(affine(size, width, generator=generator))
            size = width
        self.activation = activations.create(activation)
        self.pool = SetPool(size, pool, generator=generator)
        size = 2 * size if self.each else size
        self.head = nn.ModuleList()
        for width in head:
            layer = Dense(size, width, activation=activation, dropout=dropout, generator=generator)
            self.head.append(layer)
            size = width
        self.output = affine(size, outputs, gain=output_scale, generator=generator)

    def begin(self, values: Tensor, offsets: Tensor, *others: Tensor, slopes: Tensor) -> None:
        """Puts the last knot at twice the largest radius of a training cloud."""
        middle = spread(segment_mean(values[:, :3], offsets), offsets, values.shape[0])
        radius = (
            (values[:, :3] - middle).norm(dim=1).max() if values.shape[0] else values.new_ones(())
        )
        if radius > 0:
            self.spacing.copy_(2 * radius / (self.knots - 1))

    def distances(self, points: Tensor, offsets: Tensor) -> Tensor:
        """The mean over each cloud of the hat functions of the distances, ``(E, R)``."""
        lengths, count = offsets.diff(), points.shape[0]
        row = rows_of(offsets, count)
        partners = lengths[row]  # of each point: all points of its cloud
        if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
            return self._all_distances(points, row) / partners.unsqueeze(1)
        ends = torch.cat([partners.new_zeros(1), partners.cumsum(0)])
        first = torch.arange(count, device=points.device).repeat_interleave(partners)
        place = torch.arange(len(first), device=points.device) - ends[:-1][first]
        second = offsets[:-1][row][first] + place
        square = (points[first] - points[second]).square().sum(1)
        near = square == 0  # the root has no slope there
        distance = torch.where(near, 0.0, torch.where(near, 1.0, square).sqrt())
        level = (distance / self.spacing).clamp(max=self.knots - 1 - 1e-6)
        low = level.detach().floor().clamp(min=0, max=self.knots - 2)
        share = level - low
        slot = first * self.knots + low.long()
        found = points.new_zeros(count * self.knots)
        found = found.index_add(0, slot, 1 - share).index_add(0, slot + 1, share)
        return found.reshape(count, self.knots) / partners.unsqueeze(1)

    def _all_distances(self, points: Tensor, row: Tensor) -> Tensor:
        """The sums of the hat functions, by pairs of all points: no length depends on values."""
        square = (points.unsqueeze(1) - points.unsqueeze(0)).square().sum(2)
        level = (square.sqrt() / self.spacing).clamp(max=self.knots - 1 - 1e-6)
        own = (row.unsqueeze(1) == row).to(points.dtype)
        hats = [((1 - (level - r).abs()).clamp(min=0) * own).sum(1) for r in range(self.knots)]
        return torch.stack(hats, 1)

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
                f"invariant_points needs points (E, {self.features}), got {tuple(values.shape)}."
            )
        h = self.distances(values[:, :3], offsets) * self.knots  # of size 1, whatever R
        h = torch.cat([h, values[:, 3:]], 1) if self.features > 3 else h
        for layer in self.points:
            h = self.activation(layer(h))
        pooled = self.pool(h, offsets)
        if self.each:
            pooled = torch.cat([h, spread(pooled, offsets, h.shape[0])], 1)
            pooled = pooled if chosen is None else pooled[chosen]
        for layer in self.head:
            pooled = layer(pooled)
        answer: Tensor = self.output(pooled)
        return answer


class LinearPoints(nn.Module):
    r"""A linear map of the shape of a cloud: its covariance spectrum and quantiles of its radius.

    .. math:: f(X) = W \big(\lambda_1, \lambda_2, \lambda_3,\ q_{0}, q_{.1}, q_{.25}, q_{.5},
        q_{.75}, q_{.9}, q_{1},\ \log(1 + n),\ \bar{u}\big) + b

    with :math:`\lambda_1 \le \lambda_2 \le \lambda_3` the eigenvalues of the covariance of its
    points, :math:`q` the quantiles of their distances from the mean, and :math:`\bar u` the mean of
    their features. For outcomes of points, a point's distance from the mean and its features stand
    beside these. All coefficients start at 0.

    Args:
        inputs: of points, 3 coordinates first; or the numbers of a point.
        outputs: :math:`P`.
        generator: accepted like every network's; nothing is drawn.

    Shapes:
        - as those of :class:`PointNet`.

    Example:
        >>> import torch
        >>> from ansatz.networks import LinearPoints
        >>> LinearPoints(3, 2)(torch.randn(5, 3), torch.tensor([0, 2, 5])).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """

    heads: tuple[str, ...] = ("output",)

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        spec = read_points("linear_points", inputs)
        self.size, self.each = spec.features, spec.rows == "elements"
        width = 3 + len(LEVELS) + 1 + spec.features - 3
        width += 1 + spec.features - 3 if self.each else 0
        self.output = affine(width, outputs, init="zeros", generator=generator)

    def features(
        self,
        values: Tensor,
        offsets: Tensor,
        codes: Tensor | None = None,
        beside: Tensor | None = None,
        chosen: Tensor | None = None,
    ) -> Tensor:
        """What the map is linear in, ``(B, F)`` or ``(R, F)``."""
        points, count = values[:, :3], values.shape[0]
        off = points - spread(segment_mean(points, offsets), offsets, count)
        covariance = segment_mean(off.unsqueeze(2) * off.unsqueeze(1), offsets)
        spectrum = torch.linalg.eigvalsh(covariance)
        radius = off.norm(dim=1)
        size = offsets.diff().to(values.dtype).log1p().unsqueeze(1)
        own = [spectrum, quantiles(radius, offsets, LEVELS), size]
        if self.size > 3:
            own.append(segment_mean(values[:, 3:], offsets))
        found = torch.cat(own, 1)
        if self.each:
            each = torch.cat([radius.unsqueeze(1), values[:, 3:]], 1)
            found = torch.cat([each, spread(found, offsets, count)], 1)
            found = found if chosen is None else found[chosen]
        return found

    def forward(self, *inputs: Tensor) -> Tensor:
        answer: Tensor = self.output(self.features(*inputs))
        return answer


def quantiles(values: Tensor, offsets: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles of each row of ragged numbers ``(E,)``, interpolated as NumPy does; ``(B, Q)``."""
    order = values.argsort(stable=True)
    order = order[rows_of(offsets, values.shape[0])[order].argsort(stable=True)]
    ordered = values[order]
    last = (offsets.diff() - 1).clamp(min=0).unsqueeze(1)
    level = torch.tensor(levels, dtype=values.dtype, device=values.device)
    place = last.to(values.dtype) * level
    low = place.floor().long()
    high = torch.minimum(low + 1, last)
    start = offsets[:-1].unsqueeze(1)
    return ordered[start + low].lerp(ordered[start + high], place - low.to(values.dtype))
