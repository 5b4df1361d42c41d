"""The preprocessing of a table by a formula: its design matrix takes the place of the columns."""

from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Preprocessor, as_frame, is_frame
from ansatz.errors import ModelError
from ansatz.linear import DesignFormula
from ansatz.structures.vector.rows import TableRows


class FormulaPreprocessor(Preprocessor):
    """The map from a table through a design matrix to the inputs of a network or linear model."""

    design: DesignFormula

    @classmethod
    def learn(
        cls, rows: TableRows, weight: NDArray[np.float64], **options: Any
    ) -> "FormulaPreprocessor":
        """Learns knots and levels from training rows, then the scales of the design matrix."""
        assert rows.formula is not None
        design = DesignFormula.learn(rows.formula, rows.named[weight > 0], rows.columns)
        matrix = pd.DataFrame(design.matrix(rows.named), columns=design.names)
        made = cast(
            "FormulaPreprocessor", cls.fit(matrix, _numbers(design), weight=weight, **options)
        )
        made.design = design
        return made

    def transform(
        self,
        data: Any,
        *,
        clip: bool = False,
        notes: list[str] | None = None,
        estimator: str = "Preprocessor",
    ) -> tuple[Tensor, ...]:
        """Rows as ``(x,)``, x the design matrix; standardised for a network."""
        frame = as_frame(data)
        if not is_frame(data):
            frame = frame.set_axis([f"x{k + 1}" for k in range(frame.shape[1])], axis=1)
        matrix = pd.DataFrame(self.design.matrix(frame, notes), columns=self.design.names)
        return super().transform(matrix, clip=clip, notes=notes, estimator=estimator)

    @property
    def notes(self) -> list[str]:
        """Notes on missing values."""
        return self.design.notes

    def state(self) -> dict[str, Any]:
        """Everything, as JSON: terms, numbers, names and levels."""
        return {"design": self.design.state(), **super().state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "FormulaPreprocessor":
        """The preprocessor that gave the state; anything else in it is a :class:`ModelError`."""
        state = dict(state)
        design = DesignFormula.from_state(state.pop("design"))
        made = cast("FormulaPreprocessor", super().from_state(state))
        if [column.name for column in made.columns] != design.names:
            raise ModelError("damaged formula: its columns are not those of the preprocessing.")
        made.design = design
        return made


def learn_preprocessor(
    rows: TableRows, weight: NDArray[np.float64], *, bins: int = 0, **options: Any
) -> Preprocessor:
    """Fits the preprocessing of rows, by their formula where they have one."""
    if rows.formula is not None:
        options.pop("quantile", None)
        return FormulaPreprocessor.learn(rows, weight, **options)
    return Preprocessor.fit(rows.values, rows.columns, weight=weight, bins=bins, **options)


def load_preprocessor(state: dict[str, Any]) -> Preprocessor:
    """The preprocessing that gave the state."""
    kind = FormulaPreprocessor if "design" in state else Preprocessor
    return kind.from_state(state)


def _numbers(design: DesignFormula) -> Any:
    from ansatz.data import Column

    return [Column(name=name, role="numeric") for name in design.names]
