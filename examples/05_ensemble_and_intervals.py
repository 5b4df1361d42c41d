"""How sure? One network, an ensemble, and conformal intervals.

Data: progression of diabetes in 442 patients from ten measurements (shipped with scikit-learn).
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from ansatz import Regressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)


def describe(name, bounds, nll=None):
    low, high = bounds.T
    held = np.mean((low <= y_test) & (y_test <= high))
    score = "" if nll is None else f", nll {nll:.3f}"
    print(
        f"{name:>9}: 90 % intervals cover {held:.1%}, mean width {np.mean(high - low):.0f}{score}"
    )


single = Regressor("normal", inference="point", random_state=0).fit(X, y)
describe("network", single.interval(X_test, 0.9), single.evaluate(X_test, y_test)["nll"])

# Ten networks, each stopped by another fold of the training rows. Their distributions are mixed,
# and the mixture is recalibrated by predictions of rows that a network did not train on.
several = Regressor("normal", inference="ensemble", random_state=0).fit(X, y)
describe("ensemble", several.interval(X_test, 0.9), several.evaluate(X_test, y_test)["nll"])

# Conformal intervals need no distribution to be right: they cover 90 % of new rows on average, as
# long as new rows come from where the training rows came from.
describe("conformal", several.interval(X_test, 0.9, method="conformal"))

# The distribution of one patient answers any question, not only about its mean.
patient = several.predict_dist(X_test.iloc[:1])
print(f"first patient: median {float(patient.median[0]):.0f}, truth {y_test.iloc[0]:.0f}")
draws = patient.sample((10_000,))
print(f"chance of a progression above 200: {float((draws > 200).double().mean()):.2f}")
