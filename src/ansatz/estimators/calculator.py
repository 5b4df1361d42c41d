"""A fitted potential as a calculator of ASE."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data import Molecules
from ansatz.errors import MissingExtraError

if TYPE_CHECKING:
    from ansatz.estimators.potential import Potential


def make_calculator(potential: "Potential") -> Any:
    """The calculator of a fitted potential; ASE is imported here."""
    try:
        from ase.calculators.calculator import Calculator, all_changes
    except ImportError as error:
        raise MissingExtraError("calculators", "chem") from error

    class PotentialCalculator(Calculator):
        """Energy, forces and stress in the units of the fit."""

        implemented_properties = [  # noqa: RUF012  # as ASE's calculators have it
            *("energy", "free_energy", "forces", "stress", "force_deviation")
        ]

        def calculate(
            self,
            atoms: Any = None,
            properties: Any = ("energy",),
            system_changes: Any = all_changes,
        ) -> None:
            super().calculate(atoms, properties, system_changes)  # type: ignore[no-untyped-call]
            frame: Any = self.atoms
            rows = Molecules.from_ase(frame)
            mean, deviation = potential._numbers(rows)
            self.results = dict(
                energy=float(mean[0, 0]),
                free_energy=float(mean[0, 0]),
                forces=mean[0, 11:].reshape(-1, 3),
                force_deviation=deviation[0, 11:].reshape(-1, 3),
            )
            if frame.pbc.all():
                virial = mean[0, 2:11].reshape(3, 3)
                volume = abs(float(np.linalg.det(rows.box[0])))
                stress = (virial + virial.T) / (2 * volume)
                self.results["stress"] = stress.reshape(-1)[[0, 4, 8, 5, 2, 1]]  # Voigt's order

    return PotentialCalculator()  # type: ignore[no-untyped-call]
