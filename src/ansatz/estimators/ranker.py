"""Rankings as outcomes."""

from typing import Any, Literal, Unpack, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from ansatz.data.rankings import Layout
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.estimators.predictor import FittedAttribute
from ansatz.fitting.job import read_column
from ansatz.likelihoods import Likelihood, RankingDistribution
from ansatz.metrics import kendall_tau

# A teacher is for classes and numbers, and scores of items have the log link only.
_OF_OTHERS = ("calibration", "link", "teacher", "teacher_temperature", "teacher_weight")


class Ranker(Estimator, without=_OF_OTHERS):
    """A network, or a linear model, that predicts in which order items will be ranked.

    A row is an occasion of ranking: a voter, a race, a taster; x is what is known about it. With
    ``X=None`` all rows share one likelihood, and the fit is the exact maximum-likelihood estimate.

    Args:
        likelihood: ``"plackett_luce"``, or an instance.
        unranked: how a ranking that leaves items out is read: ``"last"``, they came after
            all others (top-k rankings), or ``"absent"``, they took no part.
        prior: comparisons of every item with one at the mean of the scores, half of them won, for
            items that too few rankings link with the rest; 0 for none.
        layout: how y is written: ``"places"``, a column per place that holds items; ``"items"``, a
            column per item that holds its rank; ``"orders"``, text like ``b>a>c``; ``"auto"``.

    Attributes:
        items_: what is ranked, in the order of the codes.
        notes_: notes on reading and fitting: items without a finite score.

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
    items_ = FittedAttribute(lambda model: model.outcome.labels)

    def __init__(
        self,
        likelihood: str | Likelihood = "plackett_luce",
        *,
        unranked: Literal["last", "absent"] = "last",
        prior: float = 0.0,
        layout: Layout = "auto",
        **options: Unpack[Arguments],
    ) -> None:
        super().__init__(likelihood, **options)
        self.unranked = unranked
        self.prior = prior
        self.layout = layout

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predicts P(item comes first | x), ``(N, K)`` in the order of ``items_``.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).probs.numpy()
        return found

    def predict_scores(self, X: Any) -> NDArray[np.float64]:
        """Predicts the log worth of each item, ``(N, K)`` as ``items_``; a row adds up to 0.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).scores.numpy()
        return found

    def predict_ranks(self, X: Any) -> NDArray[np.float64]:
        """Predicts the expected rank of each item among all, 1 the best, ``(N, K)``.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).ranks.numpy()
        return found

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Computes the mean of Kendall's tau of predicted and observed orders: 1 is perfect.

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
