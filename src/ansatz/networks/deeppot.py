"""DeePot: an energy from Gram matrices of what each atom sees."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ansatz.layers.limits import require_whole
from ansatz.layers.molecule_batch import MoleculeBatch
from ansatz.layers.moments import Surroundings, gram, moments, pull
from ansatz.layers.radial import RadialBasis
from ansatz.layers.schemes import draw_normal
from ansatz.networks.potential import Potential
from ansatz.spec import Inputs

SEEN = 64  # frames from which inputs are standardised


class DeepPot(Potential):
    r"""The smooth deep potential: no rotation, shift or exchange of like atoms changes the energy.

    .. math:: \epsilon_i = f_{z_i}\left(T^0, \{ D^l \}\right), \qquad
        T^l_{m a} = \sum_j Y_{lm}(u_{ij})\, g_a^{z_i z_j}(r_{ij}), \qquad
        D^l_{ab} = \sum_m T^l_{ma} T^l_{mb}

    The embedding g of a distance, for each pair of elements, is a learned combination of
    :class:`~ansatz.layers.RadialBasis`, which vanishes smoothly at the cut-off. As it is linear,
    an atom embeds the moments of its neighbours once; no network runs on pairs. D with l = 1 is the
    descriptor of DeePot-SE, :math:`G^\top (R R^\top) G_<`, l = 2 adds the squares of cosines. Each
    element has a net f of its own.

    Forces take no second pass of automatic differentiation through the pairs: the chain rule from
    moments to positions is written by hand (:func:`~ansatz.layers.moments.pull`).

    Args:
        inputs: ``InputSpec.molecule(elements, cutoff)``.
        outputs: :math:`P`.
        width: channels a of the embedding, M.
        few: channels b of the Gram matrices.
        hidden: widths of the fitting nets.
        basis: K, radial functions.
        degree: the largest l, 1 or 2.
        forces: whether forces come with the energy.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: :class:`~ansatz.layers.MoleculeBatch`.
        - returns: ``(B, P)``; with ``forces`` ``(B, 11 + 3 A)``, see ``networks/potential.py``.

    Example:
        >>> import torch
        >>> from ansatz.layers import MoleculeBatch
        >>> from ansatz.networks import DeepPot
        >>> from ansatz.spec import InputSpec
        >>> network = DeepPot(InputSpec.molecule(1, 4.5), 1, forces=True)
        >>> x = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        >>> pairs = torch.tensor([[0], [1]])
        >>> network(MoleculeBatch.of(x, torch.zeros(2, dtype=torch.long), pairs)).shape
        torch.Size([1, 17])

    References:
        Zhang et al. (2018), End-to-end symmetry preserving inter-atomic potential energy model for
        finite and extended systems. https://arxiv.org/abs/1805.09003
    """

    heads = ("fits",)
    center: Tensor
    scale: Tensor
    feature_center: Tensor
    feature_scale: Tensor
    unit: Tensor
    degrees: Tensor

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 32,
        few: int = 8,
        hidden: Sequence[int] = (64, 64),
        basis: int = 12,
        degree: int = 2,
        forces: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__("deeppot", inputs, outputs, forces=forces)
        for what, value in (("width", width), ("few", few), ("basis", basis)):
            require_whole(f"{what} of deeppot", value)
        require_whole("degree of deeppot", degree, high=2)
        self.degree, self.few = degree, min(few, width)
        kinds = self.spec.features
        self.basis = RadialBasis(self.spec.cutoff, basis)
        columns, features = kinds * basis, width + degree * width * self.few
        start = torch.empty(kinds, degree + 1, columns, width)
        self.embedding = nn.Parameter(draw_normal(start, columns**-0.5, generator))
        self.fits = nn.ModuleList(
            _fitting([features, *hidden], outputs, generator) for _ in range(kinds)
        )
        ones = torch.ones(kinds, degree + 1, columns)
        self.register_buffer("center", torch.zeros(kinds, columns))  # of the moments with l = 0
        self.register_buffer("scale", ones)  # of all moments
        self.register_buffer("feature_center", torch.zeros(kinds, features))
        self.register_buffer("feature_scale", torch.ones(kinds, features))
        self.register_buffer("unit", torch.ones(outputs))
        degrees = [0] + [1] * 3 + [2] * 5
        self.register_buffer("degrees", torch.tensor(degrees[: (degree + 1) ** 2]))

    def surroundings(self, batch: MoleculeBatch, vectors: Tensor) -> Surroundings:
        """The pairs, grouped by center and element of the neighbour."""
        kinds = self.spec.features
        group = batch.center * kinds + batch.species.index_select(0, batch.neighbour)
        return Surroundings.of(vectors, self.basis, group, len(batch.species) * kinds)

    def moments(self, near: Surroundings) -> Tensor:
        """The moments of each atom's neighbours, ``(N, C, S K)``."""
        A = moments(near, self.degree)
        kinds = self.spec.features
        parts = A.reshape(-1, kinds, *A.shape[1:]).movedim(1, 2)  # (N, C, S, K)
        return parts.reshape(len(parts), parts.shape[1], -1)

    def features(self, A: Tensor, kind: int) -> Tensor:
        """The descriptor of atoms of one element, ``(n, F)``."""
        scale = self.scale[kind].index_select(0, self.degrees)  # (C, S K)
        W = self.embedding[kind].index_select(0, self.degrees)  # (C, S K, M)
        A = torch.cat([A[:, :1] - self.center[kind], A[:, 1:]], 1) * scale
        T = torch.einsum("nck,ckm->ncm", A, W)
        return torch.cat([T[:, 0], gram(T, self.few).flatten(1)], 1)

    def contributions(self, A: Tensor, species: Tensor) -> Tensor:
        """The fitting nets of all elements, ``(N, P)``."""
        atoms, found = [], []
        for kind, fit in enumerate(self.fits):
            mine = (species == kind).nonzero()[:, 0]
            if not len(mine):
                continue
            D = self.features(A.index_select(0, mine), kind)
            D = (D - self.feature_center[kind]) * self.feature_scale[kind]
            atoms.append(mine)
            found.append(fit(D))
        if not found:
            return A.new_zeros(0, self.outputs)
        each = torch.cat(found) * self.unit
        order = torch.empty_like(species)
        order[torch.cat(atoms)] = torch.arange(len(species), device=species.device)
        return each.index_select(0, order)

    def atomic(self, batch: MoleculeBatch, vectors: Tensor) -> Tensor:
        return self.contributions(self.moments(self.surroundings(batch, vectors)), batch.species)

    def gradient(self, batch: MoleculeBatch, *, graph: bool) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            near = self.surroundings(batch, batch.vectors)
            A = moments(near, self.degree)
        with torch.enable_grad():
            A.requires_grad_()
            kinds = self.spec.features
            parts = A.reshape(-1, kinds, *A.shape[1:]).movedim(1, 2)
            each = self.contributions(parts.flatten(2), batch.species)
            (g,) = torch.autograd.grad(each.sum(), A, create_graph=graph, materialize_grads=True)
        if graph:
            return each, pull(g, near, self.degree)
        return each.detach(), pull(g, near, self.degree).detach()

    @torch.no_grad()
    def start(self, batch: MoleculeBatch, constants: Tensor, unit: Tensor) -> None:
        super().start(batch, constants, unit)
        self.unit.copy_(unit)
        batch = batch.take_rows(slice(0, SEEN))
        A = self.moments(self.surroundings(batch, batch.vectors.to(self.embedding.dtype)))
        for kind in range(self.spec.features):
            mine = A[batch.species == kind]
            if len(mine) < 2:
                continue
            self.center[kind] = mine[:, 0].mean(0)
            first = mine[:, 0].var(0)
            squares = [first] + [
                mine[:, self.degrees == degree].square().mean((0, 1))
                for degree in range(1, self.degree + 1)
            ]
            found = torch.stack(squares)
            size = found.mean(1, keepdim=True)
            self.scale[kind] = (found + 1e-3 * size + 1e-12).rsqrt()
            D = self.features(mine, kind)
            self.feature_center[kind] = D.mean(0)
            spread = D.std(0)
            self.feature_scale[kind] = 1 / (spread + 1e-3 * spread.mean() + 1e-12)


def _fitting(
    widths: Sequence[int], outputs: int, generator: torch.Generator | None
) -> nn.Sequential:
    """A perceptron that starts at zero."""
    layers: list[nn.Module] = []
    for inputs, width in pairwise(widths):
        linear = nn.Linear(inputs, width)
        draw_normal(linear.weight.data, inputs**-0.5, generator)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.SiLU()]
    last = nn.Linear(widths[-1], outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)
