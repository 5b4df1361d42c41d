"""The multilayer perceptron."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import Dense, drop
from ansatz.layers.dense_block import DenseBlock
from ansatz.layers.init import affine
from ansatz.layers.norm import Norm
from ansatz.layers.registry import activations
from ansatz.layers.residual import Highway, Residual
from ansatz.networks.inputs import TableInputs, check_widths
from ansatz.spec import Inputs

Connection = Literal["plain", "residual", "dense", "highway"]


class MLP(nn.Module):
    r"""The multilayer perceptron: affine maps with an activation between them.

    .. math:: f(x) = A_{L+1} \circ \phi \circ A_L \circ \dots \circ \phi \circ A_1 (x), \qquad
              A_\ell(h) = W_\ell h + b_\ell

    The last map is affine: what follows it is the likelihood's business. No width at all is the
    linear map. With one hidden layer of m units it has m(D + 1) + P(m + 1) parameters.

    ``connection`` says how a layer meets what it is given: ``"plain"`` replaces it,
    ``"residual"`` adds to it, ``"dense"`` appends to it, ``"highway"`` gates between the two.

    Args:
        inputs: the columns, or their number :math:`D`.
        outputs: :math:`P`.
        widths: units of each hidden layer.
        activation: a name from ``ansatz.layers.activations``.
        activation_options: its options, such as ``{"beta": 0.4}`` for swish.
        norm: ``"batch"``, ``"layer"``, ``"rms"``, ``"weight"`` or None.
        dropout: probability that a hidden unit is dropped while training.
        connection: see above.
        numeric_embedding: ``"periodic"`` or ``"piecewise_linear"`` (see ``observe``), or None.
        numeric_options: its options.
        category_dim: length of a level's vector; by a rule of thumb when not given.
        init: name of the initialisation of the weights.
        bias: the value that hidden biases start at.
        output_scale: factor on the initial weights of the last map: small, so that the first
            predictions are close to the likelihood's constant model.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``.
        - codes: ``(B, C)``, only for inputs with cardinalities.
        - returns: ``(B, P)``.

    Attributes:
        hidden: the hidden layers; ``torch.nn.Linear`` each, if the connection is plain, without
            norm and with an activation that learns nothing; else blocks with their activation
            and dropout inside.
        activation: what follows each of ``hidden``; the identity after blocks.
        output: the last map.

    Example:
        >>> import torch
        >>> from ansatz.networks import MLP
        >>> MLP(3, 2, widths=(16, 16), connection="residual")(torch.randn(5, 3)).shape
        torch.Size([5, 2])

    References:
        Rumelhart, Hinton & Williams (1986), Learning representations by back-propagating errors.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: Sequence[int] = (128, 128),
        activation: str = "silu",
        activation_options: Mapping[str, Any] | None = None,
        norm: Norm | None = None,
        dropout: float = 0.0,
        connection: Connection = "plain",
        numeric_embedding: str | None = None,
        numeric_options: Mapping[str, Any] | None = None,
        category_dim: int | None = None,
        init: str = "he_normal",
        bias: float = 0.0,
        output_scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if connection not in get_args(Connection):
            known = ", ".join(get_args(Connection))
            raise UsageError(f"connection of mlp must be one of {known}, got {connection!r}.")
        self.widths = check_widths("mlp", widths)
        self.outputs, self.connection = outputs, connection
        phi, self._drop = (
            activations.create(activation, **(activation_options or {})),
            drop(dropout),
        )
        self.dropout = float(dropout)
        self.inputs = TableInputs(
            "mlp",
            inputs,
            numeric=numeric_embedding,
            numeric_options=numeric_options,
            category_dim=category_dim,
            generator=generator,
        )
        # An activation that learns needs one copy per layer, which blocks have.
        blocks = connection != "plain" or norm is not None or len(list(phi.parameters())) > 0
        layer: Any = _LAYERS[connection] if blocks else affine
        options: dict[str, Any] = {"init": init, "bias": bias, "generator": generator}
        if blocks:
            options |= {"activation": activation, "activation_options": activation_options}
            options |= {"norm": norm, "dropout": dropout}
            phi, self._drop = nn.Identity(), nn.Identity()
        self.activation, self.hidden = phi, nn.ModuleList()
        size = self.inputs.out_features
        for width in self.widths:
            made = layer(size, width, **options)
            self.hidden.append(made)
            size = made.out_features  # more than width where a layer appends
        self.output = affine(size, outputs, init=init, gain=output_scale, generator=generator)

    @property
    def is_plain(self) -> bool:
        """True where it is nothing but Linear, activation and dropout, on x as it comes."""
        layers = all(type(layer) is nn.Linear for layer in self.hidden)
        return layers and self.connection == "plain" and self.inputs.is_plain

    def observe(self, x: Tensor) -> None:
        """Shows the numeric training rows ``(N, D)`` to an embedding that needs their quantiles."""
        self.inputs.observe(x)

    def forward(self, x: Tensor, codes: Tensor | None = None) -> Tensor:
        h = self.inputs(x, codes)
        for layer in self.hidden:
            h = self._drop(self.activation(layer(h)))
        return self.output(h)


_LAYERS = {"plain": Dense, "residual": Residual, "dense": DenseBlock, "highway": Highway}
