"""Entropy, cross-entropy and the divergence between them."""

import numpy as np
import torch
from scipy.stats import entropy
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.likelihoods import KL, Categorical


def measure(
    generator: torch.Generator, *, pairs: int = 300, classes: int = 6, draws: int = 20_000
) -> Finding:
    """Random p and q: the library's losses, scipy's sums, and the mean surprise of draws."""
    p, q = (random_distribution(pairs, classes, generator) for _ in range(2))
    divergence = KL().loss(q.log(), p)  # of the library
    other_way = KL().loss(p.log(), q)
    own = torch.as_tensor(entropy(p.numpy(), axis=1))
    cross = -(p * q.log()).sum(-1)
    size = float((cross.abs() + own.abs()).max())
    surprise = -q[0].log()[torch.multinomial(p[0], draws, replacement=True, generator=generator)]
    error = float(surprise.std() / draws**0.5)
    hard = Categorical().loss(q.log(), torch.arange(pairs) % classes)
    one_hot = torch.nn.functional.one_hot(torch.arange(pairs) % classes, classes).double()
    rounding = classes * EPS * size * 4
    because = f"rounding: sums of {classes} logarithms"
    checks = [
        Check(
            "largest |H(p, q) - H(p) - KL(p‖q)|",
            float((cross - own - divergence).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("KL(q‖p)", measured=float((cross - own - other_way).abs().max())),
        ),
        Check(
            "mean surprise of draws from p coded by q, H(p, q)",
            float(surprise.mean()),
            float(cross[0]),
            4 * error,
            f"4 standard errors over {draws} draws",
            wrong=Wrong("the entropy of p", predicted=float(own[0])),
        ),
        Check(
            "smallest KL over all pairs",
            float(divergence.min()),
            0.0,
            rounding,
            because,
            relation=">=",
            wrong=Wrong("the entropy of q less that of p", measured=float(_entropy_gap(p, q))),
        ),
        Check(
            "largest KL(p‖p)",
            float(KL().loss(p.log(), p).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("q shifted by 1%", measured=float(KL().loss(p.log(), shifted(p)).max())),
        ),
        Check(
            "largest |KL - cross-entropy| where p is a hard label",
            float((KL().loss(q.log(), one_hot) - hard).abs().max()),
            0.0,
            rounding,
            because,
        ),
    ]
    return Finding(checks)


def random_distribution(rows: int, classes: int, generator: torch.Generator) -> Tensor:
    """Probabilities uniform on the simplex, away from its edges by rounding only."""
    waits = -torch.rand(rows, classes, generator=generator, dtype=torch.float64).clamp(1e-12).log()
    return waits / waits.sum(-1, keepdim=True)


def _entropy_gap(p: Tensor, q: Tensor) -> float:
    return float((torch.special.entr(q).sum(-1) - torch.special.entr(p).sum(-1)).min())


def shifted(p: Tensor) -> Tensor:
    """A distribution close to p."""
    return 0.99 * p + 0.01 * p.flip(-1)


def draw(paper: Figure, finding: Finding) -> None:
    """Coins: the price of coding p = 0.3 by another q."""
    axes = paper.subplots()
    p, q = np.array([0.3, 0.7]), np.linspace(0.02, 0.98, 97)
    distributions = np.stack([q, 1 - q], 1)
    cross = -(p * np.log(distributions)).sum(1)
    axes.plot(q[::4], cross[::4] - entropy(p), "o", color=MODEL, label="H(p, q) − H(p)")
    line = KL().loss(torch.from_numpy(distributions).log(), torch.from_numpy(p).expand(len(q), 2))
    axes.plot(q, line, color=LINEAR, label="KL(p‖q)")
    reverse = entropy(distributions.T, p[:, None])
    axes.plot(q, reverse, "--", color=INK, lw=0.8, label="KL(q‖p): another number")
    axes.set(xlabel="q, the coin that the code expects (p = 0.3)", ylabel="nats per toss")
    axes.set_title("a wrong code costs KL(p‖q) more than the entropy, and nothing only at q = p")
    axes.legend(loc="upper center")


claim = Claim(
    id="cross-entropy",
    title="Cross-entropy is entropy plus divergence",
    statement=(
        "The cross-entropy of p and q is the entropy of p plus the divergence KL(p‖q), which is "
        "never negative and is zero only where the two distributions are equal. The cross-entropy "
        "is the mean surprise of draws from p under q. The divergence is not symmetric."
    ),
    formula=(
        r"H(p, q) = -\sum_k p_k \log q_k = H(p) + \mathrm{KL}(p \,\|\, q), \qquad "
        r"\mathrm{KL}(p \,\|\, q) \ge 0, \quad = 0 \iff p = q"
    ),
    sources=("M027",),
    measure=measure,
    reference="Cover and Thomas (2006), Elements of Information Theory, chapter 2.",
    full={"pairs": 5000, "classes": 50, "draws": 1_000_000},
    draw=draw,
)
