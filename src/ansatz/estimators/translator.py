"""Translation: a text for each source."""

from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.data.sequences.pairs import Pairs
from ansatz.data.sequences.sequences import Texts
from ansatz.errors import DataError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.fitting.job import Job
from ansatz.fitting.task import Task
from ansatz.likelihoods import Likelihood
from ansatz.outcomes.translation.search import translations

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins"),
    *("errors", "formula", "impute", "link", "augment"),
)


class Translator(Estimator, without=_OF_TABLES):
    r"""A network that reads a text or an image and writes a text.

    .. math:: \hat y \approx \arg\max_y \frac{\log p(y \mid x)}{|y|}, \qquad
        p(y \mid x) = \prod_t p(y_t \mid x, y_{<t})

    Training predicts each token from the true ones before it, with labels smoothed by 0.1.
    Translations are found by a beam search.

    Args:
        likelihood: ``"autoregressive"``; ``likelihood_options={"label_smoothing": 0.1}``.
        network: ``"encoder_decoder"``, a transformer; ``"seq2seq"``, recurrent with attention; or a
            module that has their methods. ``"auto"`` takes the first.
        tokens: what texts are cut into: ``"bpe"`` (the default), ``"word"``, ``"char"``, ...
        vocabulary: different tokens at most; 4,000 if not given, for both sides together.

    Example:
        >>> from ansatz import Translator
        >>> numbers = ["one", "two", "three", "four"]
        >>> pairs = [(f"{a} {b}", f"{b} {a}") for a in numbers for b in numbers]
        >>> sources, targets = zip(*pairs)
        >>> options = {"width": 32, "depth": 1}
        >>> model = Translator(tokens="word", steps=150, holdout=0, network_options=options)
        >>> model.fit(sources, targets).predict(["one four"]).tolist()
        ['four one']

    References:
        Vaswani et al. (2017), Attention is all you need. https://arxiv.org/abs/1706.03762
        Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align
        and translate. https://arxiv.org/abs/1409.0473
    """

    outcome = "translate"
    x = "pairs"

    def __init__(
        self, likelihood: str | Likelihood = "autoregressive", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def _job(
        self,
        task: Task,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *others: Any,
        **options: Any,
    ) -> Job:
        return super()._job(task, self._pairs(X, y), y, sample_weight, *others, **options)

    def _pairs(self, X: Any, y: Any) -> Any:
        """Sources with their texts beside them."""
        rows = X.rows if hasattr(X, "rows") else X
        structure: Any = self.model_.structure if hasattr(self, "model_") else None
        if structure is None:
            structure = self.task(X).structure
        pairs = structure.as_rows(rows)
        if y is None:
            return pairs
        texts = y.iloc[:, 0] if getattr(y, "ndim", 1) == 2 else y
        if len(texts) != len(pairs):
            raise DataError(
                f"there are {len(pairs):,} sources and {len(texts):,} translations: one for each."
            )
        return Pairs(pairs.source, Texts(list(texts)))

    def predict(self, X: Any, *, beams: int = 5) -> NDArray[Any]:  # type: ignore[override]
        """Translates each source, ``(N,)`` texts.

        Args:
            X: sources as in ``fit``.
            beams: texts that the search follows; 1 takes the most probable token each time.
        """
        rows: Any = self._given(X).rows
        found = translations(self.model_.posterior, rows, beams=beams)
        return np.array([each.text for each in found] + [None], dtype=object)[:-1]

    def stream(self, X: Any, *, beams: int = 5) -> Iterator[str]:
        """Yields the translations one after another.

        Args:
            X: sources as in ``fit``.
            beams: as in ``predict``.
        """
        from ansatz.outcomes.translation.search import stream

        rows: Any = self._given(X).rows
        for each in stream(self.model_.posterior, rows, beams=beams):
            yield each.text

    def log_prob(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Computes log p(text | source) of given texts, ``(N,)``.

        Args:
            X: sources as in ``fit``.
            y: their texts.
        """
        served = self.model_.predictive(self._pairs(X, y), notes=[])
        found: NDArray[np.float64] = served.raw[:, 0].numpy()
        return found

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        warn: bool = True,
    ) -> dict[str, float | None]:
        """Computes nats per token and per text, BLEU, chrF and the share of exact texts.

        Args:
            X: sources as in ``fit``; of a model of ``ansatz.fit`` a table with the target will do.
            y: their texts.
            sample_weight: frequency weights, of the probabilities.
            offset: refused.
            warn: whether to warn where the model was trained on some of the rows.
        """
        if y is None:
            X, y, sample_weight, offset, _ = self._from_table(X, outcomes=True)
        pairs = self._pairs(X, y)
        return super().evaluate(pairs, y, sample_weight, offset=offset, warn=warn)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Computes BLEU, 0 to 100.

        Args:
            X: sources as in ``fit``.
            y: their texts.
            sample_weight: without effect on BLEU.
        """
        return float(self.evaluate(X, y, sample_weight, warn=False)["bleu"] or 0.0)
