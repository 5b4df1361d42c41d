"""The classical predictor of links: common neighbours, and how many neighbours both have."""

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.init import affine
from ansatz.networks.graphs.answers import check_graph, read_graph
from ansatz.spec import Inputs


class AdamicAdar(nn.Module):
    r"""A logit that is linear in the weight of common neighbours and in degrees.

    .. math:: f(u, v) = w^\top \Bigl[\log\Bigl(1 + \sum_{k \in N(u) \cap N(v)}
              \frac{1}{\log (1 + d_k)}\Bigr), \log(1 + d_u) + \log(1 + d_v),
              \log(1 + d_u) \log(1 + d_v)\Bigr] + b

    The features of nodes have no say: what a network does better, they and longer paths did. The
    logarithm is of 1 + d, so that neighbours of degree 1 count.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows="pairs")``.
        outputs: :math:`P`.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - batch: a ``GraphBatch`` with pairs as targets; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.networks.graphs import AdamicAdar
        >>> from ansatz.spec import InputSpec
        >>> path = GraphBatch.of(
        ...     torch.eye(3), torch.tensor([[0, 1], [1, 2]]),
        ...     targets=torch.tensor([[0, 2], [0, 1]]), undirected=True,
        ... )
        >>> network = AdamicAdar(InputSpec.graph(3, rows="pairs"), 1)
        >>> network.numbers(path)[:, 0]  # 0 and 2 have the neighbour 1 in common
        tensor([0.6472, 0.0000], dtype=torch.float64)

    References:
        Adamic and Adar (2003), Friends and neighbors on the web, section 4.
    """

    name = "adamic_adar"

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.spec = read_graph(self.name, inputs)
        if self.spec.rows != "pairs":
            raise UsageError("adamic_adar answers pairs of nodes.")
        self.output = affine(3, outputs, init="zeros", generator=generator)

    def numbers(self, batch: GraphBatch) -> Tensor:
        """The three numbers of each pair, ``(B, 3)``."""
        edges = batch.edges
        assert batch.targets is not None
        ones = np.ones(len(edges.source))
        parts = (ones, edges.source.numpy(), edges.offsets.numpy())
        into = csr_matrix(parts, shape=(batch.nodes, batch.nodes))
        degree = np.bincount(edges.source.numpy(), minlength=batch.nodes)
        first, second = batch.targets.numpy().T
        common = into[first].multiply(into[second]) @ (1 / np.log1p(np.maximum(degree, 1)))
        one, other = np.log1p(degree[first]), np.log1p(degree[second])
        found = np.stack([np.log1p(np.asarray(common).ravel()), one + other, one * other], 1)
        return torch.from_numpy(found)

    def forward(self, batch: GraphBatch) -> Tensor:
        check_graph(self.name, self.spec, batch)
        found: Tensor = self.output(self.numbers(batch).to(self.output.weight.dtype))
        return found
