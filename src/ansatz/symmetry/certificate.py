"""Certificates: measured violations of a symmetry."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.mode import evaluation_mode
from ansatz.layers.ragged import Ragged
from ansatz.symmetry.group import Element, Group
from ansatz.symmetry.permutations import NodePermutation, Permutation
from ansatz.symmetry.registry import create

COORDINATES = 3  # of a point: the first numbers of its row
Kind = Literal["invariant", "equivariant"]
Action = Callable[[Element, Tensor], Tensor]


class Certificate(NamedTuple):
    r"""The violation of a symmetry over random elements of its group.

    Args:
        group: its name.
        kind: ``"invariant"`` or ``"equivariant"``.
        largest: the largest violation of any output of any input under any element.
        mean: the mean over elements of each one's largest.
        relative: ``largest`` over the dispersion of the outputs among the inputs (the root of their
            mean variance): 1 means that moving an input matters as much as taking another one. nan
            for a single input.
        worst_element: where ``largest`` was met.
        samples: elements that were tried.
        exact: False where the group itself acts approximately, so that even a perfect network
            shows a violation.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import certify
        >>> found = certify(lambda x: x.sum(1), torch.randn(5, 3), "permutation", samples=8)
        >>> found.group, found.largest < 1e-5
        ('permutation', True)
    """

    group: str
    kind: str
    largest: float
    mean: float
    relative: float
    worst_element: Any
    samples: int
    exact: bool = True


def certify(
    network: Callable[..., Any],
    inputs: Tensor | Ragged | GraphBatch | tuple[Tensor | Ragged | GraphBatch, ...],
    group: Group | str,
    *,
    samples: int = 64,
    generator: torch.Generator | None = None,
    kind: Kind = "invariant",
    output_action: Action | None = None,
) -> Certificate:
    r"""Measures the largest violation of an invariance or equivariance over random elements.

    .. math:: \max_{g, x} |f(g x) - f(x)| \quad \text{(invariant)}, \qquad
        \max_{g, x} |f(g x) - \rho(g) f(x)| \quad \text{(equivariant)}

    with :math:`f` = ``network``, :math:`x` the rows of ``inputs``, :math:`g` drawn from ``group``
    and :math:`\rho` = ``output_action``. What is built to be symmetric is so up to rounding; what
    has learned to be is not, and the certificate measures how far. A group of few elements (flips,
    rotations by 90 degrees) is tried wholly; else the elements are a sample, and the certificate
    is a lower bound of the violation over the group.

    The network is evaluated without gradients; a module is in evaluation mode meanwhile and has
    its own modes back afterwards.

    Args:
        network: any callable on tensors.
        inputs: a batch, or a tuple of what the network takes; the group moves all of them. Of
            ragged rows (sets, point clouds) a permutation reorders each, and other groups move the
            first three numbers of the first input, the coordinates. Of a
            :class:`~ansatz.layers.GraphBatch` ``node_permutation`` renames the nodes.
        group: or its name.
        samples: elements to try, at most.
        generator: of random numbers.
        kind: what the outputs do when inputs move: nothing, or move too.
        output_action: :math:`\rho`, ``(element, y) -> y``; by default the group's own action.

    Returns:
        The violation, its element, and how it compares with the dispersion of the outputs.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.symmetry import certify
        >>> layer = nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")
        >>> x = torch.randn(4, 1, 8, 8)
        >>> found = certify(layer, x, "cyclic_shift", kind="equivariant", samples=8)
        >>> found.relative < 1e-5
        True
        >>> certify(layer, x, "flip", kind="equivariant", samples=8).relative > 0.1
        True

    References:
        Cohen and Welling (2016), Group equivariant convolutional networks, eq. 3.
    """
    if kind not in ("invariant", "equivariant"):
        raise ValueError(f"kind of certify must be invariant or equivariant, got {kind!r}.")
    if output_action is not None and kind == "invariant":
        raise ValueError("output_action of certify is how outputs move: ask for equivariant.")
    if samples < 1:
        raise ValueError(f"samples of certify must be 1 or more, got {samples}.")
    acting = create(group) if isinstance(group, str) else group
    known = Tensor | Ragged | GraphBatch
    x: tuple[Any, ...] = (inputs,) if isinstance(inputs, known) else tuple(inputs)
    if not all(isinstance(each, known) for each in x):
        kind_of = type(inputs).__name__
        raise TypeError(f"certify needs tensors, got {kind_of}. Try torch.as_tensor(inputs).")
    rho = _outputs_move(acting, kind, output_action)
    if isinstance(x[0], GraphBatch) and not isinstance(acting, NodePermutation):
        raise TypeError(f"{acting.name} does not act on graphs. Take node_permutation.")
    if isinstance(x[0], Ragged | GraphBatch):
        if isinstance(acting, Permutation):
            rho = _ragged_outputs_move(acting, x[0], kind, output_action)
        elif isinstance(x[0], Ragged):
            network, x = _on_coordinates(network, x), (x[0].values[:, :COORDINATES],)
    with evaluation_mode(network), torch.no_grad():
        there = _tensors(network(*x))
        compared = [acting.inside(y) if kind == "equivariant" else None for y in there]
        violations, worst, worst_element = [], -math.inf, acting.identity(x[0])
        for g in _elements(acting, x[0], samples, generator):
            moved = _tensors(network(*acting.move(g, x)))
            expected = [rho(g, y) for y in there]
            violation = _largest(moved, expected, compared)
            violations.append(violation)
            if _worse(violation, worst):
                worst, worst_element = violation, g
    name = acting.name or type(acting).__name__
    mean, tried = math.fsum(violations) / len(violations), len(violations)
    relative = _relative(worst, there)
    return Certificate(name, kind, worst, mean, relative, worst_element, tried, acting.exact)


def _on_coordinates(network: Callable[..., Any], inputs: tuple[Any, ...]) -> Callable[..., Any]:
    """The network as a function of the coordinates of ragged points."""
    whole, *others = inputs

    def answer(points: Tensor) -> Any:
        values = torch.cat([points, whole.values[:, COORDINATES:]], 1)
        return network(whole._replace(values=values), *others)

    return answer


def _ragged_outputs_move(
    group: Permutation, x: Ragged | GraphBatch, kind: Kind, action: Action | None
) -> Action:
    """How outputs of elements of ragged rows, or of nodes, move: each with its element."""
    if kind == "invariant" or action is not None:
        return _outputs_move(group, kind, action)
    return lambda g, y: Permutation.act(group, g, Ragged(y, x.offsets)).values


def _elements(
    group: Group, x: Tensor, samples: int, generator: torch.Generator | None
) -> Iterator[Element]:
    others = group.others(x)
    if others is not None and len(others) <= samples:
        yield from others
        return
    for _ in range(samples):
        yield group.sample(x, generator)


def _outputs_move(group: Group, kind: Kind, action: Action | None) -> Action:
    if kind == "invariant":
        return lambda g, y: y
    return group.act if action is None else action


def _tensors(output: Any) -> list[Tensor]:
    """The tensors of an output, in float64, which the difference of large numbers needs."""
    found = [output] if isinstance(output, Tensor) else list(output)
    if not all(isinstance(y, Tensor) for y in found):
        raise ValueError(
            f"certify needs a network that returns tensors, got {type(output).__name__}."
        )
    return [y.double() for y in found]


def _largest(moved: list[Tensor], expected: list[Tensor], inside: list[Tensor | None]) -> float:
    found = 0.0
    for a, b, where in zip(moved, expected, inside, strict=True):
        if a.shape != b.shape:
            raise ValueError(
                f"the output for moved inputs has shape {tuple(a.shape)}, and {tuple(b.shape)} was "
                "expected of it: the group changes the shape of the grid, use square ones."
            )
        gap = (a - b).abs()
        if where is not None:
            gap = gap[where.expand_as(gap)]
        value = float(gap.max())
        found = value if _worse(value, found) else found
    return found


def _worse(value: float, than: float) -> bool:
    """Tests whether it is larger; nan, which proves nothing, counts as the largest."""
    return not math.isnan(than) and not value <= than


def _relative(largest: float, outputs: list[Tensor]) -> float:
    if math.isnan(largest) or any(len(y) < 2 for y in outputs):
        return math.nan
    scale = math.sqrt(sum(float(y.var(0).mean()) for y in outputs) / len(outputs))
    if scale > 0:
        return largest / scale
    return 0.0 if largest == 0 else math.inf
