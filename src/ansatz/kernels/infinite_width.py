"""The kernels of a network whose layers are infinitely wide."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.kernels.maps import (
    Affine,
    AveragePool,
    Convolution,
    Map,
    Nonlinear,
    Residual,
    State,
    flatten,
    run,
)
from ansatz.kernels.moments import LeakyMoments, moments_of
from ansatz.layers import Dense, RandomFeatures
from ansatz.layers import Residual as ResidualLayer
from ansatz.networks import MLP, Linear, LinearGrid, RandomFeatureNetwork, TableInputs

AT_ONCE = 2**18  # numbers of a block of a kernel
Rows = Tensor | tuple[Tensor, ...]


class Twin:
    r"""The Gaussian process and the tangent kernel that a network tends to as its layers widen.

    .. math:: \Sigma^{\ell + 1}(x, x') = \sigma_w^2\, E[\phi(u) \phi(u')] + \sigma_b^2, \qquad
        \Theta^{\ell + 1} = \Sigma^{\ell + 1} + \sigma_w^2\, \Theta^\ell\, E[\phi'(u) \phi'(u')],
        \qquad (u, u') \sim N(0, \Sigma^\ell)

    with :math:`\sigma_w^2` the inputs of a layer times the variance of a weight and
    :math:`\sigma_b^2` the variance of a bias, as they were drawn. The tangent kernel is that of
    weights written as :math:`W = \sigma_w \omega / \sqrt n`, of which :math:`\omega` learns. A last
    map that starts at 0 counts as weights N(0, 1) and a bias N(0, 1).

    Made by :func:`twin`.

    Example:
        >>> import torch
        >>> from ansatz.kernels import twin
        >>> found = twin(torch.nn.Linear(2, 1))  # variance 1/3 of n weights, and of the bias 1/3 n
        >>> found.variance(torch.ones(1, 2))
        tensor([0.5000], dtype=torch.float64)

    References:
        Lee et al. (2018), Deep neural networks as Gaussian processes.
        https://arxiv.org/abs/1711.00165
        Jacot et al. (2018), Neural tangent kernel. https://arxiv.org/abs/1806.07572
    """

    def __init__(self, maps: Sequence[Map], inputs: "_Inputs", pairs: bool) -> None:
        self._maps, self._inputs, self._pairs = list(maps), inputs, pairs

    def nngp(self, x: Rows, other: Rows | None = None) -> Tensor:
        """The covariance of the outputs of random networks, ``(N, M)``, float64.

        Args:
            x: rows as the network takes them; a tuple for several inputs.
            other: further rows; x itself when not given.
        """
        return self._blocks(x, other, False)[0]

    def ntk(self, x: Rows, other: Rows | None = None) -> Tensor:
        """The tangent kernel, ``(N, M)``, float64."""
        found = self._blocks(x, other, True)[1]
        assert found is not None
        return found

    def both(self, x: Rows, other: Rows | None = None) -> tuple[Tensor, Tensor]:
        """The covariance and the tangent kernel, for the work of one."""
        nngp, ntk = self._blocks(x, other, True)
        assert ntk is not None
        return nngp, ntk

    def variance(self, x: Rows) -> Tensor:
        """The diagonal of :meth:`nngp`, ``(N,)``."""
        x = _rows(x)
        none = tuple(t[:0] for t in x)
        size = self._size(x, 1)
        parts = range(0, max(len(x[0]), 1), size)
        return torch.cat(
            [
                run(self._maps, self._state(tuple(t[k : k + size] for t in x), none, False)).first
                for k in parts
            ]
        )

    def _size(self, x: tuple[Tensor, ...], columns: int) -> int:
        pixels = math.prod(x[0].shape[2:]) if self._inputs.grid else 1
        most = AT_ONCE * (16 if self._inputs.grid else 1)
        return max(1, most // max(1, columns * pixels ** (2 if self._pairs else 1)))

    def _blocks(self, x: Rows, other: Rows | None, tangent: bool) -> tuple[Tensor, Tensor | None]:
        x = _rows(x)
        z = x if other is None else _rows(other)
        n, m = len(x[0]), len(z[0])
        found = torch.empty(n, m, dtype=torch.float64)
        slopes = torch.empty(n, m, dtype=torch.float64) if tangent else None
        size = max(1, math.isqrt(self._size(x, 1)))
        for i in range(0, n, size):
            top = tuple(t[i : i + size] for t in x)
            for j in range(i if other is None else 0, m, size):
                done = run(self._maps, self._state(top, tuple(t[j : j + size] for t in z), tangent))
                place = slice(i, i + size), slice(j, j + size)
                found[place] = done.cross
                if slopes is not None:
                    assert done.tangent is not None
                    slopes[place] = done.tangent
        if other is None:  # the blocks above the diagonal are those below
            found = found.triu() + found.triu(1).mT
            slopes = None if slopes is None else slopes.triu() + slopes.triu(1).mT
        return found, slopes

    def _state(self, x: tuple[Tensor, ...], z: tuple[Tensor, ...], tangent: bool) -> State:
        return self._inputs.state(x, z, tangent, self._pairs)


def twin(network: nn.Module) -> Twin:
    """The infinitely wide twin of a network of affine maps and activations.

    Networks ``linear``, ``mlp`` (plain or residual) and ``random_features``, and
    ``torch.nn.Sequential`` of ``Linear``, convolutions, ``Flatten``, average pools, activations and
    ``ansatz.layers.Dense`` and ``Residual``. The variances are those of the initialisation that
    ``ansatz.layers.initialize`` drew, or torch's own; trained weights do not change them.

    Args:
        network: is read, not run.

    Example:
        >>> import torch
        >>> from ansatz.kernels import twin
        >>> from ansatz.networks import MLP
        >>> found = twin(MLP(2, 1, widths=(64, 64), activation="relu", output_scale=1.0))
        >>> x = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> found.nngp(x).diagonal()  # he_normal keeps the mean square of 1, times 2
        tensor([2., 2.], dtype=torch.float64)
        >>> found.ntk(x).shape
        torch.Size([2, 2])
    """
    reader = _Reader()
    maps = reader.read(network, "")
    return Twin(maps, reader.inputs, reader.pairs)


def weight_scale(module: nn.Module, name: str, kind: str) -> float:
    """The variance that a layer's ``weight`` or ``bias`` was drawn with; 1 where it starts at 0."""
    if isinstance(module, nn.Embedding):
        return 1 / module.embedding_dim
    if not isinstance(module, (nn.Linear, *_CONVOLUTIONS)):
        raise _Reader().refusal(module, name)
    found = _Reader().affine(module, name)
    return found.weight / module.weight[0].numel() if kind == "weight" else found.bias


class _Inputs:
    """The kernel of the inputs themselves: the mean over features of their products."""

    def __init__(self) -> None:
        self.grid = False
        self.features = 0
        self.levels: list[tuple[int, float]] = []  # numbers that stand for a level, their variance

    def state(
        self, x: tuple[Tensor, ...], z: tuple[Tensor, ...], tangent: bool, pairs: bool
    ) -> State:
        first, second = (t[0].double() for t in (x, z))
        if not self.grid:
            first, second = first.flatten(1), second.flatten(1)
            total = first.shape[1] + sum(count for count, _ in self.levels)
            divisor = max(total, 1)
            cross = first @ second.mT / divisor
            mean, other = first.sum(1) / divisor, second.sum(1) / divisor
            a, b = (first**2).sum(1) / divisor, (second**2).sum(1) / divisor
            slope = torch.zeros_like(cross) if tangent else None
            for column, (count, variance) in enumerate(self.levels):
                here, there = x[1][:, column], z[1][:, column]
                same = (here[:, None] == there) & (here > 0)[:, None]
                part = count * variance / divisor
                cross = cross + part * same
                slope = None if slope is None else slope + part * same
                a, b = a + part * (here > 0), b + part * (there > 0)
            return State(a, b, cross, slope, mean, other, 0, False)
        axes, channels = first.ndim - 2, first.shape[1]
        size = first.shape[2:]
        n, m, k = len(first), len(second), math.prod(size)
        p, q = first.flatten(2) / channels**0.5, second.flatten(2) / channels**0.5
        mean, other = first.mean(1), second.mean(1)
        if pairs:
            cross = torch.einsum("ncp,mcq->nmpq", p, q).reshape(n, m, *size, *size)
            a, b = (
                torch.einsum("ncp,ncq->npq", t, t).reshape(len(t), *size, *size) for t in (p, q)
            )
        else:
            cross = torch.einsum("ncp,mcp->nmp", p, q).reshape(n, m, *size)
            a, b = ((t**2).sum(1).reshape(len(t), *size) for t in (p, q))
        assert k
        slope = torch.zeros_like(cross) if tangent else None
        return State(a, b, cross, slope, mean, other, axes, pairs)


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_POOLS = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_GLOBAL = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class _Reader:
    """Translates a network's layers to maps of kernels."""

    def __init__(self) -> None:
        self.inputs, self.pairs = _Inputs(), False
        self.begun = False

    def read(self, module: nn.Module, name: str) -> list[Map]:
        """The maps of a module; refuses one that has no twin, by its name."""
        for kind, translate in _TRANSLATIONS.items():
            if type(module) is kind:
                return translate(self, module, name)
        moments = moments_of(module)
        if moments is not None:
            return [Nonlinear(moments)]
        raise self.refusal(module, name)

    def refusal(self, module: nn.Module, name: str, why: str = "") -> UsageError:
        """Names the innermost layer that has no twin."""
        where, found = name, module
        if not why and not isinstance(module, (nn.Sequential, nn.ModuleList)):
            for path, part in module.named_modules():
                leaf = path and not list(part.children())
                if leaf and type(part) not in _TRANSLATIONS and moments_of(part) is None:
                    where, found = f"{name}.{path}" if name else path, part
                    break
        kind = type(found).__name__
        at = f"its layer {where} ({kind})" if where else kind
        why = why or (
            "affine maps, convolutions, average pools and activations in torch.nn.Sequential, and "
            "the networks linear, mlp and random_features, have one"
        )
        return UsageError(f"no infinitely wide twin: {at}: {why}.")

    def sequential(self, module: Any, name: str) -> list[Map]:
        return [
            each
            for k, part in module.named_children()
            for each in self.read(part, f"{name}.{k}" if name else k)
        ]

    def linear(self, module: Any, name: str) -> list[Map]:
        self.begun = True
        return [self.affine(module, name)]

    def affine(self, module: Any, name: str) -> Affine:
        """Variances of a layer's weights, as they were drawn."""
        weight = module.weight
        inputs, outputs = weight[0].numel(), weight.shape[0] * weight[0, 0].numel()
        has_bias = module.bias is not None
        start = getattr(module, "start", None)
        if start is None:  # torch's own: both uniform on ± 1 / sqrt(n)
            return Affine(1 / 3, 1 / (3 * inputs) if has_bias else 0.0)
        if start.name == "zeros":
            return Affine(float(inputs), float(has_bias))
        if start.bias:
            raise self.refusal(module, name, f"its biases start at {start.bias:g}, not around 0")
        shares = {
            "normal": inputs,
            "uniform": inputs,
            "lecun": 1.0,
            "he": 2.0,
            "kaiming": 2.0,
            "glorot": 2 * inputs / (inputs + outputs),
            "xavier": 2 * inputs / (inputs + outputs),
            "orthogonal": inputs / max(inputs, weight.shape[0]),
        }
        share = shares.get(start.name, shares.get(start.name.split("_")[0]))
        if share is None:
            raise self.refusal(module, name, f"initialisation {start.name} has no variance")
        return Affine(share * start.gain**2, 0.0)

    def convolution(self, module: Any, name: str) -> list[Map]:
        if not self.begun:
            self.inputs.grid, self.begun = True, True
        if module.groups != 1 or module.padding_mode != "zeros" or isinstance(module.padding, str):
            raise self.refusal(module, name, "groups and paddings other than zeros have none")
        affine = self.affine(module, name)
        return [
            Convolution(affine, module.kernel_size, module.stride, module.padding, module.dilation)
        ]

    def pool(self, module: Any, name: str) -> list[Map]:
        if not self.begun:
            self.inputs.grid, self.begun = True, True
        axes = _POOLS.index(type(module)) + 1
        size, stride, padding = (
            (v,) * axes if isinstance(v, int) else tuple(v)
            for v in (module.kernel_size, module.stride, module.padding)
        )
        if (any(padding) and not module.count_include_pad) or module.ceil_mode:
            raise self.refusal(module, name, "windows of unequal size have none")
        self.pairs = True
        return [AveragePool(size, stride, padding)]

    def whole(self, module: Any, name: str) -> list[Map]:
        size = module.output_size
        if any(s != 1 for s in ((size,) if isinstance(size, int) else size)):
            raise self.refusal(module, name, "only a pool of the whole grid, to 1, has one")
        if not self.begun:
            self.inputs.grid, self.begun = True, True
        self.pairs = True
        return [AveragePool(None, (), ())]

    def flat(self, module: Any, name: str) -> list[Map]:
        self.begun = True
        return [flatten]

    def nothing(self, module: Any, name: str) -> list[Map]:
        return []

    def dense(self, module: Any, name: str) -> list[Map]:
        self.begun = True
        if type(module.norm) is not nn.Identity:
            raise self.refusal(module.norm, f"{name}.norm", "a normalisation has none")
        return [self.affine(module.linear, name), *self.read(module.activation, name)]

    def residual(self, module: Any, name: str) -> list[Map]:
        if module.given:
            return [Residual(self.read(module.branch, f"{name}.branch"), [])]
        maps = self.dense(module.branch, f"{name}.branch")
        last = maps[-1]
        assert isinstance(last, Nonlinear)
        with torch.no_grad():
            origin = float(module.branch.activation(torch.zeros(1, dtype=torch.float64))[0])
        branch: list[Map] = [*maps[:-1], replace(last, origin=origin)]
        skip: list[Map] = []
        if type(module.skip) is nn.Linear:
            skip = [self.affine(module.skip, f"{name}.skip")]
        return [Residual(branch, skip)]

    def table(self, module: TableInputs, name: str) -> list[Map]:
        self.begun = True
        if module.numeric is not None:
            raise self.refusal(
                module.numeric, f"{name}.numeric", "an embedding of numbers has none"
            )
        if module.categories is not None:
            tables: Any = module.categories.tables
            self.inputs.levels = [
                (table.embedding_dim, 1 / table.embedding_dim) for table in tables
            ]
        return []

    def mlp(self, module: MLP, name: str) -> list[Map]:
        place = f"{name}." if name else ""
        maps = self.table(module.inputs, f"{place}inputs")
        for k, layer in enumerate(module.hidden):
            maps += self.read(layer, f"{place}hidden.{k}")
            if type(layer) is nn.Linear:
                maps += self.read(module.activation, f"{place}activation")
        return [*maps, self.affine(module.output, f"{place}output")]

    def linear_network(self, module: Any, name: str) -> list[Map]:
        self.begun = True
        if getattr(module, "link", None) is not None:
            raise self.refusal(module, name, "a link has none")
        if getattr(module, "levels", None) is not None:
            # One coefficient N(0, 1) for each level: a feature of variance 1 beside the others.
            self.inputs.levels = [(1, 1.0) for _ in module.levels.tables]
            count = module.features + len(self.inputs.levels)
            return [Affine(float(count), 1.0)]
        maps: list[Map] = []
        if type(getattr(module, "pool", nn.Identity())) is not nn.Identity:
            raise self.refusal(module.pool, "pool", "a linear map of means has none; take mlp")
        return [*maps, self.affine(module.output, "output")]

    def random_features(self, module: RandomFeatureNetwork, name: str) -> list[Map]:
        maps = self.table(module.inputs, "inputs")
        return [*maps, *self.features(module.features, "features"), self.last(module)]

    def last(self, module: RandomFeatureNetwork) -> Affine:
        """The map of the features, whose kernel is that of their sum and not of their mean."""
        found = self.affine(module.output, "output")
        return replace(found, weight=found.weight / module.features.out_features)

    def features(self, module: RandomFeatures, name: str) -> list[Map]:
        self.begun = True
        scale = module.in_features / module.bandwidth**2

        def cosine(state: State) -> State:
            # exp(-|x - x'|² / 2 s²) of squared norms a, b and inner products c.
            a, b = state.first * scale, state.second * scale
            cross = (scale * state.cross - 0.5 * (a[:, None] + b)).exp()
            one, two = torch.ones_like(a), torch.ones_like(b)
            return _frozen(state, one, two, cross)

        def relu(state: State) -> State:
            a, b = 1 + scale * state.first, 1 + scale * state.second
            product, _ = LeakyMoments().product(a[:, None], b[None], 1 + scale * state.cross, False)
            return _frozen(state, a, b, 2 * product)

        return [cosine if module.kind == "cosine" else relu]


def _frozen(state: State, first: Tensor, second: Tensor, cross: Tensor) -> State:
    tangent = None if state.tangent is None else torch.zeros_like(cross)
    zero, other = torch.zeros_like(state.mean), torch.zeros_like(state.other)
    return state._replace(
        first=first, second=second, cross=cross, tangent=tangent, mean=zero, other=other
    )


_TRANSLATIONS: dict[type, Callable[[_Reader, Any, str], list[Map]]] = {
    nn.Sequential: _Reader.sequential,
    nn.Linear: _Reader.linear,
    nn.Flatten: _Reader.flat,
    Dense: _Reader.dense,
    ResidualLayer: _Reader.residual,
    TableInputs: _Reader.table,
    MLP: _Reader.mlp,
    Linear: _Reader.linear_network,
    LinearGrid: _Reader.linear_network,
    RandomFeatureNetwork: _Reader.random_features,
    **dict.fromkeys(_CONVOLUTIONS, _Reader.convolution),
    **dict.fromkeys(_POOLS, _Reader.pool),
    **dict.fromkeys(_GLOBAL, _Reader.whole),
    **dict.fromkeys(_DROPOUTS, _Reader.nothing),
}


def _rows(x: Rows) -> tuple[Tensor, ...]:
    found = x if isinstance(x, tuple) else (x,)
    if found[0].ndim < 2:
        raise ValueError(f"a twin takes rows (N, ...), got the shape {tuple(found[0].shape)}.")
    return found
