"""Label smoothing is training on labels that a confusion matrix has corrupted."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.likelihoods import Categorical, CrossEntropy
from ansatz.optim import Newton


def measure(
    generator: torch.Generator, *, classes: int = 4, draws: int = 20_000, smoothing: float = 0.1
) -> Finding:
    """The smoothed loss beside corrupted labels, its minimiser, and its two special cases."""
    rows = torch.rand(classes, classes, generator=generator, dtype=torch.float64)
    rows = (0.4 * 256 * rows / rows.sum(1, keepdim=True)).ceil() / 256  # short binary fractions
    confusion = rows + torch.diag(1 - rows.sum(1))  # each row sums to 1 in any precision
    smooth = CrossEntropy(label_smoothing=confusion.tolist())
    raw = 2 * torch.randn(1, classes, generator=generator, dtype=torch.float64)
    y = torch.arange(classes)
    loss = smooth.loss(raw.expand(classes, -1), y)
    worst, uniform_worst = 0.0, 0.0
    uniform = nn.functional.cross_entropy(
        raw.expand(classes, -1), y, label_smoothing=0.4, reduction="none"
    )
    for k in range(classes):  # labels redrawn from row k of the matrix
        drawn = torch.multinomial(confusion[k], draws, replacement=True, generator=generator)
        hard = Categorical().loss(raw.expand(draws, -1), drawn)
        error = float(hard.std() / draws**0.5)
        worst = max(worst, abs(float(hard.mean() - loss[k])) / error)
        uniform_worst = max(uniform_worst, abs(float(hard.mean() - uniform[k])) / error)
    found = minimiser(smooth, classes)
    hard_labels = CrossEntropy(label_smoothing=torch.eye(classes).tolist())
    hard_gap = hard_labels.loss(raw.expand(classes, -1), y) - Categorical().loss(
        raw.expand(classes, -1), y
    )
    flat = torch.full((classes, classes), smoothing / classes, dtype=torch.float64)
    flat += (1 - smoothing) * torch.eye(classes, dtype=torch.float64)
    torchs = nn.functional.cross_entropy(
        raw.expand(classes, -1), y, label_smoothing=smoothing, reduction="none"
    )
    plain = Categorical().loss(raw.expand(classes, -1), y)
    ours = -(flat * torch.log_softmax(raw, -1)).sum(-1)
    named = CrossEntropy(label_smoothing=smoothing).loss(raw.expand(classes, -1), y)
    size = 32 * EPS * classes * float(raw.abs().max())
    checks = [
        Check(
            "largest distance from the mean loss of redrawn labels, in standard errors",
            worst,
            0.0,
            4.5,
            f"4.5 standard errors: {classes} comparisons of {draws} draws",
            wrong=Wrong("torch's uniform smoothing of the same mass", measured=uniform_worst),
        ),
        Check(
            "largest distance of the best predicted probabilities from the rows of Π",
            float((found - confusion).abs().max()),
            0.0,
            64 * EPS * float(1 / confusion.min()),
            "rounding: 64 eps over the smallest probability, the least curvature",
            wrong=Wrong(
                "from the hard labels", measured=float((found - torch.eye(classes)).abs().max())
            ),
        ),
        Check(
            "largest distance from hard labels at Π = I",
            float(hard_gap.abs().max()),
            0.0,
            size,
            "rounding: 32 eps times the classes and the size of the logits",
            wrong=Wrong("a matrix that is not I", measured=float((loss - plain).abs().max())),
        ),
        Check(
            "largest distance of torch's loss, and ours by a number, from Π = (1 - ε) I + ε/K",
            float(torch.stack([torchs - ours, named - ours]).abs().max()),
            0.0,
            size,
            "rounding: 32 eps times the classes and the size of the logits",
        ),
    ]  # fmt: skip
    table = Table(
        ["label", *(f"Π, class {k}" for k in range(classes)), "loss"],
        [[k, *map(float, confusion[k]), float(loss[k])] for k in range(classes)],
    )
    return Finding(checks, table, {"Π": confusion.numpy(), "found": found.numpy()})


def minimiser(likelihood: CrossEntropy, classes: int) -> Tensor:
    """Probabilities with the least smoothed loss, one row per label, by Newton's method."""
    logits = nn.Parameter(torch.zeros(classes, classes, dtype=torch.float64))
    rule = Newton([logits])
    for _ in range(12):
        rule.step(lambda: likelihood.loss(logits, torch.arange(classes)).sum())
    return torch.softmax(logits.detach(), -1)


def draw(paper: Figure, finding: Finding) -> None:
    """Learned probabilities beside the rows of the matrix."""
    matrix, found = finding.data["Π"], finding.data["found"]
    panels = paper.subplots(1, len(matrix), sharey=True)
    for k, axes in enumerate(panels):
        axes.bar(range(len(matrix)), matrix[k], color=INK, alpha=0.35, label="row of Π")
        axes.plot(range(len(matrix)), found[k], "o", color=MODEL, markersize=6, label="learned")
        axes.plot(k, 1.0, "x", color=LINEAR, markersize=7, label="hard label")
        axes.set(xlabel=f"class, label {k}", xticks=range(len(matrix)))
    panels[0].set_ylabel("probability")
    paper.suptitle("the network learns the row of Π of the label", x=0.01, ha="left", fontsize=9.5)
    panels[0].legend(loc="center right", fontsize=8)


claim = Claim(
    id="label-smoothing",
    title="Label smoothing is a confusion matrix",
    statement=(
        "Smoothing a label y into the row y of a confusion matrix Π amounts, in the mean, to "
        "drawing the label again from that row; the best prediction is the row. Π = I gives hard "
        "labels, and (1 − ε)I + ε/K the uniform smoothing that libraries offer."
    ),
    formula=(
        r"\ell(\eta, y) = -\sum_k \Pi_{yk} \log \mathrm{softmax}(\eta)_k = "
        r"\mathrm{E}_{k \sim \Pi_y} [-\log \mathrm{softmax}(\eta)_k]"
    ),
    sources=("M171",),
    measure=measure,
    reference="Szegedy et al. (2016), Rethinking the Inception architecture, section 7. https://arxiv.org/abs/1512.00567",
    full={"draws": 1_000_000},
    draw=draw,
)
