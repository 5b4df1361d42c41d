"""Codes of examples: a table or grids as numbers, and back with the types of the fit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.generative.marginal import Kind, lattice
from ansatz.generative.table_column import TableColumn, coded_column
from ansatz.spec import InputSpec

if TYPE_CHECKING:
    import pandas as pd


class Coding(Protocol):
    """A map between examples and tensors of codes, one to one up to rounding."""

    @property
    def kinds(self) -> list[Kind]:
        """What each number of an example is, in the order of its flattened codes."""
        ...

    @property
    def spec(self) -> InputSpec:
        """The shape of ``features``."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the codes of one example."""
        ...

    def codes(self, contents: Any) -> Tensor:
        """The codes of examples; refuses what the fit has never seen."""
        ...

    def contents(self, codes: Tensor) -> Any:
        """The examples that codes stand for."""
        ...

    def shaped(self, flat: Tensor) -> Tensor:
        """Codes ``(N, D)`` in the shape and type of the examples."""
        ...

    def features(self, codes: Tensor) -> Tensor:
        """The codes as inputs of a network: scaled numbers, one-hot levels."""
        ...

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        ...


class TableCoding:
    """The columns of a table as numbers: levels are 0..K-1, dates are days, nan is missing.

    Constant columns and identifiers are not modelled: they are written anew.

    Args:
        columns: of the table, in its order.

    Example:
        >>> import pandas as pd
        >>> from ansatz.generative.coding import TableCoding
        >>> table = pd.DataFrame({"n": [1, 2, 3], "day": pd.to_datetime(["2020-01-05"] * 3)})
        >>> coding = TableCoding.fit(table)
        >>> coding.contents(coding.codes(table)).equals(table)
        True
    """

    def __init__(self, columns: list[TableColumn]) -> None:
        self.columns = columns
        self.modelled = [column for column in columns if column.is_modelled]

    @classmethod
    def fit(cls, frame: "pd.DataFrame", roles: Any = None) -> "TableCoding":
        """Reads the columns of a table, by their roles where these are known."""
        if not len(frame):
            raise DataError("a generator needs one row or more, got none.")
        known = {column.name: column for column in roles or ()}
        columns = [TableColumn.fit(frame[name], known.get(name)) for name in frame.columns]
        found = cls(columns)
        if not found.modelled:
            raise DataError("no column varies: there is nothing to model.")
        return found

    @property
    def kinds(self) -> list[Kind]:
        return [column.kind for column in self.modelled]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.modelled),)

    @property
    def spec(self) -> InputSpec:
        return InputSpec.of(sum(column.width for column in self.modelled))

    def codes(self, contents: "pd.DataFrame") -> Tensor:
        """``(N, D)`` float64."""
        absent = [c.name for c in self.modelled if c.name not in contents.columns]
        if absent:
            raise DataError(
                f"the table lacks {len(absent)} columns of the fit: '{absent[0]}' is the first."
            )
        found = [coded_column(column, contents[column.name]) for column in self.modelled]
        return torch.from_numpy(np.column_stack(found).astype(np.float64))

    def contents(self, codes: Tensor) -> "pd.DataFrame":
        """A table with the columns, types and decimals of the fit."""
        import pandas as pd

        values, place = codes.double().numpy(), 0
        found = {}
        for column in self.columns:
            own = None
            if column.is_modelled:
                own, place = values[:, place], place + 1
            found[column.name] = column.decoded(own, len(values))
        return pd.DataFrame(found)

    def shaped(self, flat: Tensor) -> Tensor:
        return flat.double()

    def features(self, codes: Tensor) -> Tensor:
        """Standardised numbers, one-hot levels, marks of missing values where the fit had some."""
        parts = []
        for place, column in enumerate(self.modelled):
            parts.append(column.features(codes[:, place].double()))
        return torch.cat(parts, 1)

    def names(self) -> list[str]:
        """Of the modelled columns."""
        return [column.name for column in self.modelled]

    def record(self) -> dict[str, Any]:
        return {"columns": [column.record() for column in self.columns]}


class GridCoding:
    """Signals, images or volumes as they are: uint8 or float32 in every value.

    Args:
        shape: ``(C, *size)``.
        low: the least number.
        high: the largest.
        step: the distance of neighbouring numbers: 1 for uint8; 0 where there is no lattice.

    Example:
        >>> import torch
        >>> from ansatz.generative.coding import GridCoding
        >>> images = torch.randint(0, 256, (4, 1, 5, 5), dtype=torch.uint8)
        >>> GridCoding.fit(images).spec.size
        (5, 5)
    """

    def __init__(self, shape: tuple[int, ...], low: float, high: float, step: float) -> None:
        self.shape, self.low, self.high, self.step = tuple(shape), low, high, step

    @classmethod
    def fit(cls, contents: Tensor, roles: Any = None) -> "GridCoding":
        """Reads the range of the numbers."""
        if not len(contents):
            raise DataError("a generator needs one example or more, got none.")
        shape = tuple(contents.shape[1:])
        if contents.dtype == torch.uint8:
            most = int(contents.max())
            return cls(shape, 0.0, 1.0 if most <= 1 else 255.0, 1.0)
        seen = contents[torch.isfinite(contents)]
        if not len(seen):
            raise DataError("every number of the examples is missing: there is nothing to model.")
        low, high = float(seen.min()), float(seen.max())
        step = lattice(np.unique(seen[:10_000].numpy().astype(np.float64)))
        return cls(shape, low, max(high, low + 1e-6), step if (high - low) < 1e4 * step else 0.0)

    @property
    def kinds(self) -> list[Kind]:
        count = int(np.prod(self.shape))
        return [Kind(0, self.step)] * count

    @property
    def spec(self) -> InputSpec:
        return InputSpec.grid(*self.shape)

    def codes(self, contents: Tensor) -> Tensor:
        if tuple(contents.shape[1:]) != self.shape:
            raise DataError(
                f"the examples are {'x'.join(map(str, contents.shape[1:]))}, those of the fit "
                f"{'x'.join(map(str, self.shape))}."
            )
        return contents

    def contents(self, codes: Tensor) -> Tensor:
        if self.step == 1.0 and self.low == 0.0 and self.high <= 255.0:
            return codes.round().clamp(0, self.high).to(torch.uint8)
        return codes.clamp(self.low, self.high).float()

    def shaped(self, flat: Tensor) -> Tensor:
        return flat.reshape(len(flat), *self.shape)

    def features(self, codes: Tensor) -> Tensor:
        """Numbers in [0, 1], 0 where missing."""
        return self.unit(codes).nan_to_num(0.0)

    def unit(self, codes: Tensor) -> Tensor:
        """Numbers of [low, high] as numbers of [0, 1]."""
        return (codes.float() - self.low) / (self.high - self.low)

    def from_unit(self, values: Tensor) -> Tensor:
        """The inverse of :meth:`unit`."""
        return values * (self.high - self.low) + self.low

    def record(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "low": self.low, "high": self.high, "step": self.step}


def fit_coding(contents: Any, roles: Any = None) -> Coding:
    """The coding of a table or of grids, fitted to training examples."""
    kind = GridCoding if isinstance(contents, Tensor) else TableCoding
    return kind.fit(contents, roles)


def load_coding(state: Mapping[str, Any] | None) -> Coding | None:
    """The coding that a ``record`` describes; None of None."""
    if state is None:
        return None
    if "columns" in state:
        return TableCoding([TableColumn.load(each) for each in state["columns"]])
    return GridCoding(tuple(state["shape"]), state["low"], state["high"], state["step"])


def row_hashes(codes: Tensor) -> NDArray[np.uint64]:
    """A hash of each row of codes; equal rows have equal hashes."""
    import hashlib

    flat = codes.reshape(len(codes), -1).contiguous().numpy()
    found = [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in flat]
    return np.frombuffer(b"".join(found), dtype=np.uint64)
