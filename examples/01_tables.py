"""From a table in a file to a saved model, with its evidence.

Data: 569 tumours, benign or malignant, with 30 measurements each (shipped with scikit-learn).
"""

import ansatz
from ansatz import data

# Any CSV file will do; here a known table becomes one.
table = data.load("breast-cancer").frame
table.to_csv("tumours.csv", index=False)

# `fit` reads the file, holds out a fifth of the rows as test rows, and trains on the others.
# Beside the network it fits the linear and the constant model, so that you see what it gains.
fit = ansatz.fit("tumours.csv", target="diagnosis", out="tumour-model")

print(f"{fit.likelihood} likelihood, {fit.network} with {fit.parameters} parameters")
print(f"{fit.rows['test']} test rows, which took no part in training:")
for name, metrics in [("network", fit.metrics), ("linear", fit.linear), ("constant", fit.constant)]:
    # nll is the mean negative log-likelihood, the score of the probabilities: lower is better.
    print(f"{name:>9}: nll {metrics['nll']:.3f}, accuracy {metrics['accuracy']:.3f}")

# The folder holds the whole model, as JSON and tensors. Loading it runs no code.
model = ansatz.load("tumour-model")
some = table.iloc[[0, 19, 25]]
features = some.drop(columns="diagnosis")
for label, probabilities in zip(some["diagnosis"], model.predict_proba(features), strict=True):
    chances = ", ".join(f"{c} {p:.3f}" for c, p in zip(model.classes_, probabilities, strict=True))
    print(f"truth {label}: {chances}")
