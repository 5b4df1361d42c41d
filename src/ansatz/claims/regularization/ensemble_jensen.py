"""A mixture of models scores at least as well as its members do on average."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.data import load
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.likelihoods import Categorical
from ansatz.networks import MLP


def measure(
    generator: torch.Generator, *, members: int = 8, steps: int = 40, width: int = 16
) -> Finding:
    """Networks on bootstraps of half of the irises, scored on the other half."""
    x, y = irises()
    order = torch.randperm(len(x), generator=generator)
    train, test = order[: len(x) // 2], order[len(x) // 2 :]
    likelihood = Categorical()
    logs = []
    for _ in range(members):
        network = MLP(x.shape[1], 3, widths=(width,), generator=generator).double()
        rows = train[torch.randint(len(train), (len(train),), generator=generator)]  # a bootstrap
        rule = torch.optim.Adam(network.parameters(), lr=0.03)
        for _ in range(steps):
            rule.zero_grad()
            likelihood.loss(network(x[rows]), y[rows]).mean().backward()
            rule.step()
        logs.append(torch.log_softmax(network(x[test]), -1).detach())
    stacked = torch.stack(logs)  # (members, rows, classes)
    each = -stacked.gather(-1, y[test].expand(members, -1).unsqueeze(-1)).squeeze(-1)
    mixed = -(torch.logsumexp(-each, 0) - np.log(members))  # of the mean probability
    wrongs = (stacked.argmax(-1) != y[test]).double()  # (members, rows)
    vote = (stacked.exp().mean(0).argmax(-1) != y[test]).double()
    rounding = 16 * EPS * float(each.max())
    checks = [
        Check(
            "largest excess, over rows, of the mixture's NLL over the members' mean",
            float((mixed - each.mean(0)).max()),
            0.0,
            rounding,
            "rounding: 16 eps times the largest loss",
            "<=",
            wrong=Wrong(
                "over the best member of the row", measured=float((mixed - each.amin(0)).max())
            ),
        ),
        Check(
            "the same of the whole test set",
            float(mixed.mean()),
            float(each.mean()),
            rounding,
            "rounding: 16 eps times the largest loss",
            "<=",
            wrong=Wrong("the least loss of any member on any row", predicted=float(each.min())),
        ),
        Check(
            "largest excess of the NLL of their normalised geometric mean",
            float((geometric(stacked, y[test]) - each.mean(0)).max()),
            0.0,
            rounding,
            "rounding: 16 eps times the largest loss",
            "<=",
            wrong=Wrong(
                "for errors, which are not convex",
                measured=float((vote - wrongs.mean(0)).max()),
            ),
        ),
    ]
    table = Table(
        ["model", "test NLL", "test error"],
        [
            *([f"member {k + 1}", *scores(each[k], wrongs[k])] for k in range(members)),
            ["mixture", *scores(mixed, vote)],
        ],
    )  # fmt: skip
    data = {"each": each.mean(0).numpy(), "mixed": mixed.numpy(), "best": each.amin(0).numpy()}
    return Finding(checks, table, data)


def irises() -> tuple[torch.Tensor, torch.Tensor]:
    """Length and width of the sepals of 150 irises, standardised, and their species."""
    dataset = load("iris")
    columns = dataset.frame.drop(columns=dataset.target).to_numpy(dtype=np.float64, copy=True)
    x = torch.as_tensor(columns)[:, :2]
    codes = np.unique(dataset.frame[dataset.target].to_numpy(), return_inverse=True)[1]
    return (x - x.mean(0)) / x.std(0), torch.as_tensor(codes)


def scores(loss: torch.Tensor, wrong: torch.Tensor) -> tuple[float, float]:
    """Means over rows."""
    return float(loss.mean()), float(wrong.mean())


def geometric(logs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """NLL of the normalised geometric mean of the members' probabilities."""
    return -torch.log_softmax(logs.mean(0), -1).gather(-1, y.unsqueeze(-1)).squeeze(-1)


def draw(paper: Figure, finding: Finding) -> None:
    """Row by row: mixture against mean member."""
    axes = paper.subplots()
    each, mixed, best = (finding.data[key] for key in ("each", "mixed", "best"))
    top = each.max() * 1.3
    axes.plot([0.03, top], [0.03, top], color=INK, label="equal")
    axes.plot(each, best, "x", color=LINEAR, markersize=4, label="best member of the row")
    axes.plot(each, mixed, "o", color=MODEL, markersize=4, label="mixture")
    axes.set(xlim=(0.03, top), ylim=(0.01, top))
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="mean NLL of the members, nats", ylabel="NLL, nats")
    axes.set_title("flower by flower the mixture is below the diagonal: Jensen's inequality")
    axes.legend()


claim = Claim(
    id="ensemble-jensen",
    title="The mixture beats the average member",
    statement=(
        "On every row, the negative log-likelihood of the mean of the members' probabilities is at "
        "most the mean of theirs, because −log is convex; so it is for their normalised geometric "
        "mean. The mixture need not beat the best member, and the same is not true of error rates, "
        "which are not convex."
    ),
    formula=(
        r"-\log \frac1S \sum_{s=1}^S p_s(y \mid x) \le \frac1S \sum_{s=1}^S -\log p_s(y \mid x)"
    ),
    sources=("M175",),
    measure=measure,
    reference="Lakshminarayanan, Pritzel and Blundell (2017), Deep ensembles. https://arxiv.org/abs/1612.01474",
    full={"members": 20, "steps": 200, "width": 64},
    draw=draw,
)
