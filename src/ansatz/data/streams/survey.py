"""The roles of all columns from one pass over a table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from ansatz.data.columns import USED, Column, Role, _refuse_text
from ansatz.data.streams.column_scan import ColumnScan
from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


class Survey:
    """Looks at features block by block and says what each column is.

    The roles are those of :func:`ansatz.data.infer_columns` on the whole table.

    Args:
        roles: what columns are, where the guess would be wrong.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data.streams import Survey
        >>> survey = Survey()
        >>> for ages in ([3, 4], [5]):
        ...     survey.add(pd.DataFrame({"age": ages, "one": 1}))
        >>> [column.role for column in survey.columns()]
        ['numeric', 'constant']
    """

    def __init__(self, roles: Mapping[str, str] | None = None) -> None:
        self.roles = dict(roles or {})
        for name, role in self.roles.items():
            if "<" not in role and role not in (*get_args(Role), "drop"):
                known = ", ".join([*USED, "drop"])
                raise UsageError(f"unknown role '{role}' for column '{name}'. Known: {known}.")
        self._scans: dict[str, ColumnScan] = {}
        self.rows = 0

    def add(self, frame: "pd.DataFrame") -> None:
        """Takes in some rows."""
        if not self._scans:
            for name in self.roles:
                if name not in frame.columns:
                    raise UsageError(f"no column is called '{name}'.")
            self._scans = {name: ColumnScan(name, self.roles.get(name)) for name in frame.columns}
        for name, scan in self._scans.items():
            scan.add(frame[name])
        self.rows += len(frame)

    def columns(self) -> list[Column]:
        """What each column is; free text is an error that says how to go on."""
        columns = [scan.column() for scan in self._scans.values()]
        found = {
            column.name: why
            for column in columns
            if column.role in ("numeric", "categorical", "text")
            and column.name not in self.roles
            and (why := self._scans[column.name].reason_to_be_id())
        }
        if any(column.used and column.name not in found for column in columns):
            columns = [
                _as_id(column, found[column.name]) if column.name in found else column
                for column in columns
            ]
        _refuse_text([column.name for column in columns if column.role == "text"])
        return columns


def _as_id(column: Column, why: str) -> Column:
    keep = f" (--role {column.name}=numeric keeps it)" if column.role == "numeric" else ""
    note = f"{why}: left out{keep}"
    return column.model_copy(update={"role": "id", "levels": (), "note": note})
