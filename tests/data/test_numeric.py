"""Means and deviations of columns, however large, ordered or incomplete."""

import numpy as np
import pytest

from ansatz.data.numeric import weighted_moments


def columns(rows=30_000):
    random = np.random.default_rng(0)
    noise = random.normal(size=rows)
    return {
        "around a billion": 1e9 + noise,
        "in order": np.sort(noise),
        "two clusters, one after the other": np.where(np.arange(rows) < rows // 2, 0, 1e6) + noise,
        "an outlier at the end": np.append(noise[:-1], 1e9),
        "constant but at the end": np.append(np.full(rows - 1, 3.7), 4.7),
        "single precision": noise.astype(np.float32),
    }


@pytest.mark.parametrize("name", columns())
def test_moments_are_those_of_many_more_digits(name):
    column = columns()[name]
    weight = np.random.default_rng(1).integers(0, 4, len(column)).astype(float) + 0.5
    wide, w = column.astype(np.longdouble), weight.astype(np.longdouble)
    mean = (w * wide).sum() / w.sum()
    deviation = np.sqrt((w * (wide - mean) ** 2).sum() / w.sum())
    found = weighted_moments(column[:, None], weight)
    assert float(found[0][0]) == pytest.approx(float(mean), rel=1e-14, abs=1e-14)
    assert float(found[1][0]) == pytest.approx(float(deviation), rel=1e-10)


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, -7e-20])
def test_what_is_constant_has_no_deviation(value):
    assert weighted_moments(np.full((20_000, 1), value), np.ones(20_000))[1].tolist() == [0.0]


def test_missing_numbers_are_left_out_and_counted():
    random = np.random.default_rng(2)
    column = random.normal(1e8, 2, 90_000)
    gone = random.random(90_000) < 0.3
    gone[:40_000] = True  # a block without a number
    with_gaps = np.where(gone, np.nan, column)
    mean, deviation, missing = weighted_moments(with_gaps[:, None], np.ones(90_000))
    assert missing.tolist() == [gone.sum()]
    assert mean[0] == pytest.approx(column[~gone].mean(), rel=1e-12)
    assert deviation[0] == pytest.approx(column[~gone].std(), rel=1e-10)
