"""The shapes of inputs and outcomes, as networks and likelihoods are built for them."""

from dataclasses import dataclass

from ansatz.errors import UsageError


@dataclass(frozen=True)
class InputSpec:
    """The shape of one example's inputs, as a network factory needs it.

    Args:
        structure: the answer to "what does x look like": ``"vector"`` for the rows of a table,
            ``"grid"`` for signals, images and volumes.
        features: numbers per row, :math:`D`; of a grid, numbers per cell: its channels.
        cardinalities: levels of each categorical column that the network embeds by itself;
            its codes arrive as a second input ``(B, C)``, code 0 being the unknown level.
        size: cells along each axis of a grid: ``(L,)``, ``(H, W)`` or ``(D, H, W)``; empty where
            it is not known, and for vectors.
        parts: for inputs of several kinds, the name and the spec of each, in the order in which a
            network takes them; ``InputSpec.joined(words=..., numbers=...)`` makes one.

    Example:
        >>> from ansatz.spec import InputSpec
        >>> InputSpec.of(3).features
        3
        >>> InputSpec.grid(3, 32, 32).size
        (32, 32)
    """

    structure: str = "vector"
    features: int = 0
    cardinalities: tuple[int, ...] = ()
    size: tuple[int, ...] = ()
    parts: "tuple[tuple[str, InputSpec], ...]" = ()

    @classmethod
    def grid(cls, channels: int, *size: int) -> "InputSpec":
        """Describes a signal, an image or a volume by channels and size."""
        return cls("grid", channels, size=size)

    @classmethod
    def joined(cls, **parts: "InputSpec") -> "InputSpec":
        """Describes inputs of several kinds, each with a spec of its own."""
        return cls("joined", parts=tuple(parts.items()))

    @classmethod
    def of(cls, inputs: "InputSpec | int") -> "InputSpec":
        """Turns a number of features into the spec of a vector; a spec stays as it is."""
        if isinstance(inputs, InputSpec):
            return inputs
        if isinstance(inputs, bool) or not isinstance(inputs, int) or inputs < 0:
            raise UsageError(f"inputs must be an InputSpec or a number of features, got {inputs!r}")
        return cls(features=inputs)


@dataclass(frozen=True)
class TargetSpec:
    """The shape of one example's outcomes: y is ``(B, *shape, *event)``.

    Args:
        shape: ``()`` for one outcome per row, ``(K,)`` for K targets at once.
        classes: number of classes for outcomes that are class codes 0..classes-1, and of items
            for rankings of them; 0 for numbers.
        event: the shape of a single outcome: ``()`` for a number, ``(K,)`` for a composition of
            K parts, a vector of K numbers, a ranking with K places or (time, event, entry).
        axis: where an outcome sits: ``"row"``, one for each example, or ``"element"``, one for
            each pixel, token or node of it, ``shape`` being their size.

    Example:
        >>> from ansatz.spec import TargetSpec
        >>> TargetSpec(classes=3)
        TargetSpec(shape=(), classes=3, event=(), axis='row')
    """

    shape: tuple[int, ...] = ()
    classes: int = 0
    event: tuple[int, ...] = ()
    axis: str = "row"
