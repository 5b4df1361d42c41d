"""Survival: how long until a recurrence, when many patients had none before the study ended?

Data: 686 patients with breast cancer (GBSG-2); `cens` is 1 where the recurrence was observed.
"""

import numpy as np

from ansatz import SurvivalRegressor, data

patients = data.load("gbsg2").frame.sample(frac=1, random_state=0)  # in random order
X = patients.drop(columns=["time", "cens"])
# An outcome has two numbers: the time, and whether the event happened then (1) or was not seen (0).
y = np.column_stack([patients["time"] / 365.25, patients["cens"]])
train, test = slice(0, 500), slice(500, None)
print(f"{len(X)} patients, {patients['cens'].sum()} recurrences; the others are censored")

# The C index: how often the model orders two patients correctly in time; 0.5 is chance.
for likelihood in ("weibull", "log_normal", "cox"):
    model = SurvivalRegressor(likelihood, network="linear").fit(X[train], y[train])
    scores = model.evaluate(X[test], y[test])
    brier = scores["integrated_brier"]
    print(f"{likelihood:>10}: C index {scores['c_index']:.3f}, Brier score {brier:.3f}")

# A model gives each patient a curve: the chance to stay free of a recurrence until each time.
model = SurvivalRegressor("log_normal", network="linear").fit(X[train], y[train])
curves = model.predict_survival(X[test], times=[1, 3, 5])
risk = np.argsort(curves[:, 2])
for name, row in (("highest risk", risk[0]), ("lowest risk", risk[-1])):
    chances = ", ".join(f"{t} years {p:.2f}" for t, p in zip((1, 3, 5), curves[row], strict=True))
    nodes = X[test].iloc[row]["pnodes"]
    print(f"{name} ({nodes} positive nodes): free of a recurrence after {chances}")
