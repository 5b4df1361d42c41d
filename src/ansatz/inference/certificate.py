"""Bounds on the error of a random classifier."""

import math
from typing import Any, NamedTuple

import torch
from scipy.stats import beta

from ansatz import inference
from ansatz.errors import DataError, UsageError
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job
from ansatz.fitting.replay import replay
from ansatz.seeds import generator
from ansatz.theory import pac_bayes_risk

SCALES = [math.exp(-k / 2) for k in range(16)]  # of priors, chosen after seeing the rows
SIMULATED = 0.1  # of the level, for the error of the simulation


class Certificate(NamedTuple):
    """A bound on the error of a random classifier.

    Example:
        >>> from ansatz.inference.certificate import Certificate
        >>> round(Certificate(0.02, 5.0, 1_000, 10_000, level=0.05).bound, 3)
        0.049
    """

    error: float  # of simulated draws on the bound's rows
    kl: float
    rows: int
    draws: int
    level: float = 0.05
    test_errors: int | None = None  # one draw of the weights for each test row
    test_rows: int | None = None

    @property
    def bound(self) -> float:
        """The error, at most, with probability 1 - level."""
        simulated = SIMULATED * self.level
        risk = _inverse(self.error, math.log(1 / simulated) / self.draws)
        level = (self.level - simulated) / len(SCALES)
        return pac_bayes_risk(risk, self.kl, self.rows, level)

    @property
    def test_bound(self) -> float | None:
        """Clopper and Pearson's upper limit from the test rows; None without any."""
        k, n = self.test_errors, self.test_rows
        if not n or k is None:
            return None
        return 1.0 if k == n else float(beta.ppf(1 - self.level, k + 1, n - k))

    def sentence(self) -> str:
        """The bound in words."""
        return (
            f"With probability {1 - self.level:g} over the rows, the random classifier errs on at "
            f"most {self.bound:.2%} of new rows like these (PAC-Bayes; {self.error:.2%} on "
            f"{self.rows:,} rows, KL {self.kl:.1f} nats). It is about the share of wrong classes, "
            "and about weights drawn anew for every row, not about their mean."
        )


def bound(
    model: Any, data: Any = None, *, level: float = 0.05, prior_share: float | None = None
) -> Certificate:
    """Bounds the error of the random classifier that a model, or one fitted like it, is.

    A model of inference ``pac_bayes`` has its bound in its record. For another classifier one is
    fitted to the same training rows, with the same network.

    Args:
        model: a model's folder, a ``Fit``, an estimator or a ``Model``.
        data: the table of the fit, where it moved or was in memory.
        level: the probability that the bound fails.
        prior_share: of the training rows, on which the prior is learned; a half.

    Example:
        >>> import ansatz
        >>> options = {"epochs": 3, "widths": (8,)}
        >>> fit = ansatz.fit("breast-cancer", inference="pac_bayes", options=options)
        >>> found = ansatz.bound(fit, level=0.1)
        >>> found.error < found.bound < 1
        True

    References:
        Maurer (2004), A note on the PAC Bayesian theorem. https://arxiv.org/abs/cs/0411099
    """
    if not 0 < level < 1:
        raise UsageError(f"level must be in (0, 1), got {level}.")
    read = replay(model, data)
    fitted = read.model
    state = getattr(fitted.posterior, "state", {})
    used = fitted.task.settings.options.get("prior_share") or 0.5
    if "certificate" not in state or (prior_share is not None and prior_share != used):
        if read.problem is None:
            raise DataError("no rows left for a bound: the model's training rows are not known.")
        options = {
            **fitted.task.settings.options,
            "prior_share": used if prior_share is None else prior_share,
        }
        name = next(n for n in inference.names() if _certifies(n))
        settings = fitted.task.settings.change(inference=name, options=options)
        task = fitted.task._replace(inference=inference.create(name), settings=settings)
        fitted = fit_model(task, read.learn)
        state = fitted.posterior.state  # type: ignore[attr-defined]
    errors, count = _test_errors(fitted, read.test)
    return Certificate(**state["certificate"], level=level, test_errors=errors, test_rows=count)


def _certifies(name: str) -> bool:
    return bool(getattr(inference.registry.get(name), "certifies", False))


def _test_errors(model: Any, test: Job) -> tuple[int | None, int | None]:
    """Errors on the test rows of one draw of the weights for each."""
    if not len(test.y):
        return None, None
    parts = model.posterior.components(test.rows, test.offset)
    kinds = torch.stack([each.likelihood.point(each.raw).round() for _, each in parts])  # (S, N)
    which = torch.randint(len(kinds), (len(test.y),), generator=generator(0, "test"))
    drawn = kinds[which, torch.arange(len(test.y))]
    if parts[0][1].raw.shape[-1] == 1:
        drawn = (torch.stack([each.raw[:, 0] for _, each in parts]) > 0).double()[
            which, torch.arange(len(test.y))
        ]
    return int((drawn.long() != test.y.long()).sum()), len(test.y)


def _inverse(p: float, budget: float) -> float:
    """The largest r with kl(p || r) <= budget."""
    low, high = p, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        value = (p * math.log(p / middle) if p > 0 else 0.0) + (
            (1 - p) * math.log((1 - p) / (1 - middle)) if middle < 1 and p < 1 else 0.0
        )
        low, high = (middle, high) if value <= budget else (low, middle)
    return high
