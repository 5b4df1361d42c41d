"""Which digits look alike? Embeddings by a triplet margin, evaluated by retrieval.

Data: MNIST, 6,000 images for training and 2,000 held-out ones, by other writers.
"""

import torch
from torch import nn

from ansatz import data, networks
from ansatz.data import Batch, TensorSource
from ansatz.metrics import neighbour_precision
from ansatz.training import GradientStep, Trainer, TripletMargin

mnist = data.load("mnist")
x = mnist.grids.load().float().flatten(1) / 255
y = torch.tensor(mnist.frame[mnist.target].astype(int).to_numpy())
train, held_out = (torch.as_tensor(part) for part in mnist.split(0))
order = torch.Generator().manual_seed(0)
train = train[torch.randperm(len(train), generator=order)[:6_000]]
held_out = held_out[torch.randperm(len(held_out), generator=order)[:2_000]]


def embed(rows, network):
    """The embeddings of rows, of length 1."""
    with torch.no_grad():
        return nn.functional.normalize(network.eval()(x[rows]))


def trained(rows):
    """A network that maps 784 pixels to 16 numbers, near for images of one class."""
    network = networks.create("mlp", inputs=784, outputs=16, widths=(128,), generator=order)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    step = GradientStep(network, TripletMargin(0.2), optimizer)
    Trainer(steps=600, progress=0).fit(step, TensorSource(Batch.of(x[rows], y[rows]), 64))
    return network


def report(name, rows, embeddings):
    """How many nearest images are of one's own class: the first, and as many as there are."""
    first, all_of_them = (neighbour_precision(y[rows], embeddings, k=k) for k in (1, None))
    print(f"{name} nearest {first:.3f}, all of the class {all_of_them:.3f}")


report("pixels:", held_out, x[held_out])
report("embeddings:", held_out, embed(held_out, trained(train)))

# A network that has seen the digits 0 to 6 only does not help to find 7, 8 and 9.
new = held_out[y[held_out] > 6]
report("new classes, pixels:", new, x[new])
report("new classes, embeddings:", new, embed(new, trained(train[y[train] < 7])))
