import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles

FRAME = pd.DataFrame({"x": [1.0, 2.0], "t": [1, 2], "g": ["a", "b"], "y": [0.0, 1.0], "w": [1, 2]})


def test_every_named_column_exists_and_has_one_use():
    ColumnRoles(target=["y"], weights="w", group="g", time="t").check(FRAME, "the table")
    with pytest.raises(DataError, match=r"houses\.csv: no column 'z' for offset\. Columns: x, t"):
        ColumnRoles(target=["y"], offset="z").check(FRAME, "houses.csv")
    with pytest.raises(UsageError, match="both target and weights"):
        ColumnRoles(target=["y"], weights="y").check(FRAME, "the table")
    with pytest.raises(UsageError, match="both target and target"):
        ColumnRoles(target=["y", "y"]).check(FRAME, "the table")


def test_features_are_the_rest_and_time_is_one_of_them():
    column_roles = ColumnRoles(target=["y"], weights="w", group="g", time="t")
    assert list(column_roles.features(FRAME)) == ["x", "t"]


def test_offset_and_log_exposure_add_up():
    frame = FRAME.assign(o=[0.5, 1.0], e=[1.0, np.e])
    assert_allclose(ColumnRoles(target=["y"], offset="o", exposure="e").offsets(frame), [0.5, 2.0])
    assert ColumnRoles(target=["y"]).offsets(frame) is None


def test_text_where_numbers_must_be_is_named():
    with pytest.raises(DataError, match="'g' must hold numbers"):
        ColumnRoles(target=["y"], weights="g").weight(FRAME)


def test_new_rows_need_no_weights_but_their_exposure():
    bare = FRAME.drop(columns=["w", "y"])
    assert ColumnRoles(target=["y"], weights="w").weight(bare) is None
    with pytest.raises(DataError, match=r"'e'.*exposure"):
        ColumnRoles(target=["y"], exposure="e").offsets(bare)


def test_a_record_can_name_nothing_else():
    with pytest.raises(ValueError, match="hook"):
        ColumnRoles.model_validate({"target": ["y"], "hook": "os.system"})
