"""The Gauss-Newton matrix of a network and its inverse, whole, by blocks or as a diagonal."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from ansatz.data import Batch
from ansatz.data.batch import count_rows, take_rows
from ansatz.errors import ResourceError
from ansatz.fitting.model import Trained
from ansatz.inference.weights import WeightVector
from ansatz.likelihoods import Likelihood

MOST_BYTES = 2**30  # of a whole matrix
AT_ONCE = 2**24  # numbers of the Jacobians of some rows


class Jacobian:
    r"""The derivative of a network's raw numbers in its weights.

    .. math:: J_i = \frac{\partial\, \text{raw}(x_i)}{\partial \theta} \in R^{Q \times D}

    Args:
        trained: at the weights.
        last: whether only the weights of the last map count.
    """

    def __init__(self, trained: Trained, *, last: bool = False) -> None:
        self.weights = WeightVector(trained)
        own = dict(trained.answering.named_parameters())
        if last:
            *_, name = (
                n for n, part in trained.answering.named_modules() if isinstance(part, nn.Linear)
            )
            own = {n: p for n, p in own.items() if n.startswith(f"{name}.")}
        self.parameters = {f"answering.{n}": p.detach() for n, p in own.items()}
        self.size = sum(p.numel() for p in self.parameters.values())
        self.places = _places(list(dict(trained.answering.named_parameters())), list(own))

    def __call__(
        self, inputs: tuple[Tensor, ...], offset: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Raw numbers ``(B, Q)`` and their derivatives ``(B, Q, D)``."""
        with torch.no_grad():
            raw = self.weights(inputs, offset).double()
        count = raw.shape[0]
        raw = raw.reshape(count, -1)

        def one(weights: dict[str, Tensor], row: tuple[Tensor, ...]) -> Tensor:
            whole = tuple(part.unsqueeze(0) for part in row)
            found: Tensor = functional_call(self.weights, weights, (whole, None))
            return found.reshape(-1)

        slopes = vmap(jacrev(one), in_dims=(None, 0))(self.parameters, tuple(inputs))
        flat = [slope.detach().double().reshape(*raw.shape, -1) for slope in slopes.values()]
        return raw, torch.cat(flat, -1)

    def chunks(self, rows: Batch, outputs: int) -> Iterator[Batch]:
        """Some rows at a time."""
        size = max(1, AT_ONCE // (outputs * self.size))
        for first in range(0, count_rows(rows), size):
            yield take_rows(rows, slice(first, first + size))


def _places(names: list[str], own: list[str]) -> list[int]:
    return [names.index(name) for name in own]


def loss_factor(likelihood: Likelihood, raw: Tensor, batch: Batch, shape: torch.Size) -> Tensor:
    r"""A root of the second derivative of each row's loss in its raw numbers.

    .. math:: w_i \nabla^2 \ell(r_i, y_i) = R_i^T R_i

    Where the loss is not convex its negative curvatures count as 0.

    Returns:
        ``(B, Q, Q)``, R of each row.
    """
    with torch.enable_grad():
        leaf = raw.detach().clone().requires_grad_()
        y = batch.target.double() if batch.target.is_floating_point() else batch.target
        terms = likelihood.loss(leaf.reshape(len(raw), *shape), y)
        weight = batch.weight.double().reshape(-1, *(1,) * (terms.ndim - 1))
        (gradient,) = torch.autograd.grad((weight * terms).sum(), leaf, create_graph=True)
        rows = [
            torch.autograd.grad(gradient[:, q].sum(), leaf, retain_graph=True, allow_unused=True)[0]
            if gradient.requires_grad
            else None
            for q in range(raw.shape[1])
        ]
    second = torch.stack([torch.zeros_like(raw) if row is None else row for row in rows], 1)
    values, vectors = torch.linalg.eigh((second + second.mT) / 2)
    root: Tensor = values.clamp(min=0).sqrt().unsqueeze(-1) * vectors.mT
    return root


class Curvature(Protocol):
    """A Gauss-Newton matrix H, to which the precision of a prior is added.

    ``log_det`` can be differentiated in the precision and in ``scale``, which multiplies H (noise
    of a normal likelihood divides it). ``covariance`` is of raw numbers with the derivatives J,
    after ``condition``.
    """

    kind: ClassVar[str]

    def add(self, slopes: Tensor, factor: Tensor) -> None:
        """Adds rows: J ``(B, Q, D)`` and R ``(B, Q, Q)``."""
        ...

    def log_det(self, precision: Tensor, scale: Tensor) -> Tensor:
        """The logarithm of the determinant of scale H + diag(precision)."""
        ...

    def condition(self, precision: Tensor, scale: float) -> None:
        """Inverts scale H + diag(precision)."""
        ...

    def covariance(self, slopes: Tensor) -> Tensor:
        """``J (scale H + diag(precision))^-1 J'`` of each row, ``(B, Q, Q)``."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """The inverse, as it is saved."""
        ...

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes the inverse from tensors."""
        ...


class Full:
    """All of the matrix."""

    kind: ClassVar[str] = "full"

    def __init__(self, size: int) -> None:
        if 8 * size**2 > MOST_BYTES:
            raise ResourceError(
                f"curvature full of {size:,} weights takes {8e-9 * size**2:.1f} GB. Take "
                "--set curvature=kron, or subset=last."
            )
        self.matrix = torch.zeros(size, size, dtype=torch.float64)
        self.root = torch.zeros(0)

    def add(self, slopes: Tensor, factor: Tensor) -> None:
        rows = (factor @ slopes).reshape(-1, slopes.shape[-1])
        self.matrix += rows.T @ rows

    def log_det(self, precision: Tensor, scale: Tensor) -> Tensor:
        root: Tensor = torch.linalg.cholesky(scale * self.matrix + torch.diag(precision))
        return 2 * root.diagonal().log().sum()

    def condition(self, precision: Tensor, scale: float) -> None:
        self.root = torch.linalg.cholesky(scale * self.matrix + torch.diag(precision))

    def covariance(self, slopes: Tensor) -> Tensor:
        rows = slopes.reshape(-1, slopes.shape[-1])
        solved: Tensor = torch.linalg.solve_triangular(self.root, rows.T, upper=False)
        solved = solved.T.reshape(slopes.shape)
        return solved @ solved.mT

    def tensors(self) -> dict[str, Tensor]:
        return {"root": self.root}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.root = tensors["root"].double()


class Diagonal:
    """The diagonal of the matrix."""

    kind: ClassVar[str] = "diag"

    def __init__(self, size: int) -> None:
        self.values = torch.zeros(size, dtype=torch.float64)
        self.variances = torch.zeros(0)

    def add(self, slopes: Tensor, factor: Tensor) -> None:
        self.values += (factor @ slopes).square().sum((0, 1))

    def log_det(self, precision: Tensor, scale: Tensor) -> Tensor:
        return (scale * self.values + precision).log().sum()

    def condition(self, precision: Tensor, scale: float) -> None:
        self.variances = 1 / (scale * self.values + precision)

    def covariance(self, slopes: Tensor) -> Tensor:
        return (slopes * self.variances) @ slopes.mT

    def tensors(self) -> dict[str, Tensor]:
        return {"variances": self.variances}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.variances = tensors["variances"].double()


class Block(NamedTuple):
    """The place of a map's weights in the vector, and the shape of the matrix they make."""

    weight: slice
    bias: slice | None
    outputs: int
    inputs: int  # without the bias


class Kronecker:
    r"""One block for each map: the Kronecker product of the second moments of both its ends.

    .. math:: H_\ell \approx \Big( \sum_i |\tilde a_i|^2 g_i g_i^T \Big) \otimes
        \Big( \frac1N \sum_i \frac{\tilde a_i \tilde a_i^T}{|\tilde a_i|^2} \Big),
        \qquad \tilde a = (a, 1)

    with inputs a of the map and the rows :math:`g_i` of :math:`R_i\, \partial \text{raw} /
    \partial (\text{outputs of the map})`, summed over the raw numbers. It has the trace of the
    block of H, and is the block itself for one row. (K-FAC gives all rows the same
    :math:`|\tilde a_i|`.) Inputs are measured in the standard deviations of their weights' prior,
    so that the prior is a multiple of the identity in each block. Weights of other layers have a
    diagonal.

    References:
        Martens and Grosse (2015), Optimizing neural networks with Kronecker-factored approximate
        curvature. https://arxiv.org/abs/1503.05671
    """

    kind: ClassVar[str] = "kron"

    def __init__(self, size: int, blocks: list[Block], unit: Tensor) -> None:
        self.blocks, self.unit, self.count = blocks, unit, 0
        self.left = [torch.zeros(b.outputs, b.outputs, dtype=torch.float64) for b in blocks]
        wide = [b.inputs + (b.bias is not None) for b in blocks]
        self.right = [torch.zeros(n, n, dtype=torch.float64) for n in wide]
        inside = torch.zeros(size, dtype=torch.bool)
        for block in blocks:
            for part in (block.weight, block.bias):
                if part is not None:
                    inside[part] = True
        self.rest = (~inside).nonzero().squeeze(1)
        self.diagonal = Diagonal(len(self.rest))
        self.bases: list[tuple[Tensor, Tensor, Tensor]] = []  # of both ends, and the variances
        self._spectra: list[tuple[Tensor, Tensor]] | None = None

    def _matrices(self, values: Tensor, block: Block) -> Tensor:
        """The weights of a block as matrices ``(..., out, in + 1)``, in units of their prior."""
        scaled = values * self.unit
        weight = scaled[..., block.weight].reshape(*values.shape[:-1], block.outputs, block.inputs)
        if block.bias is None:
            return weight
        return torch.cat([weight, scaled[..., block.bias].unsqueeze(-1)], -1)

    def add(self, slopes: Tensor, factor: Tensor) -> None:
        r"""From Jacobians, which are :math:`g a^T` for a map that is used once.

        With :math:`M = g a^T`, :math:`M M^T = |a|^2 g g^T` and :math:`M^T M = |g|^2 a a^T`; a map
        that is used at several places (a convolution) gives sums of them.
        """
        rows = factor @ slopes  # (B, Q, D)
        self.count += rows.shape[0]
        self.diagonal.add(slopes[..., self.rest], factor)
        for number, block in enumerate(self.blocks):
            matrices = self._matrices(rows, block)  # (B, Q, out, in)
            left = torch.einsum("bqoi,bqpi->bop", matrices, matrices)
            right = torch.einsum("bqoi,bqoj->bij", matrices, matrices)
            total = left.diagonal(dim1=-2, dim2=-1).sum(-1).clamp(min=1e-300)
            self.left[number] += left.sum(0)
            # Of each row the trace is |a|^2 |g|^2: the right factor keeps the shape of a a'.
            self.right[number] += (right / total.reshape(-1, 1, 1)).sum(0)

    def spectra(self) -> list[tuple[Tensor, Tensor]]:
        """The eigenvalues of both ends of each block, whose products are those of the block."""
        if self._spectra is None:
            self.bases, self._spectra = [], []
            for left, right in zip(self.left, self.right, strict=True):
                a, u = torch.linalg.eigh(left)
                b, v = torch.linalg.eigh(right / max(1, self.count))
                # Contiguous as a loaded model has them: products round by their layout.
                self.bases.append((u.contiguous(), v.contiguous(), torch.zeros(0)))
                self._spectra.append((a.clamp(min=0), b.clamp(min=0)))
        return self._spectra

    def _of_block(self, precision: Tensor, block: Block) -> Tensor:
        place = block.weight.start
        return precision[place] * self.unit[place] ** 2

    def _values(self, precision: Tensor, scale: Any) -> Iterator[Tensor]:
        for (a, b), block in zip(self.spectra(), self.blocks, strict=True):
            yield scale * torch.outer(a, b) + self._of_block(precision, block)

    def log_det(self, precision: Tensor, scale: Tensor) -> Tensor:
        total = self.diagonal.log_det(precision[self.rest], scale)
        for values, block in zip(self._values(precision, scale), self.blocks, strict=True):
            total = total + values.log().sum()
            for part in (block.weight, block.bias):
                if part is not None:
                    total = total - 2 * self.unit[part].log().sum()
        return total

    def condition(self, precision: Tensor, scale: float) -> None:
        self.diagonal.condition(precision[self.rest], scale)
        values = list(self._values(precision, scale))
        self.bases = [(u, v, 1 / w) for (u, v, _), w in zip(self.bases, values, strict=True)]

    def covariance(self, slopes: Tensor) -> Tensor:
        total = self.diagonal.covariance(slopes[..., self.rest])
        for (u, v, variances), block in zip(self.bases, self.blocks, strict=True):
            turned = u.T @ self._matrices(slopes, block) @ v  # (B, Q, out, in)
            weighted = (turned * variances).flatten(2)
            total = total + weighted @ turned.flatten(2).mT
        return total

    def tensors(self) -> dict[str, Tensor]:
        found = {"rest": self.diagonal.variances, "unit": self.unit}
        for number, parts in enumerate(self.bases):
            for name, part in zip(("left", "right", "variances"), parts, strict=True):
                found[f"{number}.{name}"] = part
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.diagonal.variances, self.unit = tensors["rest"].double(), tensors["unit"].double()
        self.bases = [
            (
                tensors[f"{number}.left"].double(),
                tensors[f"{number}.right"].double(),
                tensors[f"{number}.variances"].double(),
            )
            for number in range(len(self.blocks))
        ]


def blocks_of(jacobian: Jacobian) -> list[Block]:
    """The maps of a network as blocks: linear layers and convolutions."""
    starts, place = {}, 0
    for name, parameter in jacobian.parameters.items():
        starts[name] = slice(place, place + parameter.numel())
        place += parameter.numel()
    found = []
    for name, part in jacobian.weights.answering.named_modules():
        weight = starts.get(f"answering.{name}.weight" if name else "answering.weight")
        if weight is None or type(part) not in (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d):
            continue
        shape = part.weight.shape
        bias = starts.get(f"answering.{name}.bias" if name else "answering.bias")
        found.append(Block(weight, bias, shape[0], part.weight[0].numel()))
    return found


def make_curvature(kind: str, jacobian: Jacobian, unit: Tensor) -> Curvature:
    """The matrix of a kind: ``full``, ``kron`` or ``diag``."""
    if kind == "full":
        return Full(jacobian.size)
    if kind == "diag":
        return Diagonal(jacobian.size)
    return Kronecker(jacobian.size, blocks_of(jacobian), unit)
