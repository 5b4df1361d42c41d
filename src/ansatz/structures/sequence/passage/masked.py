"""Documents as passages with gaps: the other tokens are x."""

from typing import ClassVar

from ansatz.data.sequences.masked_passages import MASK, MaskedPassages
from ansatz.data.sequences.passages import Passages
from ansatz.structures.sequence.passage.structure import PassageStructure


class MaskedPassageStructure(PassageStructure):
    """The tokens around each hidden token of a passage of at most ``length``."""

    name: ClassVar[str] = "masked_passage"
    kind: ClassVar[type[Passages]] = MaskedPassages
    marks: ClassVar[tuple[str, ...]] = (MASK,)

    def network(self, axis: str) -> str:
        """A transformer encoder."""
        return "bert"
