"""Long tables: a row is a step of the sequence that its identifier names."""

import numpy as np
import pandas as pd
import pytest
import torch

import ansatz
from ansatz.data.sequences.visits import Visits
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.replay import replay
from ansatz.report import build, replayed
from ansatz.structures.sequence.long_table import read_long, roles_of_long

DRAW = np.random.default_rng(0)
SETTINGS = {"x": "sequence", "identifier": "patient", "time": "day"}


def visits(count=150):
    """Numbers whose last one, and a site, make the mean of a count."""
    rows = []
    for k in range(count):
        steps = DRAW.integers(1, 6)
        x, site = np.cumsum(DRAW.normal(size=steps)), "ab"[k % 2]
        y = DRAW.poisson(np.exp(0.6 * x[-1] + 0.8 * (site == "b")))
        days = np.cumsum(DRAW.integers(1, 9, steps))
        rows += [(f"p{k}", day, number, site, y) for day, number in zip(days, x, strict=True)]
    frame = pd.DataFrame(rows, columns=["patient", "day", "x", "site", "y"])
    return frame.sample(frac=1, random_state=1, ignore_index=True)


FRAME = visits()


def read(frame, **roles):
    column_roles = roles_of_long(ColumnRoles(identifier="patient", **roles))
    return read_long(frame, column_roles, {}), column_roles


def test_rows_are_ordered_by_time_and_gaps_are_features():
    frame = pd.DataFrame({"patient": [7, 3, 7], "day": [5.0, 1.0, 2.0], "x": [1.0, 2.0, 3.0],
                          "y": [0, 1, 0]})  # fmt: skip
    found, roles = read(frame, target=["y"], time="day")
    assert (roles.group, roles.order, roles.time) == ("patient", "day", None)
    assert found.rows.offsets.tolist() == [0, 2, 3] and found.frame["patient"].tolist() == [7, 3]
    assert found.rows.frame["x"].tolist() == [3.0, 1.0, 2.0]
    assert found.rows.frame["day[since first]"].tolist() == [0.0, 3.0, 0.0]
    assert found.rows.frame["day[gap]"].tolist() == [0.0, 3.0, 0.0]
    dates = frame.assign(day=["2024-03-02", "2024-01-01", "2024-02-28"])
    again, _ = read(dates, target=["y"], time="day")
    assert again.rows.frame["day[gap]"].tolist() == [0.0, 3.0, 0.0]  # a leap year


def test_prefixes_are_the_histories_at_each_row():
    rows = Visits(pd.DataFrame({"x": [1, 2, 3, 4]}), [0, 3, 4]).prefixes()
    assert rows.offsets.tolist() == [0, 1, 3, 6, 7]
    assert rows.frame["x"].tolist() == [1, 1, 2, 1, 2, 3, 4]
    assert rows[[2]].frame["x"].tolist() == [1, 2, 3]
    keys = rows[[0, 1, 0]].content_keys()
    assert keys[0] == keys[2] != keys[1]


def test_a_count_for_each_patient(tmp_path):
    FRAME.to_csv(tmp_path / "v.csv", index=False)
    fit = ansatz.fit(tmp_path / "v.csv", target="y", out=tmp_path / "m", likelihood="poisson",
                     options={"steps": 150}, **SETTINGS)  # fmt: skip
    assert fit.rows == {"train": 96, "valid": 24, "test": 30}
    assert fit.metrics["nll"] < fit.constant["nll"] and fit.linear["nll"] < fit.constant["nll"]
    model = ansatz.load(tmp_path / "m")
    table = model.predict_frame(FRAME.drop(columns="y"))  # a new table needs no outcome
    assert len(table) == 150
    one = model.predict_frame(FRAME[FRAME["patient"] == "p7"].drop(columns="y"))
    place = pd.unique(FRAME["patient"]).tolist().index("p7")
    assert one["prediction"].iloc[0] == pytest.approx(table["prediction"][place], rel=1e-10)
    assert len(build(replayed(replay(fit))).sections) > 3


def test_events_are_predicted_from_visits_before_them():
    """Start-stop rows: the nll is that of hazards given the history, and no later visit counts."""
    rows = []
    for k in range(150):
        x, day = DRAW.normal(), 0.0
        while True:
            wait = DRAW.exponential(np.exp(2.0 - 1.5 * x))
            rows.append((k, day, x, wait < 1))
            if wait < 1 or day == 5:
                end = day + min(wait, 1.0)
                break
            day, x = day + 1, x + 0.5 * DRAW.normal()
        rows = [(*r, end) if len(r) == 4 else r for r in rows]
    frame = pd.DataFrame(rows, columns=["patient", "day", "x", "died", "stop"])
    frame["died"] = frame.groupby("patient")["died"].transform("max").astype(int)
    found, _ = read(frame, target=["stop"], event="died", time="day")
    assert len(found.rows) == len(frame)  # an interval for each visit
    one = found.frame[found.frame["patient"] == 0]
    assert one["day"].tolist()[1:] == one["stop"].tolist()[:-1]
    assert one["died"].tolist()[:-1] == [0] * (len(one) - 1)
    fit = ansatz.fit(frame, target="stop", event="died", likelihood="exponential",
                     options={"steps": 100}, **SETTINGS)  # fmt: skip
    assert fit.metrics["c_index"] > 0.7 and fit.linear["nll"] < fit.constant["nll"] - 0.02


def test_bad_input_is_one_line():
    with pytest.raises(UsageError, match=r"'x' varies within --id patient=.*--group patient"):
        ansatz.fit(FRAME, target="x", **SETTINGS)
    twice = pd.concat([FRAME, FRAME[:1]], ignore_index=True)
    with pytest.raises(DataError, match=r"two rows at 'day' \d+: rows 1 and"):
        ansatz.fit(twice, target="y", **SETTINGS)
    with pytest.raises(UsageError, match=r"no column 'patent'.*Did you mean 'patient'"):
        ansatz.fit(FRAME, target="y", identifier="patent")
    gone = FRAME.assign(patient=FRAME["patient"].where(FRAME.index != 3))
    with pytest.raises(DataError, match="row 4: no value of 'patient'"):
        ansatz.fit(gone, target="y", **SETTINGS)
    mixed = FRAME.assign(day=FRAME["day"].astype(str).where(FRAME.index != 2, "soon"))
    with pytest.raises(DataError, match="expected an ISO date"):
        ansatz.fit(mixed, target="y", **SETTINGS)
    late = FRAME.assign(stop=1.0, died=1)
    with pytest.raises(DataError, match="is not before the end 'stop' 1"):
        ansatz.fit(late, target="stop", event="died", **SETTINGS)
    assert torch.equal(Visits(FRAME, [0, 2, 4])[torch.tensor([True, False])].offsets,
                       torch.tensor([0, 2]))  # fmt: skip
