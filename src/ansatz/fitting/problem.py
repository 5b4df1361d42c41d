"""Data read as a question: which rows there are, and what kind of quantity the target is."""

from typing import Any, NamedTuple, Protocol

import pandas as pd

from ansatz import outcomes
from ansatz.fitting.contracts.rows import Rows
from ansatz.fitting.uses import Uses


def outcome_of(law: str, uses: Uses) -> str:
    """The outcome that a law and the column roles speak of."""
    if uses.task is not None:
        outcomes.registry.get(uses.task)  # a wrong name suggests the nearest right one
        return uses.task
    for name in outcomes.names():
        if outcomes.registry.get(name).serves(law, uses):
            return name
    return outcomes.DEFAULT


class OnDisk(Protocol):
    """The way to all rows, where a problem holds a sample of them."""

    @property
    def rows(self) -> int:
        """How many rows have an outcome."""
        ...

    @property
    def why(self) -> str:
        """Why they are not held in memory, in a sentence."""
        ...


class Problem(NamedTuple):
    """Rows with their outcomes, and the laws that could have produced these."""

    origin: str  # what errors call the data
    frame: pd.DataFrame  # the columns of rows whose outcome is known
    rows: Rows  # the features
    uses: Uses
    laws: list[str]  # one, or the candidates among which the training rows will choose
    law_options: dict[str, Any]
    notes: list[str]
    fingerprint: str  # of the rows
    given: Any = None  # the outcomes, where they are not columns of the frame
    task: str | None = None  # the outcome's name, where the law does not tell it
    part: str | None = None  # the column that says which rows are for training and which for tests
    columns: list[Any] = []  # what each column of a table was taken for  # noqa: RUF012
    on_disk: OnDisk | None = None  # where frame and rows are a sample

    @property
    def size(self) -> int:
        """How many rows there are, those on disk included."""
        return len(self.frame) if self.on_disk is None else self.on_disk.rows

    @property
    def likelihood(self) -> str:
        """The law, or the first of the candidates."""
        return self.laws[0]

    @property
    def kind(self) -> str:
        """What the outcomes are, as the registry spells it."""
        return self.task or outcome_of(self.likelihood, self.uses)

    @property
    def outcomes(self) -> Any:
        """What is to be predicted, as an outcome reads it."""
        return self.uses.outcomes(self.frame) if self.given is None else self.given

    @property
    def has_own_columns(self) -> bool:
        """Whether the rows are columns of the frame themselves."""
        return bool(self.rows.describe()["columns"] is not None)

    @property
    def seen(self) -> pd.DataFrame:
        """The columns of rows whose weight is not 0, in the order of the job's."""
        weight = self.uses.weight(self.frame)
        return self.frame if weight is None else self.frame[weight > 0]
