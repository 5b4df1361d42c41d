"""The analytic step beside what a user would pick: python benchmarks/analytic_step.py.

Everyone trains the same MLP (ReLU, squared error, Adam, same batch size, shuffled) for the same
number of epochs from a table in memory, without validation. They alternate on one thread; what is
measured is the processor time of this process, so that what else the machine does matters little.
"""

import argparse
import json
import os
import statistics
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch start their threads

import numpy as np
import skorch
import torch
from record import write_record
from sklearn.neural_network import MLPRegressor
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.likelihoods import MSE, Normal
from ansatz.networks import MLP
from ansatz.training import AnalyticStep, GradientStep, Supervised, Trainer

SEED = 0
SIZES = {  # rows, columns, widths, batch, epochs
    "tiny": (1_000, 20, (64, 64), 32, 20),
    "large": (20_000, 784, (256, 128), 128, 1),
}


class Task:
    """One table and the ways to train on it."""

    def __init__(self, rows, columns, widths, batch, epochs):
        random = np.random.default_rng(SEED)
        self.x = random.standard_normal((rows, columns), dtype=np.float32)
        noise = 0.1 * random.standard_normal(rows, dtype=np.float32)
        self.y = self.x[:, 0] + np.sin(self.x[:, 1]) + noise
        self.widths, self.batch, self.epochs = widths, batch, epochs
        self.steps = epochs * -(-rows // batch)

    def network(self, outputs=1):
        generator = torch.Generator().manual_seed(SEED)
        options = {"widths": self.widths, "activation": "relu", "generator": generator}
        return MLP(self.x.shape[1], outputs, **options)

    def source(self):
        rows = Batch.of(torch.from_numpy(self.x), torch.from_numpy(self.y))
        return TensorSource(rows, self.batch, seed=SEED)

    def loop(self, step):
        source = self.source()
        for epoch in range(self.epochs):
            for batch in source.batches(epoch):
                step.step(batch)

    def analytic(self):
        self.loop(AnalyticStep(self.network(), Supervised(MSE()), weight_decay=0.0))

    def analytic_trainer(self):
        step = AnalyticStep(self.network(), Supervised(MSE()), weight_decay=0.0)
        Trainer(epochs=self.epochs, progress=0, device="cpu", threads=1).fit(step, self.source())

    def analytic_normal(self):
        """Another task, for scale: the default law, with a predicted spread."""
        objective = Supervised(Normal(), torch.zeros(2), torch.ones(2))
        self.loop(AnalyticStep(self.network(2), objective, clip=5.0))

    def gradient_step(self):
        network = self.network()
        rule = torch.optim.AdamW(network.parameters(), lr=3e-3, fused=True)
        self.loop(GradientStep(network, Supervised(MSE()), rule))

    def hand_loop(self):
        """As in a tutorial: autograd, fused AdamW, one gather per epoch."""
        network, x, y = self.network(), torch.from_numpy(self.x), torch.from_numpy(self.y)
        rule = torch.optim.AdamW(network.parameters(), lr=3e-3, fused=True)
        for _ in range(self.epochs):
            order = torch.randperm(len(x))
            xs, ys = x[order], y[order]
            for i in range(0, len(x), self.batch):
                output = network(xs[i : i + self.batch]).squeeze(1)
                loss = nn.functional.mse_loss(output, ys[i : i + self.batch])
                rule.zero_grad()
                loss.backward()
                rule.step()

    def sklearn(self):
        model = MLPRegressor(
            hidden_layer_sizes=self.widths,
            batch_size=self.batch,
            max_iter=self.epochs,
            n_iter_no_change=self.epochs + 1,
            learning_rate_init=3e-3,
            random_state=SEED,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the given epochs are not convergence
            model.fit(self.x, self.y)

    def skorch(self):
        """As a user writes it."""
        self._skorch()

    def skorch_fused(self):
        """At its best: with the fused optimizer as well."""
        self._skorch(optimizer__fused=True)

    def _skorch(self, **options):
        network = self.network()
        model = skorch.NeuralNetRegressor(
            network,
            max_epochs=self.epochs,
            batch_size=self.batch,
            lr=3e-3,
            optimizer=torch.optim.AdamW,
            train_split=None,
            callbacks="disable",
            iterator_train__shuffle=True,
            verbose=0,
            **options,
        )
        model.fit(self.x, self.y[:, None])


PEERS = ("hand_loop", "gradient_step", "sklearn", "skorch", "skorch_fused")
OWN = ("analytic", "analytic_trainer", "analytic_normal")


def measure(name: str, repeats: int) -> dict[str, object]:
    task = Task(*SIZES[name])
    times: dict[str, list[float]] = {who: [] for who in (*OWN, *PEERS)}
    for _ in range(repeats + 1):  # the first one warms up
        for who, taken in times.items():
            start = time.process_time()
            getattr(task, who)()
            taken.append((time.process_time() - start) / task.steps * 1e6)
    times = {who: taken[1:] for who, taken in times.items()}
    ratios = {
        peer: [p / own for p, own in zip(times[peer], times["analytic"], strict=True)]
        for peer in PEERS
    }
    return {
        "name": f"{name}: {task.x.shape[0]} x {task.x.shape[1]}, {task.widths}, batch {task.batch}",
        "ours": {who: round(statistics.median(times[who]), 1) for who in OWN},
        "peers": {who: round(statistics.median(times[who]), 1) for who in PEERS},
        "fastest": {who: round(min(taken), 1) for who, taken in times.items()},
        "unit": "us of processor time per step, data handling included; median of the repeats",
        "ratio": {peer: round(statistics.median(r), 2) for peer, r in ratios.items()},
        "ratio_spread": {peer: [round(min(r), 2), round(max(r), 2)] for peer, r in ratios.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = [measure(name, options.repeats) for name in options.sizes]
    write_record(
        "analytic-step",
        command="python benchmarks/analytic_step.py",
        seed=SEED,
        results=found,
        repeats=options.repeats,
    )
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
