"""The inputs of networks on tables, and the limits of their sizes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.embedding import CategoryEmbedding
from ansatz.layers.limits import require_whole
from ansatz.layers.registry import numeric_embeddings
from ansatz.spec import Inputs, InputSpec

MAX_DEPTH = 1_000  # hidden layers
MAX_BYTES = 2**31  # parameters and buffers that a name on the command line may ask for


def check_widths(owner: str, widths: object) -> tuple[int, ...]:
    """``widths`` as a tuple of ints, if each is a sensible width and there are not too many."""
    if not isinstance(widths, Sequence) or isinstance(widths, (str, bytes)):
        raise UsageError(f"widths of {owner} must be a list such as [128, 128], got {widths!r:.40}")
    if len(widths) > MAX_DEPTH:
        raise UsageError(f"{owner} may have up to {MAX_DEPTH} hidden layers, got {len(widths)}.")
    return tuple(require_whole(f"widths[{i}] of {owner}", m) for i, m in enumerate(widths))


def check_size(owner: str, network: nn.Module, limit: int = MAX_BYTES) -> None:
    """Refuses a network whose tensors take more than ``limit`` bytes.

    Meant for a network built on the meta device, where tensors have shapes and no memory.

    Example:
        >>> import torch
        >>> from ansatz.networks import check_size
        >>> check_size("mlp", torch.nn.Linear(2**20, 2**20, device="meta"))
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: mlp would take 4398.1 GB, above the limit of 2.1 GB; use ...
    """
    tensors = [*network.parameters(), *network.buffers()]
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if size > limit:
        raise UsageError(
            f"{owner} would take {size / 1e9:.1f} GB, above the limit of {limit / 1e9:.1f} GB; "
            "use smaller sizes, or build its class yourself."
        )


class TableInputs(nn.Module):
    """Embeds the columns that ask for it and puts all of a row side by side.

    The pixels of a grid are columns like others: the network does not know which are neighbours.

    Args:
        owner: the network's name, for error messages.
        inputs: the columns: D numbers, and the cardinalities of C columns of codes; or a grid.
        numeric: ``"periodic"`` or ``"piecewise_linear"`` embedding of the numbers; None leaves
            them as they are.
        numeric_options: its options.
        category_dim: length of a level's vector; by a rule of thumb when not given.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``, or ``(B, C, *size)`` of a grid.
        - codes: ``(B, C)`` whole numbers, only where there are such columns.
        - returns: ``(B, out_features)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import TableInputs
        >>> from ansatz.spec import Inputs, InputSpec
        >>> entrance = TableInputs("mlp", InputSpec(features=2, cardinalities=(4,)), category_dim=3)
        >>> entrance(torch.randn(5, 2), torch.ones(5, 1, dtype=torch.long)).shape
        torch.Size([5, 5])
    """

    def __init__(
        self,
        owner: str,
        inputs: Inputs,
        *,
        numeric: str | None = None,
        numeric_options: Mapping[str, Any] | None = None,
        category_dim: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        self.flattens = spec.structure == "grid"
        if self.flattens:
            spec = InputSpec.of(spec.features * math.prod(spec.size))
        require_vector(owner, spec)
        self.owner, self.features = owner, spec.features
        self.numeric, self.categories = None, None
        out = self.features
        if numeric is not None:
            self.numeric = numeric_embeddings.create(
                numeric, self.features, generator=generator, **(numeric_options or {})
            )
            out = self.numeric.out_features
        if spec.cardinalities:
            self.categories = CategoryEmbedding(
                spec.cardinalities, dim=category_dim, generator=generator
            )
            out += self.categories.out_features
        self.out_features = out

    @property
    def is_plain(self) -> bool:
        """True where x passes unchanged."""
        return self.numeric is None and self.categories is None and not self.flattens

    @property
    def needs_rows(self) -> bool:
        """Whether an embedding depends on quantiles of the training rows."""
        return hasattr(self.numeric, "observe")

    def observe(self, x: Tensor) -> None:
        """Shows the training rows x to an embedding that depends on their quantiles."""
        if self.needs_rows:
            self.numeric.observe(x)  # type: ignore[union-attr]

    def forward(self, x: Tensor, codes: Tensor | None = None) -> Tensor:
        if self.flattens:
            x = x.flatten(1)
        require_columns(self.owner, self.features, self.categories is not None, x, codes)
        if self.numeric is not None:
            x = self.numeric(x)
        return x if self.categories is None else torch.cat([x, self.categories(codes)], -1)


def require_columns(
    owner: str, features: int, categorical: bool, x: Tensor, codes: Tensor | None
) -> None:
    """Refuses rows that are not of the columns that a network was built for."""
    if x.ndim != 2 or x.shape[1] != features:
        raise UsageError(f"{owner} needs x of shape (B, {features}), got {tuple(x.shape)}.")
    if (codes is not None and codes.shape[-1] > 0) != categorical:
        need = "codes as a second input" if categorical else "no codes"
        raise UsageError(f"{owner} was built for {need}; InputSpec.cardinalities decides it.")


def require_vector(owner: str, spec: InputSpec) -> None:
    """Refuses inputs that are not vectors, or of no sensible length."""
    if spec.structure != "vector":
        raise UsageError(f"{owner} takes vectors, got inputs of structure '{spec.structure}'.")
    require_whole(f"features of {owner}", spec.features, low=0, high=2**31)
