"""A claim: a theorem, an identity or an experiment that runs, measures and is checked."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from ansatz.claims.finding import Finding
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = Literal["quick", "full"]


class Erratum(NamedTuple):
    """A formula as the course's documents print it, and as it should be.

    Args:
        id: its row, ``"E17"``.
        documents: which documents print it: letters of A, B, C, D.
        printed: the printed formula or sentence.
        correct: the right one.

    Example:
        >>> from ansatz.claims import Erratum
        >>> Erratum("E17", "B", "n / (2 log₂ n)", "n / (2 ln n)").id
        'E17'
    """

    id: str
    documents: str
    printed: str
    correct: str


@dataclass(frozen=True)
class Claim:
    """One statement of the course, and the experiment that tests it.

    Args:
        id: its name on the command line; the name of its file, with hyphens.
        title: a few words.
        statement: in words; the right one where a document has a slip, and it says so.
        formula: the statement in LaTeX.
        sources: the rows of the course it comes from: ``"M019"``, ``"E17"``.
        measure: ``measure(generator, **parameters) -> Finding``; the defaults of its keyword
            parameters are those of a quick run.
        reference: where to read on.
        full: parameters of a full run that differ from the quick ones.
        errata: printed formulas that this claim refutes; each belongs to a check's ``wrong``.
        draw: ``draw(paper, finding)`` draws the figure; None where a picture would say nothing.

    Example:
        >>> from ansatz import claims
        >>> claim = claims.get("xor")
        >>> claim.run().holds
        True
    """

    id: str
    title: str
    statement: str
    formula: str
    sources: tuple[str, ...]
    measure: Callable[..., Finding]
    reference: str
    full: Mapping[str, Any] = field(default_factory=dict)
    errata: tuple[Erratum, ...] = ()
    draw: "Callable[[Figure, Finding], None] | None" = None

    def __post_init__(self) -> None:
        # What `ansatz list` and `ansatz show` read.
        text = (
            f"{self.title.rstrip('.')}.\n\n{self.statement}\n\n.. math:: {self.formula}\n\n"
            f"References:\n    {self.reference}\n"
        )
        object.__setattr__(self, "__doc__", text)

    def parameters(self, scale: Scale = "quick") -> dict[str, Any]:
        """The parameters of a run and their values."""
        if scale not in ("quick", "full"):
            raise UsageError(f"the scale of a claim is quick or full, got '{scale}'.")
        known = list(inspect.signature(self.measure).parameters.values())[1:]
        found = {each.name: each.default for each in known}
        return found | dict(self.full) if scale == "full" else found

    def run(
        self,
        scale: Scale = "quick",
        generator: torch.Generator | None = None,
        **parameters: Any,
    ) -> Finding:
        """Measures, and compares with the prediction.

        Args:
            scale: how much work: seconds, or as much as a figure deserves.
            generator: the source of randomness; by default one with seed 0.
            parameters: values other than those of the scale.
        """
        settings = self.parameters(scale)
        for name in parameters:
            if name not in settings:
                known = ", ".join(settings) or "none"
                raise UsageError(f"claim '{self.id}' has no parameter '{name}'. Known: {known}.")
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        return self.measure(generator, **(settings | parameters))
