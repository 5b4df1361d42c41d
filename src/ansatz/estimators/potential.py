"""Potentials: the energy of molecules and the forces on their atoms."""

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.data import Molecules
from ansatz.data.molecules.reading import as_molecules
from ansatz.errors import DataError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.likelihoods import Likelihood

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "tokens"),
    *("errors", "formula", "impute", "link", "augment", "length", "vocabulary", "folds"),
)


class Potential(Estimator, without=_OF_TABLES):
    r"""An energy of atoms whose forces are its derivatives, fitted to energies and forces.

    .. math:: y_E \sim N(E(x), n \sigma_E^2), \qquad
        y_F \sim N\left(-\frac{\partial E}{\partial x}, \sigma_F^2\right)

    No rotation, shift or exchange of like atoms changes the energy, and it is conserved.

    Args:
        likelihood: ``"energy_forces"``.
        network: ``"deeppot"``, ``"schnet"``, or ``"element_counts"``; ``"auto"`` takes deeppot.
        holdout: share of the frames that decides when to stop, in blocks; 0.1 if not given.

    Example:
        >>> import numpy as np
        >>> from ansatz import Potential
        >>> from ansatz.data import Molecules
        >>> r = np.linspace(0.7, 1.3, 20)
        >>> x = np.zeros((20, 2, 3))
        >>> x[:, 1, 2] = r
        >>> force = np.zeros((20, 2, 3))
        >>> force[:, 0, 2], force[:, 1, 2] = r - 1, 1 - r
        >>> model = Potential(steps=20).fit(Molecules(x, ["H", "H"]), (r - 1) ** 2 / 2, force)
        >>> energy, forces = model.energies_and_forces(Molecules(x[:1], ["H", "H"]))
        >>> forces.shape, bool(abs(forces.sum()) < 1e-12)
        ((2, 3), True)

    References:
        Behler and Parrinello (2007), Generalized neural-network representation of high-dimensional
        potential-energy surfaces. https://doi.org/10.1103/PhysRevLett.98.146401
    """

    outcome = "forces"
    x = "molecule"

    def __init__(
        self, likelihood: str | Likelihood = "energy_forces", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike | None = None,
        forces: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fits the network to frames.

        Args:
            X: :class:`~ansatz.data.Molecules`, or ASE's ``Atoms``.
            y: ``(B,)`` energies; those of the frames where not given.
            forces: ``(N, 3)``, or ``(B, A, 3)``; those of the frames where not given.
            sample_weight: ``(B,)`` frequency weights.
        """
        rows = as_molecules(X)
        if y is not None or forces is not None:
            rows = rows.with_outcomes(y, forces)
        return super().fit(rows, _energies(rows), sample_weight)

    def predict(self, X: Any) -> NDArray[Any]:  # type: ignore[override]
        """Predicts the energy of each frame, ``(B,)``.

        Args:
            X: frames.
        """
        return super().predict(as_molecules(X) if self.model_.column_roles is None else X)

    def energies_and_forces(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predicts energies ``(B,)`` and forces ``(N, 3)``; of an ensemble their means.

        Args:
            X: frames.
        """
        rows = as_molecules(X)
        mean, _ = self._numbers(rows)
        return mean[:, 0], _by_atom(mean, rows)

    def force_deviation(self, X: Any) -> NDArray[np.float64]:
        """Computes the standard deviation of each force among the members, ``(N, 3)``.

        Args:
            X: frames.
        """
        rows = as_molecules(X)
        return _by_atom(self._numbers(rows)[1], rows)

    def evaluate(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **options: Any
    ) -> dict[str, float | None]:
        """Computes nats per frame, and errors of forces and of energies per atom.

        Args:
            X: frames with energies and forces; of a model of ``ansatz.fit`` a file of them will do.
            y: ``(B,)`` energies; those of the frames where not given.
            sample_weight: ``(B,)`` frequency weights.
            options: ``warn``.
        """
        if self.model_.column_roles is not None and not isinstance(X, Molecules) and y is None:
            return super().evaluate(X, None, sample_weight, **options)
        rows = as_molecules(X)
        return super().evaluate(rows, _energies(rows) if y is None else y, sample_weight, **options)

    def score(self, X: Any, y: Any = None) -> float:
        """Computes minus the root mean square error of the forces.

        Args:
            X: frames with energies and forces.
            y: energies, as for :meth:`evaluate`.
        """
        return -float(self.evaluate(X, y, warn=False)["force_rmse"] or 0.0)

    def calculator(self) -> Any:
        """Makes an ASE calculator: energy, forces, stress; of an ensemble ``force_deviation``.

        Example:
            >>> from ansatz import Potential
            >>> hasattr(Potential(), "calculator")
            True
        """
        from ansatz.estimators.calculator import make_calculator

        return make_calculator(self)

    def _numbers(self, rows: Molecules) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and deviations of energy, number of atoms, virial and forces, ``(B, 11 + 3 A)``."""
        outcome: Any = self.model_.outcome
        mean, deviation = outcome.numbers(self.model_, rows)
        return mean.numpy(), deviation.numpy()


def _energies(rows: Molecules) -> NDArray[np.float64]:
    if rows.energy is None:
        raise DataError("the frames have no energies: give y, or frames that hold them.")
    return rows.energy


def _by_atom(numbers: NDArray[np.float64], rows: Molecules) -> NDArray[np.float64]:
    """Forces of all atoms one behind the other, ``(N, 3)``."""
    padded = numbers[:, 11:].reshape(len(rows), -1, 3)
    there = np.arange(padded.shape[1]) < rows.sizes[:, None]
    found: NDArray[np.float64] = padded[there]
    return found
