"""A small training run with everything that a resume can forget, as a script and as functions.

python training_run.py '{"folder": ..., "steps": 60, ...}' trains and prints what came out as JSON.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.likelihoods import Normal
from ansatz.storage import encode_json, encode_tensors, pack_state
from ansatz.training import Callback, GradientStep, Interrupted, Supervised, Trainer
from ansatz.training.machine import random_state

CPU = torch.device("cpu")


def rows(count=83, seed=0):
    """83 rows: with batches of 7 the last one has 6; 3 features: batches are not aligned."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, generator=generator, dtype=torch.float32)
    noise = torch.randn(count, generator=generator, dtype=torch.float32)
    return Batch.of(x, x[:, 0] * x[:, 1] + 0.3 * noise)


def make_step(accumulate=1, seed=0):
    """Dropout, running statistics, a learned dispersion, fused moments, a schedule, clipping."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = nn.Linear(3, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 1)
        network = nn.Sequential(*layers).float()
    objective = Supervised(Normal(dispersion="constant")).float()
    parameters = [*network.parameters(), *objective.parameters()]
    return GradientStep(
        network,
        objective,
        torch.optim.AdamW(parameters, lr=0.02, fused=True),
        schedule=lambda number: 1 / (1 + 0.01 * number),
        clip=1.0,
        accumulate=accumulate,
    )


def digest(step, random=()):
    """One hash of weights, optimizer and schedule, and of the random state if given."""
    packed, tensors = pack_state(
        {
            "network": dict(step.network.state_dict()),
            "objective": dict(step.objective.state_dict()),
            "step": step.state_dict(),
            "random": dict(random),
        }
    )
    return hashlib.sha256(encode_json(packed) + encode_tensors(tensors)).hexdigest()


class Traced:
    """A step that writes down what it sees before each update."""

    def __init__(self, step):
        self._step, self.trace = step, []

    def __getattr__(self, name):
        return getattr(self._step, name)

    def step(self, batch):
        before = digest(self._step, random_state(CPU))
        self.trace.append([self._step.number, before, batch.index.tolist()])
        return self._step.step(batch)


class Slow(Callback):
    """Takes its time, and tells another process how far it is."""

    def __init__(self, seconds):
        self.seconds = seconds

    def on_step(self, run, logs):
        print(run.number, flush=True)
        time.sleep(self.seconds)


def train(folder=None, accumulate=1, traced=False, pause=0.0, **options):
    """Trains and returns (step, trainer, outcome)."""
    step = make_step(accumulate)
    used = Traced(step) if traced else step
    settings = {"steps": 60, "evaluate_every": 5, "patience": 8, "average": "ema", **options}
    if folder is not None:
        settings = {"checkpoint": folder, "resume": True, "checkpoint_every": 1, **settings}
    callbacks = [Slow(pause)] if pause else []
    trainer = Trainer(progress=0, device="cpu", callbacks=callbacks, **settings)
    # 7 batches an epoch, the last one of 12 rows, which 4 micro-batches split without a single row.
    source = TensorSource(rows(90), 13, seed=3)
    trainer.fit(used, source, TensorSource(rows(40, 1), 16, shuffle=False))
    return step, trainer, outcome(step, trainer, used.trace if traced else [])


def outcome(step, trainer, trace=()):
    """What two equal runs must have in common, to the last bit."""
    history = trainer.history
    records = [{k: v for k, v in r.items() if k != "seconds"} for r in history.records]
    return {
        "digest": digest(step),
        "records": records,
        "best": [history.best_step, history.best_loss],
        "end": [history.stop_reason, history.steps, history.epochs],
        "trace": list(trace),
    }


def main():
    torch.set_num_threads(1)
    options = json.loads(sys.argv[1])
    try:
        print(json.dumps(train(**options)[2]))
    except Interrupted as error:
        print(str(error), file=sys.stderr)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()

SCRIPT = Path(__file__)
