"""The catalog of statements that claims test, and which of them have a claim."""

import csv
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ansatz.claims.registry import get, names

Kind = Literal["theorem", "identity", "formula", "experiment", "erratum", "thing"]

SECTIONS = {
    "A": "Connectionism: the first neurons",
    "B": "Mathematical toolbox",
    "C": "Feed-forward units and activations",
    "D": "Approximation and expressivity",
    "E": "Likelihood losses",
    "F": "Robust and imbalanced-data losses",
    "G": "Gradients and backpropagation",
    "H": "Optimisers and convergence",
    "I": "Initialisation",
    "J": "Regularisation and normalisation",
    "K": "Convolution and pooling",
    "L": "Image classification",
    "M": "Object detection",
    "N": "Segmentation",
    "O": "Recurrent networks and sequences",
    "P": "Transformers",
    "Q": "Symmetry, sets and point clouds",
    "R": "Graph networks",
    "S": "Linearised networks, NTK, infinite width",
    "T": "Bayesian learning, MCMC, Gaussian processes",
    "U": "Learning theory and phenomena",
    "V": "Autoencoders, VAE, GAN",
    "W": "Diffusion",
    "X": "Adversarial robustness",
    "Y": "Reinforcement learning",
    "Z": "Workflow and applications",
    "errata": "Common slips",
}


class Row(NamedTuple):
    """One row of the catalog.

    Args:
        id: ``"M019"``, or ``"E17"`` for a common slip.
        section: its letter, or ``"errata"``.
        item: a short title.
        kind: a theorem, an identity, a formula with a value, an experiment or an erratum; or a
            thing: a layer, a loss, a method or a data set, of which the row states nothing.
        where: of a thing: its name in Python, or the page that shows it; empty where it is absent.
    """

    id: str
    section: str
    item: str
    kind: Kind
    where: str = ""

    @property
    def states(self) -> bool:
        """Whether the row states something that can be true or false."""
        return self.kind != "thing"


class Section(NamedTuple):
    """A section of the catalog: its rows that state something, the claims of each, its things."""

    id: str
    title: str
    rows: tuple[Row, ...]
    claims: dict[str, tuple[str, ...]]  # names of claims, by row
    things: tuple[Row, ...] = ()

    @property
    def absent(self) -> tuple[Row, ...]:
        """Things that are nowhere: not in the library, on no page, in no claim."""
        return tuple(row for row in self.things if not row.where and row.id not in self.claims)

    @property
    def missing(self) -> tuple[Row, ...]:
        """Rows that state something and have no claim."""
        return tuple(row for row in self.rows if row.id not in self.claims)

    def to_dict(self) -> dict[str, Any]:
        """As ``ansatz verify --coverage --json`` prints it."""
        return {
            "section": self.id,
            "title": self.title,
            "states": len(self.rows),
            "claimed": len(self.rows) - len(self.missing),
            "missing": [row._asdict() for row in self.missing],
            "things": len(self.things),
            "absent": [row._asdict() for row in self.absent],
            "claims": self.claims,
        }


@cache
def catalog() -> tuple[Row, ...]:
    """Reads every row of the catalog, in its order, then the errata."""
    with open(Path(__file__).with_name("catalog.csv"), encoding="utf-8", newline="") as file:
        return tuple(Row(**row) for row in csv.DictReader(file))  # type: ignore[arg-type]


def coverage() -> list[Section]:
    """Lists, per section, the rows that state something and the claims that test them."""
    by_row: dict[str, tuple[str, ...]] = {}
    for name in names():
        for source in get(name).sources:
            by_row[source] = (*by_row.get(source, ()), name)
    found = []
    for letter, title in SECTIONS.items():
        mine = [row for row in catalog() if row.section == letter]
        rows = tuple(row for row in mine if row.states)
        there = {row.id: by_row[row.id] for row in mine if row.id in by_row}
        things = tuple(row for row in mine if not row.states)
        found.append(Section(letter, title, rows, there, things))
    return found
