"""Early stopping restores the best weights, not the last ones."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.data import Batch, TensorSource
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.likelihoods import Normal
from ansatz.networks import MLP
from ansatz.training import Callback, GradientStep, Supervised, Trainer
from ansatz.training.run import Record, Run


class Memory(Callback):
    """Keeps the weights of every evaluation."""

    def __init__(self) -> None:
        self.weights: list[torch.Tensor] = []

    def on_evaluation(self, run: Run, record: Record) -> None:
        """After each evaluation."""
        assert isinstance(run.step, GradientStep)
        self.weights.append(flat(run.step.network))


def measure(generator: torch.Generator, *, rows: int = 30, patience: int = 20) -> Finding:
    """A network that overfits thirty noisy rows, stopped by its loss on validation rows."""

    def noisy(count: int) -> Batch:
        x = torch.randn(count, 10, generator=generator, dtype=torch.float64)
        noise = torch.randn(count, generator=generator, dtype=torch.float64)
        return Batch.of(x, x[:, 0] + noise)

    train, valid = noisy(rows), noisy(200)
    network = MLP(10, 1, widths=(50,), activation="tanh", generator=generator).double()
    likelihood = Normal(dispersion=1.0)
    rule = torch.optim.Adam(network.parameters(), lr=0.01)
    step = GradientStep(network, Supervised(likelihood).double(), rule)
    memory = Memory()
    history = Trainer(
        epochs=500, patience=patience, progress=0, callbacks=[memory], device="cpu", threads=1
    ).fit(step, TensorSource(train, rows), TensorSource(valid, 200, shuffle=False))
    after = flat(network)

    def loss(weights: torch.Tensor) -> float:
        torch.nn.utils.vector_to_parameters(weights, network.parameters())
        with torch.no_grad():
            return float(likelihood.loss(network(*valid.inputs), valid.target).mean())

    losses = np.array([loss(weights) for weights in memory.weights])
    best = int(losses.argmin())
    kept = loss(after)
    rounding = 2.0**-52 * 200 * float(losses.max())
    checks = [
        Check(
            "validation loss of the restored weights",
            kept,
            float(losses.min()),
            0.0,
            "the same weights give the same bits",
            wrong=Wrong("the last weights stay", measured=float(losses[-1])),
        ),
        Check(
            "largest difference of a weight from the best evaluation's",
            float((after - memory.weights[best]).abs().max()),
            0.0,
            0.0,
            "restored bit by bit",
            wrong=Wrong(
                "from the last evaluation's",
                measured=float((after - memory.weights[-1]).abs().max()),
            ),
        ),
        Check(
            "evaluations after the best one",
            len(losses) - 1 - best,
            patience,
            0,
            "whole numbers",
            wrong=Wrong("it stops at the first rise", predicted=1),
        ),
        Check(
            "the best loss that the trainer reports",
            float(history.best_loss or np.nan),
            float(losses.min()),
            rounding,
            "rounding: eps times the 200 terms of the mean",
        ),
    ]
    data = {"losses": losses, "best": best}
    table = Table(
        ["evaluation", "validation loss"],
        [[k, float(losses[k])] for k in sorted({0, best, len(losses) - 1})],
    )
    return Finding(checks, table, data)


def flat(network: torch.nn.Module) -> torch.Tensor:
    """All weights, copied."""
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().clone()


def draw(paper: Figure, finding: Finding) -> None:
    """The validation loss, the best of it and the end."""
    axes = paper.subplots()
    losses, best = finding.data["losses"], finding.data["best"]
    axes.plot(losses, color=INK, label="validation loss")
    axes.plot(best, losses[best], "o", color=MODEL, markersize=7, label="restored")
    last = len(losses) - 1
    axes.plot(last, losses[last], "s", color=LINEAR, markersize=6, label="where patience ended")
    axes.set(xlabel="epoch", ylabel="mean negative log-likelihood")
    axes.set_title("training goes on for a while, the best weights come back")
    axes.legend()


claim = Claim(
    id="early-stopping",
    title="Early stopping restores the best weights",
    statement=(
        "Training ends when the validation loss has not improved for a given number of "
        "evaluations, and restores the weights of the best evaluation, bit by bit."
    ),
    formula=(
        r"\hat\theta = \theta_{t^*}, \quad t^* = \arg\min_{t \le t_{\mathrm{end}}} "
        r"\ell_{\mathrm{valid}}(\theta_t), \qquad t_{\mathrm{end}} = t^* + \text{patience}"
    ),
    sources=("M157",),
    measure=measure,
    reference="Prechelt (1998), Early stopping - but when?",
    draw=draw,
)
