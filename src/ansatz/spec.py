"""The shapes of inputs and outcomes, as networks and likelihoods are built for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ansatz.errors import UsageError


@dataclass(frozen=True)
class InputSpec:
    """The shape of one example's inputs, as a network factory needs it.

    Args:
        structure: the answer to "what does x look like": ``"vector"`` for the rows of a table,
            ``"grid"`` for signals, images and volumes, ``"sequence"`` for steps in time and tokens,
            ``"graph"`` for nodes and edges, ``"set"`` for elements without an order.
        features: numbers per row, :math:`D`; of a grid, numbers per cell: its channels; of a
            sequence, numbers per step; of a graph, numbers per node; of a set, per element.
        cardinalities: levels of each categorical column that the network embeds by itself;
            its codes arrive as a second input ``(B, C)``, code 0 being the unknown level; of a
            sequence, the number of codes of each kind that a step has, ``(B, T, C)``; of molecules,
            the atomic numbers of their elements.
        size: cells along each axis of a grid: ``(L,)``, ``(H, W)`` or ``(D, H, W)``; empty where
            it is not known, and for vectors; ``(T,)`` for sequences of a known length.
        parts: for inputs of several kinds, the name and the spec of each, in the order in which a
            network takes them; ``InputSpec.joined(words=..., numbers=...)`` makes one.
        vocabulary: number of token codes of a sequence, :math:`V`, code 0 being the padding and 1
            the unknown token; 0 for sequences of numbers.
        edge_features: numbers per edge of a graph, :math:`F`.
        graph_features: numbers per graph beside its nodes, per set beside its elements, :math:`U`.
        relations: number of kinds of edges, whose codes arrive with them; 0 for one kind; of a
            set, of kinds of elements, each kind a set of its own.
        rows: what a row of a batch of graphs is: ``"graphs"``, ``"nodes"`` or ``"pairs"`` of nodes;
            of sets, ``"sets"`` or ``"elements"``.
        cutoff: the largest distance of two atoms of a molecule that see each other.

    Example:
        >>> from ansatz.spec import InputSpec
        >>> InputSpec.of(3).features
        3
        >>> InputSpec.grid(3, 32, 32).size
        (32, 32)
        >>> InputSpec.of((3, 32, 32)) == InputSpec.grid(3, 32, 32)
        True
    """

    structure: str = "vector"
    features: int = 0
    cardinalities: tuple[int, ...] = ()
    size: tuple[int, ...] = ()
    parts: "tuple[tuple[str, InputSpec], ...]" = ()
    vocabulary: int = 0
    edge_features: int = 0
    graph_features: int = 0
    relations: int = 0
    rows: Literal["", "graphs", "nodes", "pairs", "sets", "elements"] = ""
    cutoff: float = 0.0

    @classmethod
    def grid(cls, channels: int, *size: int) -> "InputSpec":
        """Describes a signal, an image or a volume by channels and size."""
        return cls("grid", channels, size=size)

    @classmethod
    def sequence(
        cls,
        *,
        features: int = 0,
        vocabulary: int = 0,
        cardinalities: tuple[int, ...] = (),
        length: int | None = None,
    ) -> "InputSpec":
        """Describes sequences of ``features`` numbers a step, or of tokens from a vocabulary.

        With ``cardinalities`` a step has several codes, of as many kinds: a word and its letters.
        """
        if (features > 0) + (vocabulary > 0) + bool(cardinalities) != 1:
            raise UsageError(
                "a sequence has features (numbers per step) or a vocabulary (codes of tokens), got "
                f"features={features} and vocabulary={vocabulary}."
            )
        size = () if length is None else (length,)
        return cls("sequence", features, cardinalities, size=size, vocabulary=vocabulary)

    @classmethod
    def graph(
        cls,
        nodes: int,
        edges: int = 0,
        *,
        graph: int = 0,
        relations: int = 0,
        rows: Literal["graphs", "nodes", "pairs"] = "graphs",
    ) -> "InputSpec":
        """Describes graphs by the numbers of features that their nodes, edges and they have."""
        return cls(
            "graph",
            nodes,
            edge_features=edges,
            graph_features=graph,
            relations=relations,
            rows=rows,
        )

    @classmethod
    def set(
        cls,
        features: int,
        *,
        cardinalities: tuple[int, ...] = (),
        beside: int = 0,
        kinds: int = 0,
        rows: Literal["sets", "elements"] = "sets",
    ) -> "InputSpec":
        """Describes sets by the numbers and codes of an element, and the numbers of the set."""
        return cls(
            "set", features, cardinalities, graph_features=beside, relations=kinds, rows=rows
        )

    @classmethod
    def molecule(cls, elements: "int | Sequence[int]", cutoff: float) -> "InputSpec":
        """Describes molecules by their elements, atomic numbers, and the reach of an atom.

        A number of elements stands for the first ones: hydrogen, helium and so on.
        """
        numbers = tuple(range(1, elements + 1)) if isinstance(elements, int) else tuple(elements)
        return cls("molecule", len(numbers), numbers, cutoff=cutoff)

    @classmethod
    def joined(cls, **parts: "InputSpec") -> "InputSpec":
        """Describes inputs of several kinds, each with a spec of its own."""
        return cls("joined", parts=tuple(parts.items()))

    @classmethod
    def of(cls, inputs: "InputSpec | int | Sequence[int]") -> "InputSpec":
        """Turns a number of features, or a shape, into a spec; a spec stays as it is.

        ``(D,)`` is the shape of a vector, ``(C, L)``, ``(C, H, W)`` and ``(C, D, H, W)`` are those
        of a signal, an image and a volume.
        """
        if isinstance(inputs, InputSpec):
            return inputs
        if isinstance(inputs, Sequence) and not isinstance(inputs, str):
            return cls._of_shape(inputs)
        if isinstance(inputs, bool) or not isinstance(inputs, int) or inputs < 0:
            raise UsageError(
                "inputs must be a number of features, a shape (C, H, W) or an InputSpec, got "
                f"{inputs!r}"
            )
        return cls(features=inputs)

    @classmethod
    def _of_shape(cls, shape: Sequence[int]) -> "InputSpec":
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape)
        if not whole or not 1 <= len(shape) <= 4:
            raise UsageError(
                "a shape has one to four whole numbers, (D,), (C, L), (C, H, W) or (C, D, H, W), "
                f"got {tuple(shape)}."
            )
        return cls(features=shape[0]) if len(shape) == 1 else cls.grid(*shape)


Inputs = InputSpec | int | Sequence[int]  # what InputSpec.of takes


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
