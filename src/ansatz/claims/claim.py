"""Claims: theorems, identities and experiments that measure themselves."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from ansatz.claims.finding import Finding
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure
else:
    Figure = Any  # matplotlib is imported only where a claim draws

Scale = Literal["quick", "full"]


class Erratum(NamedTuple):
    """A common slip: a formula as it is often printed, and the right one.

    Args:
        id: its row of the catalog, ``"E17"``.
        printed: the formula or sentence with the slip.
        correct: the right one.

    Example:
        >>> from ansatz.claims import Erratum
        >>> Erratum("E17", "n / (2 log₂ n)", "n / (2 ln n)").id
        'E17'
    """

    id: str
    printed: str
    correct: str


@dataclass(frozen=True)
class Claim:
    """A statement, and the experiment that tests it.

    Args:
        id: its name on the command line; the name of its file, with hyphens.
        title: a few words.
        statement: in words; it names the common slips that the claim refutes.
        formula: the statement in LaTeX.
        sources: its rows of the catalog: ``"M019"``, ``"E17"``.
        measure: ``measure(generator, **parameters) -> Finding``; the defaults of its keyword
            parameters are those of a quick run.
        reference: the paper or textbook in which the statement stands.
        full: parameters of a full run that differ from the quick ones.
        errata: common slips that this claim refutes; each belongs to a check's ``wrong``.
        draw: ``draw(paper, finding)`` draws the figure; None for a claim without one.

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
    draw: Callable[[Figure, Finding], None] | None = None

    def __post_init__(self) -> None:
        # `ansatz list` and `ansatz show` read it.
        text = (
            f"{self.title.rstrip('.')}.\n\n{self.statement}\n\n.. math:: {self.formula}\n\n"
            f"References:\n    {self.reference}\n"
        )
        object.__setattr__(self, "__doc__", text)

    def parameters(self, scale: Scale = "quick") -> dict[str, Any]:
        """Returns the parameters of a run and their values."""
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
        """Measures, and compares the measurement with the prediction.

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
