"""One process of several, for tests: trains as it is told and writes down what came out."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.errors import AnsatzError
from ansatz.likelihoods import Cox, Normal, survival_outcome
from ansatz.networks import MLP
from ansatz.training import (
    AnalyticStep,
    Callback,
    GradientStep,
    Interrupted,
    NewtonStep,
    Supervised,
    Trainer,
)
from ansatz.training.machine import current_processes

RANK = int(os.environ.get("RANK", 0))


def rows(count, likelihood, weighted):
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(count, 3, generator=generator)
    y = x[:, 0] * x[:, 1] + 0.3 * torch.randn(count, generator=generator)
    weight = torch.randint(0, 4, (count,), generator=generator).double() if weighted else None
    if likelihood == "cox":
        event = torch.rand(count, generator=generator) < 0.7
        y = survival_outcome((0.5 * y).exp(), event.double())
    return Batch.of(x, y, weight)


def make_step(kind, base, *, dropout=0.0, accumulate=1, shard=False, norm=False):
    likelihood = Cox() if base == "cox" else Normal(dispersion="constant")
    torch.manual_seed(1)
    network = MLP(3, 1, widths=(8, 6), activation="tanh", dropout=dropout).double()
    if norm:
        network = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
        network = network.double()
    objective = Supervised(likelihood).double()
    schedule = _schedule
    if kind == "analytic":
        generator = torch.Generator().manual_seed(2)
        return AnalyticStep(
            network,
            objective,
            learning_rate=0.02,
            schedule=schedule,
            clip=1.0,
            generator=generator,
        )
    if shard:
        _shard(network)
    parameters = [*network.parameters(), *objective.parameters()]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 1e-2},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.02, betas=(0.9, 0.99), foreach=False)
    options = {"schedule": schedule, "clip": 1.0, "accumulate": accumulate}
    return GradientStep(network, objective, optimizer, **options)


def _schedule(number):
    return 1 / (1 + 0.01 * number)


def _shard(network):
    from torch.distributed.fsdp import fully_shard

    current_processes()  # opens the process group that the shards live in
    for layer in network.hidden:
        fully_shard(layer)
    fully_shard(network)


class Losses(Callback):
    def __init__(self):
        self.losses = []

    def on_step(self, run, logs):
        self.losses.append(logs["loss"])


class Trouble(Callback):
    """What can happen to one process of several."""

    def __init__(self, kind, at):
        self.kind, self.at = kind, at

    def on_step(self, run, logs):
        if run.number != self.at or os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
            return
        if self.kind == "callback" and RANK == 1:
            raise ZeroDivisionError("a callback of process 1")
        if self.kind == "stop" and RANK == 1:
            run.stop("enough")
        if self.kind == "signal" and RANK == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        if self.kind == "kill" and RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "sleep" and RANK == 1:
            time.sleep(30)


class Faulty(TensorSource):
    """Rows that go wrong in the second process."""

    def __init__(self, *arguments, fault, **options):
        super().__init__(*arguments, **options)
        self.fault = fault

    def batches(self, epoch, start=0):
        for number, batch in enumerate(super().batches(epoch, start)):
            if epoch == 1 and number == 2 and self.fault == "nan":
                x = batch.inputs[0].clone()
                x[-1, 1] = torch.nan  # among the rows of the last process only
                batch = batch._replace(inputs=(x,))
            if epoch == 1 and number == 2 and self.fault == "raise" and RANK == 1:
                raise OSError("the disk of process 1 is gone")
            if epoch == 1 and number == 2 and self.fault == "short" and RANK == 1:
                return
            yield batch


def train(options):
    """Trains as the options say; returns what happened."""
    likelihood, count = options.get("likelihood", "normal"), options.get("rows", 90)
    step = make_step(options.get("step", "gradient"), likelihood, **options.get("make", {}))
    if options.get("step") == "newton":
        step = NewtonStep(step.network, step.objective)
    seed = RANK if options.get("fault") == "seed" else 3
    if options.get("fault") == "count" and RANK == 1:
        count -= 20
    data = rows(count, likelihood, options.get("weighted", False))
    source = Faulty(data, options.get("batch", 16), seed=seed, fault=options.get("fault"))
    losses = Losses()
    callbacks = [losses]
    if "trouble" in options:
        callbacks.append(Trouble(options["trouble"], at=7))
    settings = {"steps": 40, "evaluate_every": 5, **options.get("trainer", {})}
    trainer = Trainer(progress=0, device="cpu", callbacks=callbacks, **settings)
    trainer.fit(step, source, TensorSource(rows(41, likelihood, False), 16, shuffle=False))
    return outcome(step, trainer, losses)


def outcome(step, trainer, losses):
    from ansatz.training.processes.gradients import gather_shards

    history = trainer.history
    weights = gather_shards(dict(step.network.state_dict()))
    return {
        "losses": losses.losses,
        "valid": history.losses("valid_loss"),
        "end": [history.stop_reason, history.steps, history.best_step],
        "weights": {name: t.flatten().tolist() for name, t in weights.items()},
    }


def attempt(options):
    """What came of a run: its outcome, or the error that ended it."""
    try:
        return {"status": 0, **train(options)}
    except Interrupted as error:
        return {"status": error.exit_status, "error": "Interrupted", "message": str(error)}
    except Exception as error:
        status = error.exit_status if isinstance(error, AnsatzError) else 1
        return {"status": status, "error": type(error).__name__, "message": str(error)}


def main():
    """Runs the named cases one after the other; the exit status is that of the last."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    cases, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    results = {}
    for name, options in cases:
        results[name] = attempt(options)
        (folder / f"process-{RANK}.json").write_text(json.dumps(results))
    sys.exit(results[cases[-1][0]]["status"])


if __name__ == "__main__":
    main()

SCRIPT = Path(__file__)
