"""Compares likelihoods of y on a table, by small networks or linear models."""

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import rankdata
from torch import Tensor, nn

from ansatz import optim
from ansatz.data import Batch, Preprocessor, TensorSource
from ansatz.data.batch import map_tensors, take_rows
from ansatz.fitting.job import Job, take
from ansatz.fitting.out_of_fold import Folds, log_scores, require_finite
from ansatz.fitting.recipe import FEW, SMALL, Recipe, needs_double
from ansatz.fitting.training import build_network, build_objective, build_step
from ansatz.likelihoods import Likelihood, Normal
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.structures.vector.linear_model import fit_linear_model
from ansatz.structures.vector.rows import TableRows
from ansatz.training.run import Averaging

# Dropout, averaged weights and a rate that falls to 0 make scores higher than further steps do,
# and less a matter of luck: two likelihoods that are nearly one must come out alike.
FEATURES = Recipe(
    widths=(64, 64),
    dropout=0.1,
    batch_size=128,
    steps=300,
    learning_rate=2e-2,
    evaluations=15,
    patience=5,
)
LIKELIHOOD = FEATURES.model_copy(
    update={"steps": 160, "learning_rate": 1.5e-2, "evaluations": 16, "patience": 6}
)
ALL_LEVELS = 2**31  # no level is embedded: indicators keep the network plain, and plain is fast


class FoldNetworks:
    """Small, quickly trained networks that score likelihoods on held-out rows.

    What is not linear in x must not look like dispersion, so that no straight line will do. Hidden
    layers that know x are learned once per fold, by a normal distribution for the normal scores of
    y, which are alike whatever the likelihood of y is: mean and scale of a rank favour none of
    them. Each likelihood then starts from these layers and a fresh output, and trains all of it for
    at most 160 steps.

    The networks of all folds train side by side. The number of steps with the best total score is
    taken, one for all folds, so that the choice among 16 flatters no likelihood.
    """

    def __init__(self, job: Job, folds: Folds, *, seed: int) -> None:
        self._job, self._folds, self._seed = job, folds, seed
        dtype = torch.float64 if needs_double(job.y) else torch.float32
        self._rows = [_prepare(job, learn, evaluated, dtype) for learn, evaluated in folds]
        self._features: list[list[Tensor]] | None = None
        ranks = normal_scores(job.y)
        neutral = Normal(dispersion="constant" if len(job.y) < FEW else "predicted")
        runs = self._start(neutral, ranks, FEATURES)
        self._features = [run.features for run in self._race(runs, ranks, 0.0, FEATURES)[1]]

    def scores(self, likelihood: Likelihood, step: Tensor | float = 0.0) -> Tensor:
        """Gives out-of-fold log scores, ``(N,)`` in float64; nan for rows outside all folds.

        Args:
            likelihood: copied, never changed.
            step: of the outcomes, see :func:`~ansatz.fitting.out_of_fold.log_scores`.
        """
        runs = self._start(likelihood, self._job.y, LIKELIHOOD)
        return self._race(runs, self._job.y, step, LIKELIHOOD)[0]

    def _start(self, likelihood: Likelihood, y: Tensor, recipe: Recipe) -> "list[_Run]":
        runs = []
        for fold, ((learn, evaluated), rows) in enumerate(
            zip(self._folds, self._rows, strict=True)
        ):
            target = y.to(rows.learn.weight.dtype)
            run = _Run(
                likelihood,
                rows.learn._replace(target=target[torch.from_numpy(learn)]),
                rows.evaluated._replace(target=y[torch.from_numpy(evaluated)]),
                rows.inputs,
                recipe,
                derive(self._seed, "choice", fold),
                None if self._features is None else self._features[fold],
            )
            runs.append(run)
        return runs

    def _race(
        self, runs: "list[_Run]", y: Tensor, step: Tensor | float, recipe: Recipe
    ) -> "tuple[Tensor, list[_Run]]":
        """The scores at the best number of steps; the runs remember their features there."""
        every = recipe.steps // recipe.evaluations
        best, since = torch.empty(0, dtype=torch.float64), 0
        for _ in range(recipe.evaluations):
            scores = torch.full((len(y),), torch.nan, dtype=torch.float64)
            for (_, evaluated), run in zip(self._folds, runs, strict=True):
                run.advance(every)
                scores[evaluated] = run.evaluate(step)
            seen = require_finite(scores, self._folds)
            since += 1
            if not len(best) or self._gain(scores[seen] - best[seen], seen) > 0:
                best, since = scores, 0
                for run in runs:
                    run.remember()
            if since == recipe.patience:
                break
        return best, runs

    def _gain(self, difference: Tensor, seen: Tensor) -> float:
        """The total difference, to which a single row adds log n at most: no outlier decides."""
        bound = math.log(len(difference))
        return float(difference.clamp(-bound, bound) @ self._job.weight[seen])


class _FoldRows(NamedTuple):
    learn: Batch
    evaluated: Batch
    inputs: InputSpec


class _Run:
    """The network of one fold in training."""

    def __init__(
        self,
        likelihood: Likelihood,
        learn: Batch,
        evaluated: Batch,
        inputs: InputSpec,
        recipe: Recipe,
        seed: int,
        features: Sequence[Tensor] | None,
    ) -> None:
        self._evaluated = evaluated
        self._objective = build_objective(likelihood, learn)
        self._objective.likelihood.relax_shapes()
        assert self._objective.shift is not None
        self._network = build_network(
            "mlp",
            {"widths": recipe.widths, "activation": recipe.activation, "dropout": recipe.dropout},
            inputs=inputs,
            outputs=self._objective.shift.numel(),
            dtype=learn.weight.dtype,
            seed=seed,
        )
        with torch.no_grad():
            for mine, given in zip(self._hidden(), features or (), strict=False):
                mine.copy_(given)
        schedule = optim.create_schedule(recipe.schedule, steps=recipe.steps, warmup=0.05)
        self._step = build_step(
            self._network, self._objective, recipe, seed=seed, schedule=schedule
        )
        self._average = Averaging("ema", self._step, recipe.steps)
        self._number = 0
        self._batches = _endless(TensorSource(learn, recipe.batch_size, seed=derive(seed, "rows")))
        self.features: list[Tensor] = []

    def _hidden(self) -> list[nn.Parameter]:
        hidden = self._network.hidden
        assert isinstance(hidden, nn.Module)
        return list(hidden.parameters())

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self._step.step(next(self._batches))
            self._number += 1
            self._average.update(self._number)

    def evaluate(self, step: Tensor | float) -> Tensor:
        rows = self._evaluated
        with torch.no_grad(), self._average.in_place():
            self._network.eval()
            raw = self._objective.raw(self._network, rows.inputs, rows.offset)
            self._network.train()
            likelihood = copy.deepcopy(self._objective.likelihood).double()
        return log_scores(likelihood, raw.double(), rows.target, step)

    def remember(self) -> None:
        with self._average.in_place():
            self.features = [parameter.detach().clone() for parameter in self._hidden()]


def normal_scores(y: Tensor) -> Tensor:
    r"""The quantile of the standard normal distribution at each outcome's rank.

    .. math:: z_i = \Phi^{-1}\!\left(\frac{\text{rank}(y_i) - 1/2}{n}\right)

    ties sharing their mean rank. Of outcomes with several columns (time, end, entry) the first
    counts, or the second where that is infinite.

    Shapes:
        - y: ``(N,)`` or ``(N, C)``.
        - returns: ``(N,)`` in float64.
    """
    values = y.numpy()
    if values.ndim > 1:
        values = np.where(
            np.isinf(values[:, 0]), values[:, min(1, values.shape[1] - 1)], values[:, 0]
        )
    return torch.from_numpy(ndtri((rankdata(values) - 0.5) / len(values)))


def _prepare(job: Job, learn: np.ndarray, evaluated: np.ndarray, dtype: torch.dtype) -> _FoldRows:
    """Encodes x by the training rows of each fold alone."""
    index = torch.from_numpy(learn)
    table: TableRows = job.rows  # type: ignore[assignment]
    weight = job.weight.numpy()[learn]
    preprocessor = Preprocessor.fit(
        table[learn].values, table.columns, weight=weight, embed_above=ALL_LEVELS
    )
    inputs = preprocessor.transform(table.values, clip=True, notes=[])
    batch: Batch = map_tensors(
        lambda t: t.to(dtype) if t.is_floating_point() else t,
        Batch(inputs, job.y, job.weight, job.offset, job.index),
    )
    held_out = take_rows(batch, torch.from_numpy(evaluated))
    return _FoldRows(take_rows(batch, index), held_out, preprocessor.spec)


def _endless(source: TensorSource) -> Iterator[Batch]:
    epoch = 0
    while True:
        yield from source.batches(epoch=epoch)
        epoch += 1


class TableLikelihoodScores:
    """Out-of-fold log scores of likelihoods on the rows of a table.

    Linear models are compared where they will be fitted, or where rows are fewer than 100,
    provided there are five rows per coefficient; else small networks.
    """

    def __init__(self, job: Job, total: float, *, linear: bool, seed: int) -> None:
        self.job, self.seed = job, seed
        self.is_linear = _suffices(job, total, linear)
        self.models = "linear models" if self.is_linear else "small networks"
        self.count = 5 if self.is_linear else 3  # of folds
        self.folds: Folds = []
        self.networks: FoldNetworks | None = None

    def begin(self, folds: Folds) -> None:
        self.folds = folds
        if not self.is_linear:
            self.networks = FoldNetworks(self.job, folds, seed=self.seed)

    def scores(self, likelihood: Likelihood, step: Tensor | float) -> Tensor:
        """Out-of-fold log scores of a likelihood, ``(N,)``; nan for rows that no fold holds out."""
        if self.networks is None:
            return linear_scores(likelihood, self.job, self.folds, step)
        return self.networks.scores(likelihood, step)


def _suffices(job: Job, total: float, linear: bool) -> bool:
    rows: TableRows = job.rows  # type: ignore[assignment]
    if rows.columns is not None and not any(column.used for column in rows.columns):
        return True
    if not linear and total >= SMALL:
        return False
    weight = job.weight.numpy()
    design = Preprocessor.fit(rows.values, rows.columns, weight=weight, purpose="linear")
    return 5 * len(design.feature_names) <= len(job.y)


def linear_scores(
    likelihood: Likelihood, job: Job, folds: Folds, step: Tensor | float = 0.0
) -> Tensor:
    """Out-of-fold log scores of the linear model of a likelihood.

    Returns:
        ``(N,)`` in float64, nan for rows that no fold evaluates.
    """
    scores = torch.full((len(job.y),), torch.nan, dtype=torch.float64)
    for learn, evaluated in folds:
        model: Any = fit_linear_model(likelihood, take(job, learn), null=False).posterior
        part = take(job, evaluated)
        found = model.at_estimate().predictive(part.rows, part.offset, notes=[])
        scores[evaluated] = log_scores(found.likelihood, found.raw, part.y, step)
    require_finite(scores, folds)
    return scores
