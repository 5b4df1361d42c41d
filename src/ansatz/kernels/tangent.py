"""The tangent kernel of a network of finite width, and the network linearised at its weights."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vjp, vmap

from ansatz.errors import UsageError
from ansatz.kernels.infinite_width import Rows, weight_scale

Weights = dict[str, Tensor]


def empirical_ntk(
    network: nn.Module,
    x: Rows,
    other: Rows | None = None,
    *,
    layers: Sequence[str] | None = None,
    block: int = 256,
    outputs: Literal["mean", "all"] = "mean",
    parametrization: Literal["standard", "ntk"] = "standard",
) -> Tensor:
    r"""The kernel of a network's gradients with respect to its weights.

    .. math:: K(x, x') = \frac1P \sum_p \nabla_\theta f_p(x)^\top \nabla_\theta f_p(x')

    Small steps of gradient descent change the outputs as if this were their covariance.

    Args:
        network: with outputs ``(B, P)``; in evaluation mode while this runs.
        x: rows as the network takes them; a tuple for several inputs.
        other: further rows; x itself when not given.
        layers: names of modules (``named_modules``) whose weights count; all when not given.
        block: rows whose gradients are in memory at once.
        outputs: the mean over outputs, ``(N, M)``, or all pairs of them, ``(N, M, P, P)``.
        parametrization: ``"ntk"`` weighs the gradient of each weight by the variance that it was
            drawn with, which tends to :meth:`Twin.ntk` as layers widen.

    Example:
        >>> import torch
        >>> from ansatz.kernels import empirical_ntk
        >>> empirical_ntk(torch.nn.Linear(1, 1), torch.tensor([[1.0], [2.0]]))  # x x' + 1
        tensor([[2., 3.],
                [3., 5.]])

    References:
        Jacot et al. (2018), Neural tangent kernel. https://arxiv.org/abs/1806.07572
    """
    if outputs not in ("mean", "all"):
        raise UsageError(f"outputs of empirical_ntk must be mean or all, got {outputs!r}.")
    if parametrization not in ("standard", "ntk"):
        raise UsageError(f"parametrization must be standard or ntk, got {parametrization!r}.")
    mine, rest = _split(network, layers)
    scales = _scales(network, mine) if parametrization == "ntk" else dict.fromkeys(mine, 1.0)
    left, right = _tuple(x), _tuple(x if other is None else other)

    def single(weights: Weights, row: tuple[Tensor, ...]) -> Tensor:
        batch = tuple(t.unsqueeze(0) for t in row)
        found: Tensor = functional_call(network, {**rest, **weights}, batch)
        return found.reshape(-1)

    gradients = vmap(jacrev(single), in_dims=(None, 0))

    def of(rows: tuple[Tensor, ...]) -> Weights:
        found: Weights = gradients(mine, rows)
        return found

    lines = []
    with _Evaluation(network):
        for i in range(0, len(left[0]), block):
            top = of(tuple(t[i : i + block] for t in left))
            line = []
            for j in range(0, len(right[0]), block):
                same = other is None and i == j
                side = top if same else of(tuple(t[j : j + block] for t in right))
                line.append(_inner(top, side, scales, outputs))
            lines.append(torch.cat(line, 1))
    return torch.cat(lines)


def _inner(first: Weights, second: Weights, scales: dict[str, float], outputs: str) -> Tensor:
    total: Any = 0.0
    for name, a in first.items():
        b, scale = second[name].flatten(2), scales[name]
        a = a.flatten(2)
        if outputs == "all":
            total = total + scale * torch.einsum("npd,mqd->nmpq", a, b)
        else:
            total = total + scale / a.shape[1] * (a.flatten(1) @ b.flatten(1).mT)
    found: Tensor = total
    return found


def ntk_vector_product(
    network: nn.Module, x: Rows, vector: Tensor, other: Rows | None = None
) -> Tensor:
    r"""The tangent kernel times a vector, without the kernel: :math:`J(x) J(x')^\top v`.

    Args:
        network: with outputs ``(B, P)``.
        x: N rows.
        vector: ``(M, P)``.
        other: M rows; x itself when not given.

    Returns:
        ``(N, P)``.

    Example:
        >>> import torch
        >>> from ansatz.kernels import ntk_vector_product
        >>> x = torch.tensor([[1.0], [2.0]])
        >>> ntk_vector_product(torch.nn.Linear(1, 1), x, torch.ones(2, 1))
        tensor([[5.],
                [8.]])
    """
    weights, rest = _split(network, None)
    left, right = _tuple(x), _tuple(x if other is None else other)

    def at(rows: tuple[Tensor, ...]) -> Any:
        return lambda own: functional_call(network, {**rest, **own}, rows)

    with _Evaluation(network):
        back = _pull(at(right), weights)[1]
        (direction,) = back(vector)
        _, found = _push(at(left), weights, direction)
    return found.detach()


class Linearized(nn.Module):
    r"""A network's first-order expansion in its weights.

    .. math:: f_{\mathrm{lin}}(x) = f_{\theta_0}(x) + J_{\theta_0}(x)\, \delta

    with :math:`\delta` the parameters, which begin at 0. Made by :func:`linearize`.

    Example:
        >>> import torch
        >>> from ansatz.kernels import linearize
        >>> sum(p.numel() for p in linearize(torch.nn.Linear(2, 3)).parameters())
        9
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._network = (network.eval(),)  # in a tuple: its weights are not a part of this module
        weights, self._rest = _split(network, None)
        self._names = list(weights)
        self._base = {name: weight.clone() for name, weight in weights.items()}
        self.delta = nn.ParameterList(torch.zeros_like(weight) for weight in weights.values())

    def forward(self, *inputs: Tensor) -> Tensor:
        """The outputs at these inputs."""
        network = self._network[0]
        direction = dict(zip(self._names, self.delta, strict=True))

        def at(own: Weights) -> Any:
            return functional_call(network, {**self._rest, **own}, inputs)

        start, change = _push(at, self._base, direction)
        return start + change


def linearize(network: nn.Module) -> Linearized:
    """The network as a linear function of the change of its weights.

    Args:
        network: its weights now are where it is linearised; it stays as it is.

    Example:
        >>> import torch
        >>> from ansatz.kernels import linearize
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh())
        >>> x = torch.randn(3, 2)
        >>> bool((linearize(network)(x) == network(x)).all())
        True

    References:
        Lee et al. (2019), Wide neural networks of any depth evolve as linear models under gradient
        descent. https://arxiv.org/abs/1902.06720
    """
    return Linearized(network)


def _pull(function: Any, weights: Weights) -> tuple[Tensor, Any]:
    """The outputs, and the map from their gradient to that of the weights."""
    found: Any = vjp(function, weights)
    return found[0], found[1]


def _push(function: Any, weights: Weights, direction: Weights) -> tuple[Tensor, Tensor]:
    """The outputs, and their change in a direction: the adjoint of the map above."""
    start, back = _pull(function, weights)
    push: Any = vjp(lambda gradient: back(gradient)[0], torch.zeros_like(start))[1]
    return start, push(direction)[0]


class _Evaluation:
    """A network in evaluation mode for a while."""

    def __init__(self, network: nn.Module) -> None:
        self.network, self.training = network, network.training

    def __enter__(self) -> None:
        self.network.eval()

    def __exit__(self, *_: object) -> None:
        self.network.train(self.training)


def _split(network: nn.Module, layers: Sequence[str] | None) -> tuple[Weights, Weights]:
    """The weights that count, and the other tensors of a network."""
    weights = {n: p.detach() for n, p in network.named_parameters() if p.requires_grad}
    rest = {n: p.detach() for n, p in network.named_parameters() if n not in weights}
    rest |= dict(network.named_buffers())
    if layers is None:
        return weights, rest
    known = dict(network.named_modules())
    for layer in layers:
        if layer not in known:
            raise UsageError(
                f"the network has no layer '{layer}': {', '.join(k for k in known if k)}."
            )
    mine = {n: p for n, p in weights.items() if any(n.startswith(f"{k}.") for k in layers)}
    return mine, {**rest, **{n: p for n, p in weights.items() if n not in mine}}


def _scales(network: nn.Module, weights: Weights) -> dict[str, float]:
    """The variances that weights were drawn with, by name."""
    modules = dict(network.named_modules())
    found = {}
    for name in weights:
        path, _, kind = name.rpartition(".")
        found[name] = weight_scale(modules[path], path, kind)
    return found


def _tuple(x: Rows) -> tuple[Tensor, ...]:
    return x if isinstance(x, tuple) else (x,)
