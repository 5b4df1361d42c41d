"""Rankings as outcomes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from torch import nn

from ansatz.data.rankings import Layout
from ansatz.estimators.estimator import Estimator, Fitted
from ansatz.fitting.job import read_column
from ansatz.fitting.recipe import Augment
from ansatz.likelihoods import Likelihood, RankingDistribution
from ansatz.metrics import kendall_tau


class Ranker(Estimator):
    """A network, or a linear model, that predicts in which order items will be ranked.

    A row is an occasion of ranking: a voter, a race, a taster; x is what is known about it. With
    ``X=None`` all rows share one likelihood, and the fit is the exact maximum-likelihood estimate.

    Args:
        likelihood: ``"plackett_luce"``, or an instance.
        unranked: what a ranking that leaves items out says about them: ``"last"``, they came after
            all others (top-k rankings), or ``"absent"``, they took no part.
        prior: comparisons of every item with one at the mean of the scores, half of them won, for
            items that too few rankings link with the rest; 0 for none.
        layout: how y is written: ``"places"``, a column per place that holds items; ``"items"``, a
            column per item that holds its rank; ``"orders"``, text like ``b>a>c``; ``"auto"``.
        likelihood_options: further options of a likelihood given by name.
        x: what X looks like: ``"auto"`` tells tables from signals, images and volumes by the axes
            of arrays and the names of files; ``"grid"`` takes the rows of a table as signals.
        network: by name (``"mlp"``, ``"linear"``, ``"lenet5"``, ...), or a module; ``"auto"`` takes
            the default of what X looks like.
        inference: ``"point"``: one weight vector, the penalised maximum-likelihood estimate;
            ``"ensemble"``: the mixture of several that stop on different rows.
        members: networks of an ensemble; ten if not given, five beyond 50,000 rows.
        widths: hidden units per layer.
        activation: of the hidden layers.
        dropout: share of hidden units dropped in training.
        network_options: further options of the network's factory.
        epochs: passes over the rows, in place of the recipe's budget.
        batch_size: rows per step; 0 takes all rows at once.
        learning_rate: peak rate of AdamW.
        weight_decay: decoupled, on matrices.
        holdout: share of the rows that decide when to stop; 0 for none.
        quantile: True, or the columns, whose heavy tails are mapped to normal scores.
        bins: number of bins into which the range of each number is cut, as features beside the number, so
            that a network can bend sharply; by default 32 from 10,000 rows on (fewer where columns
            are many), 0 for none.
        augment: whether grids are varied at random while they are learned from (shifted, turned,
            flipped, as their shape allows), or how: ``[Flip(), Noise(0.1)]`` or ``"flip,noise"``
            of :mod:`ansatz.data.augmentation`; None does what the recipe says.
        pretrained: a file of weights, ``.safetensors`` or ``.pth``, that the network begins with.
        freeze: ``"backbone"`` trains the last layer alone; a number freezes so many groups of
            layers from the input on; a list of epochs wakes one group at each, the last first.
        warm_start: begin the next ``fit`` at the weights of the last.
        random_state: one seed decides split, initial weights, order and dropout. None draws it
            from numpy's global generator.
        n_jobs: threads; None chooses by the network's size.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds after which training stops with the best weights so far.
        verbose: 0 silent, 1 a progress bar, 2 one line per evaluation.

    Attributes:
        items_: what is ranked, in the order of the codes.
        notes_: what there is to say about reading and fitting: items without a finite score.

    Example:
        >>> from ansatz.estimators.ranker import Ranker
        >>> model = Ranker().fit(None, ["tea>rum>milk", "tea>milk>rum", "milk>tea>rum", "rum>tea"])
        >>> model.predict(None).tolist()
        [['tea', 'milk', 'rum']]

    References:
        Plackett (1975), The analysis of permutations. Applied Statistics 24, 193-202.
        Hunter (2004), MM algorithms for generalized Bradley-Terry models.
        https://doi.org/10.1214/aos/1079120141
    """

    outcome = "ranking"
    items_ = Fitted(lambda model: model.outcome.labels)

    def __init__(
        self,
        likelihood: str | Likelihood = "plackett_luce",
        *,
        unranked: Literal["last", "absent"] = "last",
        prior: float = 0.0,
        layout: Layout = "auto",
        likelihood_options: Mapping[str, Any] | None = None,
        x: str = "auto",
        network: str | nn.Module = "auto",
        inference: str = "point",
        members: int | None = None,
        widths: Sequence[int] | None = None,
        activation: str | None = None,
        dropout: float | None = None,
        network_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        holdout: float | None = None,
        quantile: bool | Sequence[str] = False,
        bins: int | None = None,
        augment: Augment | None = None,
        pretrained: str | Path | None = None,
        freeze: str | int | Sequence[int] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        device: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.unranked = unranked
        self.prior = prior
        self.layout = layout
        self.likelihood_options = likelihood_options
        self.x = x
        self.network = network
        self.inference = inference
        self.members = members
        self.widths = widths
        self.activation = activation
        self.dropout = dropout
        self.network_options = network_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.holdout = holdout
        self.quantile = quantile
        self.bins = bins
        self.augment = augment
        self.pretrained = pretrained
        self.freeze = freeze
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.time_limit = time_limit
        self.verbose = verbose

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(item comes first | x), ``(N, K)`` in the order of ``items_``.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).probs.numpy()
        return found

    def predict_scores(self, X: Any) -> NDArray[np.float64]:
        """The log worth of each item, ``(N, K)`` in the order of ``items_``; a row adds up to 0.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).scores.numpy()
        return found

    def predict_ranks(self, X: Any) -> NDArray[np.float64]:
        """The expected rank of each item among all, 1 the best, ``(N, K)``.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).ranks.numpy()
        return found

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The mean of Kendall's tau between predicted and observed orders: 1 is perfect.

        ``log_score`` gives the mean log-likelihood.

        Args:
            X: rows as in ``fit``.
            y: their rankings.
            sample_weight: ``(N,)`` frequency weights.
        """
        codes = self._outcomes(y, len(y))
        likelihood = self._rankings(X)
        weight = read_column("sample_weight", sample_weight, len(codes))
        tau = kendall_tau(
            codes,
            likelihood.mode.expand(len(codes), -1),
            None if weight is None else torch.from_numpy(weight),
            unranked=likelihood.unranked,
        )
        return float(tau)

    def _rankings(self, X: Any) -> RankingDistribution:
        return cast(RankingDistribution, self.predict_dist(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags
