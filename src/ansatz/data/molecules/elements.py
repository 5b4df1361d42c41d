"""The symbols of the chemical elements and their atomic numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import DataError

SYMBOLS = (
    "X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As "
    "Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd "
    "Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am "
    "Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
).split()
NUMBERS = {symbol: number for number, symbol in enumerate(SYMBOLS)}


def atomic_numbers(species: Sequence[Any] | NDArray[Any], where: str) -> NDArray[np.int64]:
    """Atomic numbers of symbols, or of numbers; ``where`` begins an error.

    Example:
        >>> from ansatz.data.molecules.elements import atomic_numbers
        >>> atomic_numbers(["O", "H", "H"], "water").tolist()
        [8, 1, 1]
    """
    given = np.asarray(species)
    if given.dtype.kind in "iu" or (given.dtype.kind == "f" and not len(given)):
        numbers = given.astype(np.int64)
        bad = np.flatnonzero((numbers < 1) | (numbers >= len(SYMBOLS)))
        if len(bad):
            raise DataError(
                f"{where}, atom {bad[0] + 1}: {numbers[bad[0]]} is not an atomic number."
            )
        return numbers
    if given.dtype.kind not in "US":
        raise DataError(f"{where}: species are symbols or atomic numbers, got {given.dtype}.")
    words, place = np.unique(given.astype(str), return_inverse=True)
    known = []
    for word in words.tolist():
        number = NUMBERS.get(word) or (int(word) if word.isdigit() else 0)
        if not 0 < number < len(SYMBOLS):
            atom = int(np.flatnonzero(given == word)[0]) + 1
            raise DataError(f"{where}, atom {atom}: '{word}' is not a chemical element.")
        known.append(number)
    return np.array(known, dtype=np.int64)[place.reshape(-1)]
