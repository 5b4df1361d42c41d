"""BERT learns masked words and next sentences in the same step."""

import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong


def measure(generator: torch.Generator, *, tokens: int = 40_000) -> Finding:
    """The gradient of the summed loss in a shared encoder, and the shares of masked tokens."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, encoder = normal(32, 6), normal(6, 5).requires_grad_()
    word_head, next_head = normal(5, 11), normal(5, 2)
    words = torch.randint(11, (32,), generator=generator)
    follows = torch.randint(2, (32,), generator=generator)

    def losses() -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(x @ encoder)
        return cross_entropy(hidden @ word_head, words), cross_entropy(hidden @ next_head, follows)

    word, sentence = losses()
    (together,) = torch.autograd.grad(word + sentence, encoder)
    word, sentence = losses()
    (first,) = torch.autograd.grad(word, encoder, retain_graph=True)
    (second,) = torch.autograd.grad(sentence, encoder)
    shares, errors, picked = mask(tokens, generator)
    deviation = max(abs(s - p) / e for (s, p), e in zip(shares, errors, strict=True))
    checks = [
        Check(
            "largest difference of the step's gradient from the sum of both",
            float((together - first - second).abs().max()),
            0.0,
            64 * 2.0**-52 * float(first.abs().max() + second.abs().max()),
            "rounding: 64 eps for sums over 32 rows",
            wrong=Wrong(
                "stages: first masked words, later sentences",
                measured=float((first - together).abs().max()),
                erratum="E60",
            ),
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
        "A.2 of the paper), so that every step follows both gradients; the two are often called "
        "stages of training. Of the 15 % of tokens to predict, 80 % are masked, 10 % replaced and "
        "10 % left as they are."
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
