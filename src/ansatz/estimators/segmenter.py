"""Segmentation: a label for every pixel, voxel or sample."""

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ansatz.data import instances
from ansatz.errors import UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.estimators.predictor import FittedAttribute
from ansatz.fitting.model import Given
from ansatz.likelihoods import Likelihood

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins"),
    *("errors", "formula", "impute", "link", "adapter"),
)


class Segmenter(Estimator, without=_OF_TABLES):
    """A network that predicts the class of every pixel, voxel or sample.

    Args:
        likelihood: ``"categorical"``: every pixel is an outcome; ``"dice"``, ``"focal"``,
            or ``"sum"`` of several (``likelihood_options={"terms": {"dice": 1, "focal": 1}}``).
        network: ``"unet"``, ``"unet3d"``, ``"attention_unet"``, ``"fcn"``, ``"sliding_window"``,
            ``"linear_pixels"`` or a module that gives ``(B, K, *size)``; ``"auto"`` takes a U-Net.
        inference: ``"point"`` for one network, or ``"ensemble"``: several, whose probabilities are
            mixed pixel by pixel and recalibrated by one temperature.
        members: networks of the ensemble; None takes five.
        tile: pixels along each side of the tiles that larger examples are predicted in, with
            overlap; None takes the size of the examples of the fit.
        clean: how predicted masks are tidied: options of :func:`ansatz.data.clean`, like
            ``{"min_size": 20, "fill_holes": True}``.
        symmetry: the group that answers are averaged over: ``"flip"``, ``"rotation90"``,
            ``"dihedral"`` (rotations and flips) or ``"none"``. None takes, of fewer than 100
            images, those that the default augmentation draws from: masks are better and take
            eight times as long to predict.
        epochs: passes over the examples, in place of the recipe's budget.
        batch_size: examples per step.
        holdout: share of the examples that decide when to stop; 0 for none.
        augment: whether examples are augmented, with their masks, in training, or
            how: ``[Flip((-1, -2)), Rotate90()]`` of :mod:`ansatz.data.augmentation`.

    Attributes:
        classes_: the labels, in the order of the probabilities.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> images = np.zeros((8, 16, 16), dtype=np.float32)
        >>> images[:, 4:9, 5:12] = 1
        >>> model = Segmenter(network="linear_pixels", epochs=30).fit(images, images > 0)
        >>> model.predict(images).shape
        (8, 16, 16)

    References:
        Ronneberger, Fischer and Brox (2015), U-Net. https://arxiv.org/abs/1505.04597
    """

    outcome = "mask"
    x = "grid"
    classes_ = FittedAttribute(lambda model: model.outcome.labels)

    def __init__(
        self,
        likelihood: str | Likelihood = "categorical",
        *,
        tile: int | None = None,
        clean: Mapping[str, Any] | None = None,
        symmetry: str | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        super().__init__(likelihood, **options)
        self.tile = tile
        self.clean = clean
        self.symmetry = symmetry

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Predicts the class of every pixel, ``(N, *size)``.

        Args:
            X: examples as in ``fit``, of any size that the network takes.
            offset: refused.
        """
        rows: Any = self._given(X, offset).rows
        found = [
            self.model_.outcome.point(self.model_.predictive(each)) for each in _one_by_one(rows)
        ]
        if not found:
            return np.empty((0, *rows.spec.size), self.classes_.dtype)
        return np.concatenate(found)

    def predict_instances(self, X: Any, *, corners: bool = False) -> NDArray[np.int64]:
        """Numbers the objects in the predicted masks: 1, 2, ... in each, 0 for the first class.

        An object is a connected component of a class: objects of one class that touch are one.

        Args:
            X: examples as in ``fit``.
            corners: whether pixels that meet at a corner are connected.
        """
        labels = self.predict(X)
        codes = sum(k * (labels == name) for k, name in enumerate(self.classes_))
        return instances(np.asarray(codes), corners=corners)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predicts P(class of a pixel), ``(N, *size, K)`` in the order of ``classes_``.

        Args:
            X: examples as in ``fit``.
        """
        rows: Any = self._given(X).rows
        outcome = self.model_.of_classes
        found = [outcome.probabilities(self.model_.predictive(each)) for each in _one_by_one(rows)]
        if not found:
            return np.empty((0, *rows.spec.size, len(self.classes_)))
        return torch.cat(found).numpy()

    def between_entropy(self, X: Any) -> NDArray[np.float64]:
        r"""Measures how the members disagree about every pixel, ``(N, *size)`` in nats.

        .. math:: H\Big(\sum_s \pi_s p_s\Big) - \sum_s \pi_s H(p_s)

        with :math:`p_s` member s's probabilities of the classes, before recalibration: what
        knowing the member would add about the class, their mutual information. It is large where
        more examples would help; where classes overlap and all members agree on it, it is 0.

        Args:
            X: examples as in ``fit``.
        """
        rows: Any = self._given(X).rows
        if len(self.model_.posterior.networks) < 2:
            raise UsageError("one network has nobody to disagree with: inference='ensemble'.")
        outcome, posterior = self.model_.of_classes, self.model_.posterior
        found = [outcome.disagreement(posterior, each) for each in _one_by_one(rows)]
        return torch.cat(found).numpy() if found else np.empty((0, *rows.spec.size))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Computes the share of pixels with the right class.

        Args:
            X: examples as in ``fit``.
            y: their masks.
            sample_weight: ``(N,)``.
        """
        error = self.evaluate(X, y, sample_weight, warn=False)["pixel_error"]
        assert error is not None
        return 1 - error

    def _given(
        self, X: Any, offset: ArrayLike | None = None, trials: ArrayLike | None = None
    ) -> Given:
        """Rows to predict, by tiles and with masks cleaned by the present arguments."""
        check_is_fitted(self)
        if offset is not None:
            raise UsageError("masks take no offset.")
        self.model_ = self.model_.with_options(tile=self.tile, clean=self.clean)
        return super()._given(X, offset, trials)


def _one_by_one(rows: Any) -> Any:
    """Examples one at a time: K numbers for every pixel are many."""
    return (rows[np.arange(n, n + 1)] for n in range(len(rows)))
