"""Networks of filters of the Laplacian, and of weights for each kind of edge."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ansatz.layers.edges import Edges
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs import ChebConv, RGCNConv, SpectralConv
from ansatz.layers.graphs.spectral import Spectrum, spectrum
from ansatz.layers.limits import require_whole
from ansatz.networks.graphs.body import GraphNetwork
from ansatz.spec import Inputs


class ChebNet(GraphNetwork):
    r"""A network of polynomial filters of the Laplacian.

    Its layer is ``ansatz.layers.graphs.ChebConv``: a layer of order K reads neighbours up to K
    steps away, and needs no eigenvectors.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``.
        outputs: :math:`P`.
        order: :math:`K`.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("chebnet", InputSpec.graph(3), 2, width=16, order=3)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Defferrard, Bresson & Vandergheynst (2016), Convolutional neural networks on graphs with
        fast localized spectral filtering. https://arxiv.org/abs/1606.09375
    """

    name = "chebnet"

    def __init__(self, inputs: Inputs, outputs: int, *, order: int = 2, **options: Any) -> None:
        self.order = require_whole("order of chebnet", order, low=0, high=100)
        super().__init__(inputs, outputs, **options)

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One polynomial filter."""
        return ChebConv(inputs, outputs, order=self.order, generator=generator)


class SpectralNetwork(GraphNetwork):
    r"""A network of filters of the Laplacian's eigenvalues.

    Its layer is ``ansatz.layers.graphs.SpectralConv``, a continuous function of the eigenvalue for
    each pair of channels. It computes the eigenvectors of each graph, of up to 3,000 nodes, once
    for all layers and keeps those of the last batch.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows=...)``, of undirected graphs.
        outputs: :math:`P`.
        knots: number of places in [0, 2] at which a filter is free.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("spectral", InputSpec.graph(3), 2, width=16)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, undirected=True)).shape
        torch.Size([1, 2])

    References:
        Bruna et al. (2014), Spectral networks and locally connected networks on graphs.
        https://arxiv.org/abs/1312.6203
    """

    name = "spectral"

    def __init__(self, inputs: Inputs, outputs: int, *, knots: int = 5, **options: Any) -> None:
        self.knots = require_whole("knots of spectral", knots, low=2, high=1000)
        self._last: tuple[Edges, torch.dtype, Spectrum] | None = None
        super().__init__(inputs, outputs, **options)
        self._last = None

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One filter of eigenvalues."""
        return SpectralConv(inputs, outputs, knots=self.knots, generator=generator)

    def context(self, batch: GraphBatch, edge: Tensor | None) -> tuple[Any, ...]:
        """The eigenvectors, of the batch before if it had the same edges."""
        dtype, edges = next(self.parameters()).dtype, batch.edges
        last = self._last
        if last is None or last[0].source is not edges.source or last[1] != dtype:
            last = (edges, dtype, spectrum(edges, batch.offsets, dtype))
            self._last = last
        return (last[2],)


class Relational(GraphNetwork):
    r"""A network with weights for each kind of edge, through bases that all kinds share.

    Its layer is ``ansatz.layers.graphs.RGCNConv``. A graph with one kind of edge is enough.

    Args:
        inputs: ``InputSpec.graph(nodes=D, relations=R, rows=...)``.
        outputs: :math:`P`.
        bases: number of matrices that the kinds share.
        options: those of :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch`` with ``relations``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("relational", InputSpec.graph(3, relations=2), 2, width=16)
        >>> path, kinds = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.tensor([0, 1, 0])
        >>> network(GraphBatch.of(torch.randn(4, 3), path, relations=kinds)).shape
        torch.Size([1, 2])

    References:
        Schlichtkrull et al. (2018), Modeling relational data with graph convolutional networks.
        https://arxiv.org/abs/1703.06103
    """

    name = "relational"
    takes_kinds: ClassVar[bool] = True

    def __init__(self, inputs: Inputs, outputs: int, *, bases: int = 4, **options: Any) -> None:
        self.bases = require_whole("bases of relational", bases)
        super().__init__(inputs, outputs, **options)

    def conv(
        self, inputs: int, outputs: int, *, is_answer: bool, generator: torch.Generator | None
    ) -> nn.Module:
        """One convolution with weights for each kind."""
        kinds = max(self.spec.relations, 1)
        return RGCNConv(inputs, outputs, relations=kinds, bases=self.bases, generator=generator)

    def context(self, batch: GraphBatch, edge: Tensor | None) -> tuple[Any, ...]:
        """The edges and their kinds."""
        kinds = batch.relations
        if kinds is None:
            kinds = torch.zeros_like(batch.edges.source)
        return (batch.edges, kinds)
