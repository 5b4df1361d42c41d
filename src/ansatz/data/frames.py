"""Any table in memory as a pandas frame with distinct names."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.errors import DataError, MissingExtraError, UsageError

if TYPE_CHECKING:
    import pandas as pd


def as_frame(data: Any, *, names: list[str] | None = None) -> "pd.DataFrame":
    """Makes a frame of a pandas, polars or Arrow frame, a mapping, an array or lists.

    The frame is never modified later on; its index is left out. Columns of an array are called
    x1, x2, ...

    Args:
        data: the table.
        names: names of the columns of an array or of lists.

    Example:
        >>> from ansatz.data import as_frame
        >>> as_frame([[1, "a"], [2, "b"]]).columns.tolist()
        ['x1', 'x2']
    """
    import pandas as pd

    if isinstance(data, pd.Series):
        data = data.to_frame(name="x1" if data.name is None else data.name)
    if isinstance(data, pd.DataFrame):
        frame = data.reset_index(drop=True)
    elif isinstance(data, Mapping):
        frame = _from_mapping(data)
    elif hasattr(data, "tocsr"):
        raise DataError("sparse matrices are not read; a dense one by X.toarray().")
    elif _is_foreign(data):
        frame = _from_narwhals(data)
    else:
        frame = _from_array(data, names)
    return _checked(frame)


def is_frame(data: Any) -> bool:
    """Tests whether data have named columns: a frame of any library, or a mapping.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data import is_frame
        >>> is_frame(pd.DataFrame({"a": [1]})), is_frame([[1]])
        (True, False)
    """
    import pandas as pd

    return isinstance(data, pd.DataFrame | Mapping) or _is_foreign(data)


def is_array(data: Any) -> bool:
    """Tests whether the data are a numeric or boolean matrix without names."""
    return isinstance(data, np.ndarray) and data.dtype.kind in "fiub" and data.ndim == 2


def _is_foreign(data: Any) -> bool:
    module = type(data).__module__.partition(".")[0]
    return module in ("polars", "pyarrow", "modin", "cudf", "narwhals", "duckdb") or hasattr(
        data, "__arrow_c_stream__"
    )


def _from_narwhals(data: Any) -> "pd.DataFrame":
    import narwhals as nw

    try:
        native = nw.from_native(data, eager_only=True)
    except TypeError:
        raise UsageError(
            f"expected a table in memory, got {type(data).__name__}. Collect it first."
        ) from None
    try:
        return native.to_pandas().reset_index(drop=True)
    except ImportError:
        raise MissingExtraError("polars and Arrow frames", "data") from None


def _from_mapping(data: Mapping[Any, Any]) -> "pd.DataFrame":
    import pandas as pd

    lengths = {name: np.shape(column)[:1] for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"'{name}' {size[0] if size else 1}" for name, size in lengths.items())
        raise DataError(f"columns must have one length, got {said}.")
    return pd.DataFrame({name: _plain(column) for name, column in data.items()})


def _from_array(data: Any, names: list[str] | None) -> "pd.DataFrame":
    import pandas as pd

    if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
        return pd.DataFrame(list(data))
    if isinstance(data, list | tuple):
        values = pd.DataFrame(list(data))  # keeps a kind per column, where an array has one
        shape: tuple[int, ...] = (
            values.shape if len(data) and np.ndim(data[0]) == 1 else (len(data),)
        )
    else:
        values = np.asarray(_plain(data))
        if values.dtype.names is not None:
            return pd.DataFrame(values)
        shape = values.shape
    if len(shape) != 2:
        raise DataError(
            f"expected a table of shape (N, D), got shape {tuple(shape)}. "
            "One column: x.reshape(-1, 1); one row: x.reshape(1, -1)."
        )
    frame = pd.DataFrame(values)
    frame.columns = pd.Index(names or [f"x{k}" for k in range(1, shape[1] + 1)])
    return frame.infer_objects()


def _plain(values: Any) -> Any:
    """Tensors as arrays; everything else as it is."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def _checked(frame: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    if isinstance(frame.columns, pd.MultiIndex):
        raise DataError("columns with several levels of names are not read. Join them into one.")
    names = [str(name) for name in frame.columns]
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise DataError(f"{times} columns are called '{name}'. Rename them.")
    if names != list(frame.columns):
        frame = frame.set_axis(names, axis=1)
    return frame
