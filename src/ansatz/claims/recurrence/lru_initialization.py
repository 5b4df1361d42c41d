"""The eigenvalues of a random matrix fill a disk evenly, and a recurrence may start alike."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, size: int = 100, matrices: int = 10) -> Finding:
    """Moduli of eigenvalues, and the linearity of an LRU, which a minGRU lacks."""
    draws = torch.randn(matrices, size, size, generator=generator, dtype=torch.float64).numpy()
    moduli = np.abs(np.linalg.eigvals(draws / size**0.5))  # variance 1/n, as Glorot's
    means = moduli.mean(1)
    dice = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    r = np.sqrt(dice.random(100_000))
    nu = np.log(-np.log(r))
    x, y = dice.standard_normal((2, 30, 3))
    lru = [recur(each) for each in (x, y, x + y)]
    gru = [min_gru(each) for each in (x, y, x + y)]
    error = 4 * float(means.std(ddof=1)) / matrices**0.5
    checks = [
        Check(
            "mean modulus of the eigenvalues of a Glorot matrix",
            float(means.mean()),
            2 / 3,
            error + (2 / (np.pi * size)) ** 0.5 / 6,
            "4 standard errors over matrices, and the √(2n/π) real eigenvalues, whose mean is 1/2",
            wrong=Wrong("r itself uniform", predicted=0.5, erratum="E53"),
        ),
        Check(
            "mean modulus with r² uniform, through ν = log(-log r)",
            float(np.exp(-np.exp(nu)).mean()),
            2 / 3,
            4 * (1 / 18) ** 0.5 / 100_000**0.5,
            "4 standard errors; the variance of r is 1/2 - 4/9",
            wrong=Wrong("r itself uniform", predicted=0.5, erratum="E53"),
        ),
        Check(
            "largest error of linearity of an LRU's state",
            float(np.abs(lru[0] + lru[1] - lru[2]).max()),
            0.0,
            256 * 2.0**-52 * float(np.abs(lru[2]).max() + 10),
            "rounding: 256 eps over 30 steps",
            wrong=Wrong(
                "a minGRU under that name",
                measured=float(np.abs(gru[0] + gru[1] - gru[2]).max()),
                erratum="E53",
            ),
        ),
        Check(
            "largest difference of a minGRU's loop from its prefix scan",
            float(np.abs(gru[0] - scan(x)).max()),
            0.0,
            256 * 2.0**-52 * float(np.abs(gru[0]).max() + 1),
            "rounding: 256 eps over 30 steps",
        ),
    ]
    return Finding(checks, data={"moduli": moduli.ravel()})


def recur(x: np.ndarray) -> np.ndarray:
    """ζ ← λ ζ + x with |λ| < 1 for any ν: the linear recurrent unit, diagonal."""
    eigenvalue = np.exp(-np.exp([-1.0, 0.0, 0.5]) + 1j * np.array([0.3, 1.0, 2.0]))
    state, found = np.zeros(3, dtype=complex), []
    for each in x:
        state = eigenvalue * state + each
        found.append(state)
    return np.array(found)


def gate(x: np.ndarray) -> np.ndarray:
    """σ(x), feature by feature."""
    found: np.ndarray = 1 / (1 + np.exp(-x))
    return found


def min_gru(x: np.ndarray) -> np.ndarray:
    """z ← σ(x) ⊙ z + (1 - σ(x)) ⊙ 2x: its factor depends on the input."""
    state, found = np.zeros(3), []
    for each in x:
        state = gate(each) * state + (1 - gate(each)) * 2 * each
        found.append(state)
    return np.array(found)


def scan(x: np.ndarray) -> np.ndarray:
    """The same by pairs (a, b), combined by (a, b)∘(c, d) = (ca, cb + d) at doubling distances."""
    a, b = gate(x), (1 - gate(x)) * 2 * x
    step = 1
    while step < len(x):
        new_a, new_b = a.copy(), b.copy()
        new_a[step:] = a[step:] * a[:-step]
        new_b[step:] = a[step:] * b[:-step] + b[step:]
        a, b, step = new_a, new_b, 2 * step
    return b


def draw(paper: Figure, finding: Finding) -> None:
    """The distribution of the moduli."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, moduli = paper.subplots(), finding.data["moduli"]
    edges = np.linspace(0, 1.2, 25).tolist()
    axes.hist(moduli, edges, density=True, color=MODEL, alpha=0.35, label="eigenvalues")
    axes.plot([0, 1, 1], [0, 2, 0], color=MODEL, label="2r: r² uniform, an even disk")
    axes.plot([0, 0, 1, 1], [0, 1, 1, 0], "--", color=LINEAR, lw=1, label="r uniform (printed)")
    axes.set(xlabel="modulus r of an eigenvalue", ylabel="density")
    axes.set_title("eigenvalues of a Glorot matrix fill the disk evenly: r² is uniform")
    axes.legend(loc="upper left")


claim = Claim(
    id="lru-initialization",
    title="A linear recurrent unit that starts like a Glorot matrix",
    statement=(
        "The eigenvalues of a random matrix with variance 1/n fill the unit disk evenly, so a "
        "diagonal recurrence starts alike if r², not r as often printed, is uniform: the mean "
        "modulus is 2/3. The minGRU is sometimes called an LRU: an LRU is linear in its input, a "
        "minGRU is not, though a prefix scan computes both."
    ),
    formula=(
        r"\lambda = \exp(-e^{\nu} + i \varphi), \quad r = |\lambda| = e^{-e^\nu} \in (0, 1), \quad "
        r"r^2 \sim U(0, 1) \;\Rightarrow\; \mathbb{E} r = \tfrac23"
    ),
    sources=("E53", "M252", "M253", "M254", "M255"),
    measure=measure,
    reference=(
        "Orvieto et al. (2023), Resurrecting recurrent neural networks for long sequences, section "
        "3.2.1. https://arxiv.org/abs/2303.06349"
    ),
    full={"size": 400, "matrices": 50},
    errata=(
        Erratum(
            "E53",
            "LRU: z = σ(Gx) ⊙ z + (1-σ) ⊙ Vx; r uniform",
            "that is the minGRU; LRU: ζ = Λζ + Cx with r² uniform",
        ),
    ),
    draw=draw,
)
