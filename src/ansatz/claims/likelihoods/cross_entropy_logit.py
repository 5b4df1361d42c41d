"""The binary cross-entropy of a logit: both terms need the sigmoid."""

import torch
from scipy import stats
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.likelihoods import Bernoulli


def measure(generator: torch.Generator, *, logits: int = 101) -> Finding:
    """The probabilities of 0 and 1 that a loss implies, beside scipy's distribution."""
    f = torch.linspace(-6, 0.99, logits, dtype=torch.float64)  # below 1, where log(1 - f) exists
    no, yes = torch.zeros_like(f), torch.ones_like(f)
    likelihood = Bernoulli()
    loss = {"no": likelihood.loss(f[:, None], no), "yes": likelihood.loss(f[:, None], yes)}
    exact = torch.as_tensor(stats.bernoulli.logpmf(0, torch.sigmoid(f).numpy()))
    total = (-loss["no"]).exp() + (-loss["yes"]).exp()
    printed_total = (-printed(f, no)).exp() + (-printed(f, yes)).exp()
    logistic = -torch.log(torch.sigmoid((2 * no - 1) * f))
    rounding = 16 * 2.0**-52
    x = torch.randn(logits, 3, generator=generator, dtype=torch.float64)
    y = torch.randint(2, (logits,), generator=generator).double()
    w = torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(likelihood.loss((x @ w)[:, None], y).sum(), w)
    formula = ((torch.sigmoid(x @ w) - y) @ x).detach()
    checks = [
        Check(
            "largest |P(0) + P(1) - 1| over logits",
            float((total - 1).abs().max()),
            0.0,
            rounding,
            "rounding: 16 eps for two exponentials and a sum",
            wrong=Wrong(
                "second term log(1-f)",
                measured=float((printed_total - 1).abs().max()),
                erratum="E20",
            ),
        ),
        Check(
            "largest difference of the loss at y = 0 from scipy's",
            float((loss["no"] + exact).abs().max()),
            0.0,
            float(rounding * (1 + f.abs().exp()).max()),
            "rounding of 1 - σ(f), magnified by 1 / (1 - σ(f))",
            wrong=Wrong(
                "second term log(1-f)",
                measured=float((printed(f, no) + exact).abs().max()),
                erratum="E20",
            ),
        ),
        Check(
            "largest difference from the logistic loss -log σ((2y-1)f)",
            float((loss["no"] - logistic).abs().max()),
            0.0,
            rounding * 6,
            "rounding: 16 eps times the largest loss",
        ),
        Check(
            "largest difference of the gradient in w from Σ (σ(wᵀx) - y) x",
            float((slope - formula).abs().max()),
            0.0,
            logits * rounding * float(x.abs().max()),
            "rounding of a sum of that many rows",
            wrong=Wrong("the opposite sign", measured=float((slope + formula).abs().max())),
        ),
        Check(
            "the loss at f = 2, y = 0 is a number",
            float(likelihood.loss(yes[:1, None] * 2, no[:1]).isfinite()),
            1.0,
            0.0,
            "yes or no",
            wrong=Wrong(
                "log(1-f) of a logit above 1",
                measured=float(printed(yes[:1] * 2, no[:1]).isfinite()),
                erratum="E20",
            ),
        ),
    ]
    data = {"f": f.numpy(), "right": total.numpy(), "printed": printed_total.numpy()}
    return Finding(checks, data=data)


def printed(f: Tensor, y: Tensor) -> Tensor:
    """As printed: the second logarithm of f itself."""
    return -torch.where(y == 1, torch.log(torch.sigmoid(f)), torch.log(1 - f))


def draw(paper: Figure, finding: Finding) -> None:
    """The total probability over the logit."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["f"], data["right"], color=MODEL, label="log(1 - σ(f))")
    axes.plot(data["f"], data["printed"], "--", color=LINEAR, lw=1, label="printed: log(1 - f)")
    axes.set(xlabel="logit f", ylabel="P(0) + P(1)", ylim=(0, None))
    axes.set_title("the loss is a likelihood only if both terms have the sigmoid")
    axes.legend()


claim = Claim(
    id="cross-entropy-logit",
    title="Binary cross-entropy of a logit",
    statement=(
        "The two probabilities that the binary cross-entropy of a logit implies add up to 1, and "
        "the loss is the logistic one, with the gradient (σ(wᵀx) - y) x. A common slip has log(1 - "
        "f) without the sigmoid, which does not add up to 1 and does not exist for f > 1."
    ),
    formula=(r"\ell = -y \log \sigma(f) - (1 - y) \log(1 - \sigma(f)) = -\log \sigma((2y - 1) f)"),
    sources=("E20", "M090", "M096", "M097"),
    measure=measure,
    reference="Bishop (2006), Pattern Recognition and Machine Learning, eq. 4.90.",
    full={"logits": 2_001},
    errata=(Erratum("E20", "log(1 - f)", "log(1 - σ(f))"),),
    draw=draw,
)
