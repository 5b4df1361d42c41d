"""The linear model."""

import torch
from torch import Tensor, nn

from ansatz.layers.embedding import CategoryEmbedding
from ansatz.layers.init import affine
from ansatz.networks.inputs import require_columns, require_vector
from ansatz.spec import InputSpec


class Linear(nn.Module):
    r"""The linear predictor of a generalised linear model.

    .. math:: f(x) = W x + b + \sum_c E_c[\text{code}_c]

    A categorical column has one coefficient per level and output (the row of its table
    :math:`E_c`), as if its one-hot columns stood in x, so the model is linear in its parameters
    and its likelihood is as convex as the likelihood allows. All start at zero: the constant model.

    Args:
        inputs: the columns, or their number :math:`D`.
        outputs: :math:`P`.
        generator: accepted like every network's; nothing is drawn.

    Attributes:
        hidden, activation, dropout, output: those of an ``MLP`` without hidden layers.

    Shapes:
        - x: ``(B, D)``.
        - codes: ``(B, C)``, only for inputs with cardinalities.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Linear
        >>> Linear(3, 2)(torch.randn(1, 3))
        tensor([[0., 0.]], grad_fn=<AddmmBackward0>)

    References:
        McCullagh & Nelder (1989), Generalized linear models, section 2.2.
    """

    widths: tuple[int, ...] = ()

    def __init__(
        self,
        inputs: InputSpec | int,
        outputs: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        require_vector("linear", spec)
        self.features, self.outputs, self.dropout = spec.features, outputs, 0.0
        self.hidden, self.activation = nn.ModuleList(), nn.Identity()
        self.output = affine(spec.features, outputs, init="zeros", generator=generator)
        self.levels = None
        if spec.cardinalities:
            self.levels = CategoryEmbedding(spec.cardinalities, dim=outputs, init="zeros")

    @property
    def is_plain(self) -> bool:
        """True without categorical columns: then it is one ``torch.nn.Linear``."""
        return self.levels is None

    def forward(self, x: Tensor, codes: Tensor | None = None) -> Tensor:
        require_columns("linear", self.features, self.levels is not None, x, codes)
        if self.levels is None or codes is None:
            return self.output(x)
        effects = self.levels(codes).unflatten(-1, (-1, self.outputs))  # (B, C, P)
        return self.output(x) + effects.sum(-2)
