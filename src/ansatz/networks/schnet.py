"""SchNet: continuous-filter convolutions on atoms."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.layers.limits import require_whole
from ansatz.layers.molecule_batch import MoleculeBatch
from ansatz.layers.schemes import draw_normal
from ansatz.networks.potential import Potential
from ansatz.spec import Inputs

ELEMENTS = 100  # rows of the embedding, by atomic number


class ShiftedSoftplus(nn.Module):
    """softplus(x) - log 2, which is 0 at 0.

    Example:
        >>> import torch
        >>> from ansatz.networks.schnet import ShiftedSoftplus
        >>> ShiftedSoftplus()(torch.zeros(1))
        tensor([0.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return functional.softplus(x) - math.log(2.0)


class _Smearing(nn.Module):
    offset: Tensor

    def __init__(self, cutoff: float, count: int) -> None:
        super().__init__()
        self.register_buffer("offset", torch.linspace(0, cutoff, count))
        self.factor = -0.5 * ((count - 1) / cutoff) ** 2

    def forward(self, r: Tensor) -> Tensor:
        return (self.factor * (r.unsqueeze(1) - self.offset).square()).exp()


class _Convolution(nn.Module):
    """x_i <- lin2(sum_j lin1(x_j) * filter(r_ij))."""

    def __init__(self, channels: int, filters: int, network: nn.Module) -> None:
        super().__init__()
        self.lin1 = nn.Linear(channels, filters, bias=False)
        self.lin2 = nn.Linear(filters, channels)
        self.nn = network  # of the distances: the interaction's own, under a second name

    def forward(self, x: Tensor, batch: MoleculeBatch, waves: Tensor, fade: Tensor) -> Tensor:
        W = self.nn(waves) * fade.unsqueeze(1)  # (E, filters)
        messages = self.lin1(x).index_select(0, batch.neighbour) * W
        found: Tensor = self.lin2(batch.sum_pairs(messages))
        return found


class _Interaction(nn.Module):
    def __init__(self, channels: int, gaussians: int, filters: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(gaussians, filters), ShiftedSoftplus(), nn.Linear(filters, filters)
        )
        self.conv = _Convolution(channels, filters, self.mlp)
        self.act = ShiftedSoftplus()
        self.lin = nn.Linear(channels, channels)

    def forward(self, x: Tensor, batch: MoleculeBatch, waves: Tensor, fade: Tensor) -> Tensor:
        found: Tensor = self.lin(self.act(self.conv(x, batch, waves, fade)))
        return found


class SchNet(Potential):
    r"""Features of atoms that take in those of their neighbours, filtered by distance.

    .. math:: x_i \leftarrow x_i + V \sigma\Big(U \sum_j W x_j \circ f(r_{ij})\, \tfrac12
        \big(1 + \cos \tfrac{\pi r_{ij}}{r_c}\big) + b\Big) + c

    with the filter net f of Gaussians of the distance. Distances alone enter, so nothing but they
    matters to the energy. The names of weights are those of PyG's SchNet, whose files it loads.

    Args:
        inputs: ``InputSpec.molecule(elements, cutoff)``.
        outputs: :math:`P`.
        hidden_channels: features of an atom.
        num_filters: channels of the filters.
        num_interactions: rounds.
        num_gaussians: of the distance.
        forces: whether forces come with the energy.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: :class:`~ansatz.layers.MoleculeBatch`.
        - returns: ``(B, P)``; with ``forces`` ``(B, 11 + 3 A)``, see ``networks/potential.py``.

    Example:
        >>> from ansatz.networks import SchNet
        >>> from ansatz.spec import InputSpec
        >>> list(SchNet(InputSpec.molecule(2, 4.5), 1).state_dict())[2]
        'embedding.weight'

    References:
        Schütt et al. (2017), SchNet: a continuous-filter convolutional neural network for modeling
        quantum interactions. https://arxiv.org/abs/1706.08566
    """

    heads = ("lin2",)
    numbers: Tensor
    unit: Tensor

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        hidden_channels: int = 64,
        num_filters: int = 64,
        num_interactions: int = 3,
        num_gaussians: int = 32,
        forces: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__("schnet", inputs, outputs, forces=forces)
        sizes = (hidden_channels, num_filters, num_interactions, num_gaussians)
        for size, low in zip(sizes, (2, 1, 1, 2), strict=True):
            require_whole("a size of schnet", size, low=low)
        self.register_buffer("unit", torch.ones(outputs))
        codes = torch.tensor(self.spec.cardinalities)
        self.register_buffer("numbers", codes, persistent=False)  # the atomic numbers of codes
        self.embedding = nn.Embedding(ELEMENTS, hidden_channels, padding_idx=0)
        self.distance_expansion = _Smearing(self.spec.cutoff, num_gaussians)
        self.interactions = nn.ModuleList(
            _Interaction(hidden_channels, num_gaussians, num_filters)
            for _ in range(num_interactions)
        )
        self.lin1 = nn.Linear(hidden_channels, hidden_channels // 2)
        self.act = ShiftedSoftplus()
        self.lin2 = nn.Linear(hidden_channels // 2, outputs)
        draw_normal(self.embedding.weight, 1.0, generator)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                draw_normal(part.weight, (2 / sum(part.weight.shape)) ** 0.5, generator)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)
        nn.init.zeros_(self.lin2.weight)  # the constants of elements

    def atomic(self, batch: MoleculeBatch, vectors: Tensor) -> Tensor:
        r = torch.linalg.vector_norm(vectors, dim=1)
        waves = self.distance_expansion(r)
        fade = (1 + (r * (math.pi / self.spec.cutoff)).cos()) / 2
        x = self.embedding(self.numbers.index_select(0, batch.species))
        for interaction in self.interactions:
            x = x + interaction(x, batch, waves, fade)
        found: Tensor = self.lin2(self.act(self.lin1(x))) * self.unit
        return found

    @torch.no_grad()
    def start(self, batch: MoleculeBatch, constants: Tensor, unit: Tensor) -> None:
        super().start(batch, constants, unit)
        self.unit.copy_(unit)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """PyG's files have no constants of elements: theirs are 0."""
        if f"{prefix}embedding.weight" in state:
            plain = {
                "reference": torch.zeros_like(self.reference),
                "unit": torch.ones_like(self.unit),
            }
            for name, value in plain.items():
                state.setdefault(prefix + name, value)
        super()._load_from_state_dict(state, prefix, *rest)
