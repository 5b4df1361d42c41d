"""A student's gradient points from its probabilities to the teacher's."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.training.distillation import tempered_cross_entropy


def measure(
    generator: torch.Generator, *, classes: int = 5, temperature: float = 3.0, steps: int = 60
) -> Finding:
    """Finite differences of the library's loss, and descent on it and on the printed sum."""
    student = 2 * torch.randn(classes, generator=generator, dtype=torch.float64)
    teacher = 2 * torch.randn(classes, generator=generator, dtype=torch.float64)
    p, q = torch.softmax(teacher / temperature, -1), torch.softmax(student / temperature, -1)
    h = 1e-4
    numeric = torch.stack([
        (loss(student + h * e, teacher, temperature) - loss(student - h * e, teacher, temperature))
        / (2 * h)
        for e in torch.eye(classes, dtype=torch.float64)
    ])  # fmt: skip
    # The third derivative of log-sum-exp(r/T) is at most 1/T³ (of a Bernoulli's skew), over 6.
    step_error = h**2 / (6 * temperature**3) + EPS * 8 * float(student.abs().max()) / h
    down = descend(student, teacher, temperature, steps, sign=1.0)
    up = descend(student, teacher, temperature, steps, sign=-1.0)
    entropy = float(-(p * p.log()).sum())
    shifted = float(loss(teacher + 1.7, teacher, temperature))
    least = min(
        float(loss(teacher + 0.3 * d / d.norm(), teacher, temperature))
        for d in torch.randn(50, classes, generator=generator, dtype=torch.float64)
    )
    checks = [
        Check(
            "largest distance of the numerical gradient from (q - p)/T",
            float((numeric - (q - p) / temperature).abs().max()),
            0.0,
            step_error,
            "central differences: h²/6 times the third derivative, 1/T³ at most, and rounding / h",
            wrong=Wrong(
                "(p - q)/T, of the sum without minus",
                measured=float((numeric - (p - q) / temperature).abs().max()),
                erratum="E18",
            ),
        ),
        Check(
            "largest rise of the loss in a step of descent",
            float(np.diff(down).max()),
            0.0,
            8 * EPS * entropy,
            "rounding: the rate 1 is below 2T², so no step climbs",
            "<=",
            wrong=Wrong("descent on +Σ p log q", measured=float(np.diff(up).max()), erratum="E18"),
        ),
        Check(
            "loss of a student equal to the teacher plus a constant",
            shifted,
            entropy,
            16 * EPS * entropy * classes,
            "rounding: 16 eps times the classes",
            wrong=Wrong("the same logits at temperature 1", predicted=entropy_of(teacher)),
        ),
        Check(
            "the least of 50 other students' losses",
            least,
            entropy,
            0.0,
            "the teacher's entropy is the minimum",
            ">=",
            wrong=Wrong("without the minus", measured=-least),
        ),
    ]
    table = Table(
        ["class", "numerical", "(q - p)/T", "(p - q)/T"],
        [
            [k, float(numeric[k]), float((q - p)[k] / temperature), float((p - q)[k] / temperature)]
            for k in range(classes)
        ],
    )
    return Finding(checks, table, {"down": down, "up": up, "entropy": entropy})


def loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """The library's, of one row."""
    return tempered_cross_entropy(student, teacher, temperature)


def entropy_of(logits: Tensor) -> float:
    """Of a softmax."""
    return float(torch.distributions.Categorical(logits=logits).entropy())


def descend(
    student: Tensor, teacher: Tensor, temperature: float, steps: int, *, sign: float
) -> np.ndarray:
    """Cross-entropies under gradient descent with rate 1 on ``sign`` times the loss."""
    r = student.clone().requires_grad_()
    found = []
    for _ in range(steps + 1):
        value = loss(r, teacher, temperature)
        found.append(float(value.detach()))
        (gradient,) = torch.autograd.grad(sign * value, r)
        r = (r - gradient).detach().requires_grad_()
    return np.array(found)


def draw(paper: Figure, finding: Finding) -> None:
    """Cross-entropy on both ways."""
    axes = paper.subplots()
    data = finding.data
    axes.plot(data["down"], "o", color=MODEL, label="descent on −Σ p log q")
    axes.plot(data["up"], "s", color=LINEAR, label="descent on Σ p log q, as printed")
    axes.axhline(data["entropy"], color=INK, label="entropy of the teacher: the minimum")
    axes.set(xlabel="step", ylabel="cross-entropy, nats")
    axes.set_title("without its minus, the loss drives the student away from the teacher")
    axes.legend()


claim = Claim(
    id="distillation-gradient",
    title="The gradient of distillation is (q − p)/T",
    statement=(
        "The tempered cross-entropy −Σ p log q of teacher p and student q has gradient (q − p)/T "
        "with respect to the student's logits and is least where they equal the teacher's up to a "
        "constant. A common slip prints the sum without its minus, with the gradient (p − q)/T."
    ),
    formula=(
        r"\ell(r) = -\sum_k p_k \log q_k, \quad p = \mathrm{softmax}(t/T),\; "
        r"q = \mathrm{softmax}(r/T), \qquad \frac{\partial \ell}{\partial r} = \frac{q - p}{T}"
    ),
    sources=("M172", "E18"),
    measure=measure,
    reference="Hinton, Vinyals and Dean (2015), Distilling the knowledge in a neural network. https://arxiv.org/abs/1503.02531",
    full={"classes": 100, "steps": 1000},
    errata=(Erratum("E18", "ℓ = Σ p log q, gradient (p − q)/T", "ℓ = −Σ p log q, (q − p)/T"),),
    draw=draw,
)
