import numpy as np
import pytest

from ansatz.errors import DataError
from ansatz.fitting.job import read_column


def test_a_column_is_copied_checked_and_may_be_absent():
    values = np.arange(3.0)
    column = read_column("offset", values, 3)
    column[0] = 9
    assert values[0] == 0 and read_column("offset", None, 3) is None
    with pytest.raises(DataError, match="offset must be finite, got inf at row 1"):
        read_column("offset", [0, np.inf, 0], 3)
