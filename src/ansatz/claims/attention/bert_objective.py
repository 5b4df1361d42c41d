"""BERT learns masked words and next sentences in the same step."""

from collections.abc import Callable

import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong


def measure(generator: torch.Generator, *, tokens: int = 40_000) -> Finding:
    """An encoder trained on the sum and in stages, and the shares of masked tokens."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, start = normal(32, 6), normal(6, 5)
    word_head, next_head = normal(5, 11), normal(5, 2)
    words = torch.randint(11, (32,), generator=generator)
    follows = torch.randint(2, (32,), generator=generator)

    def losses(encoder: Tensor) -> Tensor:
        """Of words and of sentences, ``(2,)``, each with half of a small ridge."""
        hidden = torch.tanh(x @ encoder)
        both = (
            cross_entropy(hidden @ word_head, words),
            cross_entropy(hidden @ next_head, follows),
        )
        return torch.stack(both) + 0.005 * encoder.square().sum()

    def train(encoder: Tensor, shares: tuple[float, float]) -> Tensor:
        weights = torch.tensor(shares, dtype=torch.float64)
        return minimize(lambda theta: losses(theta) @ weights, encoder)

    joint = train(start, (1, 1))
    staged = train(train(start, (1, 0)), (0, 1))
    slopes = [steepness(lambda theta: losses(theta).sum(), end) for end in (joint, staged)]
    shares, errors, picked = mask(tokens, generator)
    deviation = max(abs(s - p) / e for (s, p), e in zip(shares, errors, strict=True))
    checks = [
        Check(
            "steepest slope of the summed loss at the end of joint training",
            slopes[0],
            0.0,
            SETTLED,
            "where the minimiser stops",
            wrong=Wrong(
                "stages: first masked words, later sentences", measured=slopes[1], erratum="E60"
            ),
        ),
        Check(
            "masked-word loss after joint training minus after stages",
            float(losses(joint)[0] - losses(staged)[0]),
            0.0,
            0.0,
            "the second stage forgets the words",
            "<=",
        ),
        Check(
            "largest deviation from 80, 10 and 10 per cent, in standard errors",
            deviation,
            0.0,
            float(stats.norm.isf(1e-5 / 6)),
            "normal quantile at 1e-5 for three shares",
            wrong=Wrong("all of them masked", measured=(1 - shares[0][0]) / errors[0]),
        ),
        Check(
            "share of tokens to be predicted",
            picked,
            0.15,
            4.5 * (0.15 * 0.85 / tokens) ** 0.5,
            "4.5 standard errors",
        ),
    ]
    table = Table(["becomes", "measured", "prescribed"], [
        [name, share, p]
        for name, (share, p) in zip(("[MASK]", "another", "itself"), shares, strict=True)
    ])  # fmt: skip
    return Finding(checks, table)


SETTLED = 1e-6  # the largest slope at which a minimiser stops


def minimize(loss: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """Follows L-BFGS to where no slope is steeper than 1e-7."""
    theta = start.clone().requires_grad_()
    rule = torch.optim.LBFGS(
        [theta],
        max_iter=2_000,
        tolerance_grad=1e-7,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        rule.zero_grad()
        value = loss(theta)
        value.backward()
        return value

    rule.step(closure)
    return theta.detach()


def steepness(loss: Callable[[Tensor], Tensor], at: Tensor) -> float:
    """The largest entry of the gradient."""
    theta = at.clone().requires_grad_()
    return float(torch.autograd.grad(loss(theta), theta)[0].abs().max())


def mask(
    tokens: int, generator: torch.Generator
) -> tuple[list[tuple[float, float]], list[float], float]:
    """15 % are picked; of these 80 % become [MASK], 10 % a random word, 10 % stay."""
    words = torch.randint(1, 1_000_000_000, (tokens,), generator=generator)
    picked = torch.rand(tokens, generator=generator) < 0.15
    fate = torch.rand(tokens, generator=generator)
    new = words.clone()
    new[picked & (fate < 0.8)] = 0  # [MASK]
    other = picked & (fate >= 0.8) & (fate < 0.9)
    new[other] = torch.randint(1, 1_000_000_000, (int(other.sum()),), generator=generator)
    total = int(picked.sum())
    found = [
        int((new[picked] == 0).sum()),
        int(((new != words) & (new != 0))[picked].sum()),
        int((new == words)[picked].sum()),
    ]
    prescribed = [0.8, 0.1, 0.1]
    errors = [(p * (1 - p) / total) ** 0.5 for p in prescribed]
    shares = [(n / total, p) for n, p in zip(found, prescribed, strict=True)]
    return shares, errors, total / tokens


claim = Claim(
    id="bert-objective",
    title="BERT's two objectives are one loss",
    statement=(
        "BERT is trained on the sum of the masked-word loss and the next-sentence loss (appendix "
        "A.2 of the paper), so that training ends where the sum is least. The two are often called "
        "stages of training, which would end where the second is least and the first forgotten. Of "
        "the 15 % of tokens to predict, 80 % are masked, 10 % replaced and 10 % left as they are."
    ),
    formula=(
        r"\nabla \ell = \nabla \ell_{\mathrm{words}} + \nabla \ell_{\mathrm{next}}"
        r"\quad \text{in each step}"
    ),
    sources=("E60", "M269", "M270", "M271"),
    measure=measure,
    reference="Devlin et al. (2019), BERT, appendix A.2. https://arxiv.org/abs/1810.04805",
    full={"tokens": 1_000_000},
    errata=(Erratum("E60", "two stages of training", "one loss, the sum of both"),),
)
