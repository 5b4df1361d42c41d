"""Recurrent layers on graphs: over steps of messages, and over time."""

from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.layers.edges import Edges
from ansatz.layers.graphs.gcn import smooth
from ansatz.layers.graphs.node_features import as_parameter
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.schemes import draw_uniform


class GatedGraphConv(nn.Module):
    r"""Messages that a gated recurrent unit takes in, step by step.

    .. math:: h_n \leftarrow \mathrm{GRU}\Bigl(\sum_{m \in N(n)} W_l h_m, \ h_n\Bigr), \qquad
              l = 1, \dots, L

    The unit is the same in all steps.

    Args:
        features: of a node, before and after.
        steps: :math:`L`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, features)``; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GatedGraphConv
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GatedGraphConv(4, steps=2)(torch.randn(3, 4), path).shape
        torch.Size([3, 4])

    References:
        Li et al. (2016), Gated graph sequence neural networks. https://arxiv.org/abs/1511.05493
    """

    def __init__(
        self, features: int, *, steps: int = 3, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        require_whole("steps of GatedGraphConv", steps, high=1000)
        self.weight = as_parameter(
            steps, features, features, scale=features**-0.5, generator=generator
        )
        with torch.random.fork_rng(devices=[]):  # its own draws are replaced
            self.rnn = nn.GRUCell(features, features)
        for weight in self.rnn.parameters():
            draw_uniform(weight, (3 * features) ** -0.5, generator)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        for weight in self.weight:
            x = self.rnn(edges.sum(x @ weight), x)
        return x


class GraphRecurrent(nn.Module):
    r"""A GRU or LSTM over time whose maps also read the neighbours, on a fixed graph.

    .. math:: z_t = \sigma(\mathcal{G}_z[x_t, h_{t-1}]), \quad
              r_t = \sigma(\mathcal{G}_r[x_t, h_{t-1}]), \quad
              n_t = \tanh(\mathcal{G}_n[x_t, r_t \odot h_{t-1}]), \quad
              h_t = (1 - z_t) n_t + z_t h_{t-1}

    for the GRU, with :math:`\mathcal{G}[x, h] = x W + \hat A x W' + h V + \hat A h V' + b` and
    :math:`\hat A = D^{-1/2} A D^{-1/2}`. Without edges each node has its own recurrent unit, with
    the same weights.

    Args:
        in_features: of a node and a time, :math:`D`.
        features: of the state.
        kind: ``"gru"`` or ``"lstm"``.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(N, T, D)``; returns the states after each time, ``(N, T, features)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import Edges
        >>> from ansatz.layers.graphs import GraphRecurrent
        >>> path = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
        >>> GraphRecurrent(2, 4)(torch.randn(3, 5, 2), path).shape
        torch.Size([3, 5, 4])

    References:
        Seo et al. (2018), Structured sequence modeling with graph convolutional recurrent networks.
        https://arxiv.org/abs/1612.07659
    """

    def __init__(
        self,
        in_features: int,
        features: int,
        *,
        kind: Literal["gru", "lstm"] = "gru",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.features = kind, features
        gates = 3 if kind == "gru" else 4
        self.inputs = affine(
            2 * in_features, gates * features, init="glorot_uniform", generator=generator
        )
        recurrent = features * (2 if kind == "gru" else gates)
        self.states = affine(
            2 * features, recurrent, init="glorot_uniform", bias=None, generator=generator
        )
        self.candidate = None
        if kind == "gru":
            self.candidate = affine(
                2 * features, features, init="glorot_uniform", bias=None, generator=generator
            )
        elif not self.inputs.bias.is_meta:
            with torch.no_grad():  # the gate that keeps the memory begins open
                self.inputs.bias[features : 2 * features] = 1.0

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        # The inputs of all times are smoothed and mapped at once.
        mapped = self.inputs(torch.cat([x, smooth(edges, x.flatten(1), 0.0).view_as(x)], 2))
        h = c = mapped.new_zeros(len(x), self.features)
        states = []
        for now in mapped.unbind(1):
            old = self.states(_with_neighbours(h, edges))
            if self.candidate is None:
                i, f, o, g = (now + old).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            else:
                z, r = (now[:, : 2 * self.features] + old).sigmoid().chunk(2, 1)
                new = now[:, 2 * self.features :] + self.candidate(_with_neighbours(r * h, edges))
                h = (1 - z) * new.tanh() + z * h
            states.append(h)
        return torch.stack(states, 1)


def _with_neighbours(h: Tensor, edges: Edges) -> Tensor:
    return torch.cat([h, smooth(edges, h, 0.0)], 1)
