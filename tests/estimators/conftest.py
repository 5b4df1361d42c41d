import numpy as np
import pandas as pd
import pytest

TINY = {"widths": (8,), "epochs": 20}  # of tables below 100 rows: 20 steps


@pytest.fixture
def numbers():
    """X (60, 3) and y = x0 + noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=60)


@pytest.fixture
def mixed():
    """The table of mixed_table, new for every test."""
    return mixed_table()


def mixed_table():
    """A frame with numbers, a category and gaps, a number, classes and counts to predict."""
    rng = np.random.default_rng(1)
    size = 80
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=size),
            "b": rng.uniform(size=size),
            "town": rng.choice(["Jena", "Weimar", "Gera"], size=size),
        }
    )
    frame.loc[[3, 7], "b"] = np.nan
    shift = frame["town"].map({"Jena": 1.0, "Weimar": 0.0, "Gera": -1.0}).to_numpy()
    mean = frame["a"].to_numpy() + shift
    number = mean + 0.3 * rng.normal(size=size)
    label = np.where(mean + rng.logistic(size=size) > 0, "yes", "no")
    count = rng.poisson(np.exp(0.4 * mean))
    return frame, number, label, count
