"""A network on pairs of nodes, which tells graphs apart that colours of nodes do not."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs.readout import Kind
from ansatz.layers.init import affine
from ansatz.networks.graphs.answers import read_graph
from ansatz.networks.graphs.encoder import GraphEncoder, Perceptron
from ansatz.spec import Inputs, InputSpec

MAX_NODES = 1000  # of a graph: all its pairs have a state


class KGNN(GraphEncoder):
    r"""A network whose states belong to ordered pairs of nodes, as those of the 2-WL test do.

    .. math:: H_{uv} \leftarrow H_{uv} + \phi\Bigl(H_{uv}, \
              \tfrac{1}{\sqrt N} \sum_w f(H_{uw}) \odot g(H_{wv})\Bigr)

    The sum over all third nodes w counts triangles and longer cycles, so that it distinguishes
    graphs which networks on nodes cannot, such as a hexagon from two triangles. With ``local`` only
    neighbours take the place of u or v: :math:`\phi(H_{uv}, \sum_{w \in N(v)} H_{uw},
    \sum_{w \in N(u)} H_{wv})`. A pair begins with the features of both nodes, whether they are the
    same, and the weight and features of their edge.

    Args:
        inputs: ``InputSpec.graph(nodes=D, edges=F, rows=...)``, graphs of up to 1,000 nodes.
        outputs: :math:`P`.
        width: features of a pair.
        depth: number of layers.
        local: whether third nodes are neighbours only.
        dropout: in training, of what the answer takes, and of x where nodes are answered.
        readout: ``"sum"``, ``"mean"``, ``"max"`` or ``"attention"`` of a graph's nodes.
        directed: whether the order of a pair counts.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("kgnn", InputSpec.graph(3), 2, width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Morris et al. (2019), Weisfeiler and Leman go neural: ``local``.
        https://arxiv.org/abs/1810.02244
        Maron et al. (2019), Provably powerful graph networks, section 6.
        https://arxiv.org/abs/1905.11136
    """

    name = "kgnn"
    takes_edges: ClassVar[bool] = True

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 32,
        depth: int = 3,
        local: bool = False,
        dropout: float = 0.0,
        readout: Kind = "sum",
        directed: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        spec = read_graph(self.name, inputs)
        of_pairs = spec.rows == "pairs"
        # Of pairs each has a state itself: it is answered as a node is.
        answer = InputSpec.graph(width, graph=spec.graph_features, rows="nodes")
        super().__init__(
            spec, outputs, width=width, depth=depth, dropout=dropout, readout=readout,
            directed=directed, generator=generator, answer_spec=answer if of_pairs else None,
        )  # fmt: skip
        self.local, self.directed = local, directed
        sizes = (max(spec.features, 1), 1, 1 + self.edge_inputs.features)
        self.other, self.same, self.edge = (
            affine(size, width, init="glorot_uniform", bias=None, generator=generator)
            for size in sizes
        )
        self.blocks = nn.ModuleList(
            Perceptron((3 if local else 2) * width, width, generator=generator)
            for _ in range(depth)
        )
        factors = 0 if local else depth
        self.factors = nn.ModuleList(
            affine(width, 2 * width, init="lecun_normal", generator=generator)
            for _ in range(factors)
        )
        self.summary = None
        if not of_pairs:
            self.summary = affine(3 * width, width, init="lecun_normal", generator=generator)

    def pairs(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """The states of all pairs ``(G, n, n, width)``, and the place of each node among them."""
        h, edge = self.enter(batch)
        sizes, edges = batch.offsets.diff(), batch.edges
        n = int(sizes.max()) if len(sizes) else 0
        if n > MAX_NODES:
            raise UsageError(
                f"kgnn has a state for every pair of nodes: up to {MAX_NODES} nodes, got {n}."
            )
        graph = batch.graph_of_node
        place = graph * n + torch.arange(len(h), device=h.device) - batch.offsets[graph]
        present = h.new_zeros(batch.graphs * n, 1).index_fill(0, place, 1.0)
        present = present.reshape(-1, n, 1)
        # The entrance holds the map of the first node; what else enters it belongs to both.
        one = h.new_zeros(batch.graphs * n, h.shape[1]).index_copy(0, place, h)
        x = batch.x if isinstance(batch.x, Tensor) else batch.x.dense()
        x = x.to(h.dtype) if x.shape[1] else h.new_ones(len(h), 1)
        other = torch.zeros_like(one).index_copy(0, place, self.other(x))
        one, other = one.unflatten(0, (-1, n)), other.unflatten(0, (-1, n))
        H = one.unsqueeze(2) + other.unsqueeze(1)
        H = H + torch.eye(n, dtype=h.dtype, device=h.device).unsqueeze(2) * self.same.weight[:, 0]
        weight = h.new_ones(len(edges.source), 1)
        if edges.weight is not None:
            weight = edges.weight.to(h.dtype).unsqueeze(1)
        value = self.edge(weight if edge is None else torch.cat([weight, edge.to(h.dtype)], 1))
        flat = place[edges.destination] * n + place[edges.source] % max(n, 1)
        H = H.reshape(-1, h.shape[1]).index_add(0, flat, value).reshape(H.shape)
        mask = present.unsqueeze(2) * present.unsqueeze(1)  # (G, n, n, 1)
        H = torch.relu(H) * mask
        A = h.new_zeros(batch.graphs * n * n).index_add(0, flat, weight.squeeze(1))
        return self._rounds(H, A.reshape(-1, n, n), mask, sizes), place

    def _rounds(self, H: Tensor, A: Tensor, mask: Tensor, sizes: Tensor) -> Tensor:
        scale = sizes.clamp(min=1).to(H.dtype).rsqrt().reshape(-1, 1, 1, 1)
        for number, block in enumerate(self.blocks):
            if self.local:
                sums = [torch.einsum("guwk,gvw->guvk", H, A), torch.einsum("guw,gwvk->guvk", A, H)]
            else:
                f, g = (self.factors[number](H) * mask).chunk(2, 3)
                f, g = f.permute(0, 3, 1, 2), g.permute(0, 3, 1, 2)  # (G, width, n, n)
                sums = [(f @ g).permute(0, 2, 3, 1) * scale]
            H = H + block(torch.cat([H, *sums], 3)) * mask
        return H

    def embed(self, batch: GraphBatch) -> Tensor:
        """For every node, a map of its own state and the sums of those of its pairs."""
        H, place = self.pairs(batch)
        own = H.diagonal(dim1=1, dim2=2).transpose(1, 2)
        parts = torch.cat([own, H.sum(2), H.sum(1)], 2).flatten(0, 1)[place]
        return parts if self.summary is None else torch.relu(self.summary(parts))

    def forward(self, batch: GraphBatch) -> Tensor:
        if self.spec.rows != "pairs":
            return super().forward(batch)
        assert batch.targets is not None
        H, place = self.pairs(batch)
        n, one, other = H.shape[1], *place[batch.targets].unbind(1)
        flat = H.flatten(0, 2)
        found = flat[one * n + other % max(n, 1)]
        if not self.directed:
            found = found + flat[other * n + one % max(n, 1)]
        rows = torch.arange(len(found), device=found.device)
        answer: Tensor = self.answer(found, batch._replace(targets=rows))
        return answer
