"""Atoms in space: positions, species and boxes, and who is near whom."""

from ansatz.data.molecules.molecules import Molecules as Molecules
from ansatz.data.molecules.neighbours import Pairs as Pairs
from ansatz.data.molecules.neighbours import neighbours as neighbours
from ansatz.data.molecules.reading import read_molecules as read_molecules
