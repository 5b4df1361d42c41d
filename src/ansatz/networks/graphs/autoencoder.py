"""Graph autoencoders: positions of nodes whose inner products say which pairs are joined."""

from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.layers.graphs import GCNConv
from ansatz.layers.limits import require_whole
from ansatz.networks.graphs.convolution import GCN
from ansatz.spec import Inputs


class InnerProduct(nn.Module):
    r"""The inner product of the positions of a pair; of P > 1 outputs each with weights of its own.

    Args:
        latent: numbers of a position.
        outputs: :math:`P`.
    """

    def __init__(self, latent: int, outputs: int) -> None:
        super().__init__()
        self.weight = self.bias = None
        if outputs > 1:
            self.weight = nn.Parameter(torch.ones(outputs, latent))
            self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, z: Tensor, batch: GraphBatch) -> Tensor:
        assert batch.targets is not None
        one, other = z[batch.targets].unbind(1)
        product = one * other
        if self.weight is None or self.bias is None:
            return product.sum(1, keepdim=True)
        return product @ self.weight.T + self.bias


class GAE(GCN):
    r"""A graph autoencoder: the logit of an edge is an inner product of its ends' positions.

    .. math:: f(u, v) = z_u^\top z_v, \qquad
              Z = \bar A \, \mathrm{ReLU}(\bar A X W_0) W_1

    With P > 1 outputs the p-th is :math:`\sum_k r_{pk} z_{uk} z_{vk} + c_p`, beginning at the inner
    product. It is symmetric in u and v.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows="pairs")``.
        outputs: :math:`P`.
        latent: numbers of a position z.
        options: ``width``, ``depth``, ``dropout``, ``norm``, ``skip`` and ``generator`` of
            :class:`~ansatz.networks.graphs.body.GraphNetwork`.

    Shapes:
        - batch: a ``GraphBatch`` with pairs as targets; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("gae", InputSpec.graph(3, rows="pairs"), 1)
        >>> path = GraphBatch.of(
        ...     torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]]),
        ...     targets=torch.tensor([[0, 1], [0, 3]]), undirected=True,
        ... )
        >>> network(path).shape
        torch.Size([2, 1])

    References:
        Kipf & Welling (2016), Variational graph auto-encoders, section 2.
        https://arxiv.org/abs/1611.07308
    """

    name = "gae"

    def __init__(self, inputs: Inputs, outputs: int, *, latent: int = 16, **options: Any) -> None:
        settings: dict[str, Any] = {"width": 32, "depth": 2, "dropout": 0.0, **options}
        super().__init__(inputs, outputs, **settings)
        if self.spec.rows != "pairs":
            raise UsageError(f"{self.name} answers pairs of nodes, got rows={self.spec.rows!r}.")
        if len(self.convs) < 2 or self.lin is not None:
            raise UsageError(f"{self.name} needs depth 2 or more, and no jumping.")
        self.latent = require_whole(f"latent of {self.name}", latent)
        self.convs[-1] = self._last(settings)
        self.answer = InnerProduct(latent, outputs)  # type: ignore[assignment]

    def _last(self, settings: dict[str, Any]) -> GCNConv:
        return GCNConv(settings["width"], self.latent, generator=settings.get("generator"))


class VGAE(GAE):
    r"""A variational graph autoencoder: positions of nodes have a normal distribution.

    .. math:: z_n \sim N(\mu_n, \mathrm{diag}(\sigma_n^2)), \qquad
              f(u, v) = z_u^\top z_v

    with :math:`\mu` and :math:`\log \sigma` from convolutions of the same hidden features. In
    training z is drawn, from torch's global generator; otherwise it is :math:`\mu`. The training
    loss adds :math:`\frac1N \mathrm{KL}(q \| N(0, 1)) / N`, which :meth:`penalty` computes.

    Args:
        inputs: ``InputSpec.graph(nodes=D, rows="pairs")``.
        outputs: :math:`P`.
        latent: numbers of a position z.
        options: those of :class:`~ansatz.networks.graphs.GAE`.

    Shapes:
        - batch: a ``GraphBatch`` with pairs as targets; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz import networks
        >>> from ansatz.layers import GraphBatch
        >>> from ansatz.spec import InputSpec
        >>> network = networks.create("vgae", InputSpec.graph(3, rows="pairs"), 1)
        >>> path = GraphBatch.of(
        ...     torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]]),
        ...     targets=torch.tensor([[0, 1], [0, 3]]), undirected=True,
        ... )
        >>> mean, log_sd = network.positions(path)
        >>> network(path).shape, mean.shape
        (torch.Size([2, 1]), torch.Size([4, 16]))

    References:
        Kipf & Welling (2016), Variational graph auto-encoders, eq. 1 to 3.
        https://arxiv.org/abs/1611.07308
    """

    name = "vgae"

    def __init__(self, inputs: Inputs, outputs: int, *, latent: int = 16, **options: Any) -> None:
        super().__init__(inputs, outputs, latent=latent, **options)
        self.log_sd = self._last({"width": 32, **options})

    def positions(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Means and log standard deviations of the nodes' positions, ``(N, latent)`` each."""
        layers = self.hidden(batch)
        return layers[-1], self.log_sd(layers[-2], batch.edges)

    def penalty(self, batch: GraphBatch) -> Tensor:
        """KL from the positions' distribution to N(0, 1), per node and divided by N again."""
        mean, log_sd = self.positions(batch)
        each = 0.5 * (mean.square() + (2 * log_sd).exp() - 1 - 2 * log_sd)
        return each.sum() / max(batch.nodes, 1) ** 2

    def embed(self, batch: GraphBatch) -> Tensor:
        """The positions: drawn in training, their means otherwise."""
        if not self.training:
            return super().embed(batch)
        mean, log_sd = self.positions(batch)
        return mean + log_sd.exp() * torch.randn_like(mean)
