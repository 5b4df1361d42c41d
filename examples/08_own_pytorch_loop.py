"""Your own PyTorch loop, with a network and a likelihood of Ansatz inside.

Data: progression of diabetes in 442 patients (shipped with scikit-learn).
"""

import torch
from sklearn.datasets import load_diabetes

from ansatz import likelihoods, networks

torch.manual_seed(0)
X, y = (torch.as_tensor(part, dtype=torch.float32) for part in load_diabetes(return_X_y=True))
X = (X - X.mean(0)) / X.std(0)
order = torch.randperm(len(y))
train, test = order[:330], order[330:]

# A likelihood is a module. It says how many numbers the network must give for each outcome: here 2,
# from which it makes the mean and the standard deviation of a normal distribution.
likelihood = likelihoods.create("normal")
weight = torch.ones(len(train))
likelihood.check(
    y[train]
)  # an outcome that the likelihood cannot produce is an error, with its row
likelihood.observe(y[train], weight)  # the unit of y
shift, scale = likelihood.start(y[train], weight)  # the best constant model: a good place to start

network = networks.create(
    "mlp", inputs=X.shape[1], outputs=len(shift), widths=(32, 32), dropout=0.2
)
optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.1)


def raw(rows):
    return shift + scale * network(X[rows])


def test_loss():
    network.eval()
    with torch.no_grad():
        return float(likelihood.loss(raw(test), y[test]).mean())


print(f"before training: nll {test_loss():.3f}")
for epoch in range(1, 41):
    network.train()
    for rows in train[torch.randperm(len(train))].split(32):
        loss = likelihood.loss(raw(rows), y[rows]).mean()  # one number for each outcome
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: nll {test_loss():.3f}")

with torch.no_grad():
    low, high = likelihood.distribution(raw(test)).interval(0.9)
print(f"90 % intervals cover {float(((low <= y[test]) & (y[test] <= high)).float().mean()):.1%}")
